"""Remedies that are settings of a spec: the command that applies them, the spec that they give, and what a
task and its model have by default. Rates and schedules are in ``usual.py``.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote

from attnlab.doctor.findings import Remedy, Setting, Settings
from attnlab.errors import InputError, LabError, SpecError, brief
from attnlab.specs import Spec, with_settings, write_variant

VARIANTS = ("model.positions", "training.optimiser", "training.schedule")
"""Choices between variants, which flags take as one word with its settings."""
PASSES = 10
"""Passes through more examples that a training has at least."""


def cured_spec(spec: Spec, remedy: Remedy) -> Spec:
    """``spec`` with the settings of ``remedy``, so that the cure can be tried.

    >>> start = spec("sorting")
    >>> cured_spec(start, Remedy("a higher rate", settings={"training.lr": 0.03})).training.lr
    0.03
    """
    if not remedy.settings:
        raise InputError(f"the remedy {brief(remedy.text)} has no settings that could be applied to a spec")
    return with_settings(spec, remedy.settings)


def prescribed(remedy: Remedy, spec: Spec | None, path: Path | None) -> Remedy:
    """The remedy with the settings that ``spec`` can have, and the command that trains with them; ``path``
    is the folder of the run. Without a spec there is nothing to set.
    """
    if not remedy.settings:
        return remedy
    settings = {} if spec is None else _possible(spec, remedy.settings)
    if spec is None or path is None or not settings or spec.start:
        return replace(remedy, settings=settings)
    flags = " ".join(_flags(with_settings(spec, settings), settings))
    command = f"attnlab train --spec {quote(str(path / 'spec.json'))} {flags}"
    return replace(remedy, settings=settings, command=remedy.command or command)


def _possible(spec: Spec, settings: Settings) -> Settings:
    """Those that the spec has and that change it; one that breaks a rule is left out."""
    found: Settings = {}
    for key, value in settings.items():
        try:
            changed = with_settings(spec, found | {key: value})
        except SpecError:
            continue
        if changed != with_settings(spec, found):
            found[key] = value
    return found


def _flags(spec: Spec, settings: Settings) -> Iterator[str]:
    """A flag a key; settings of a variant go into its word."""
    for key in dict.fromkeys(_owner(key) for key in settings):
        inside = any(other.startswith(f"{key}.") for other in settings)
        yield _flag(key, _word(spec, key) if inside else settings[key])


def _owner(key: str) -> str:
    return next((each for each in VARIANTS if key.startswith(f"{each}.")), key)


def _word(spec: Spec, key: str) -> str:
    """A choice between variants with all its settings."""
    group, _, name = key.partition(".")
    return write_variant(getattr(getattr(spec, group), name))


def _flag(key: str, value: Setting) -> str:
    if isinstance(value, bool):
        group, _, name = key.rpartition(".")
        return f"--{key}" if value else f"--{group}.no-{name}"
    return f"--{key} {quote(f'{value:g}' if isinstance(value, float) else str(value))}"


def rounded(rate: float) -> float:
    """To two digits."""
    return float(f"{rate:.2g}")


def default_of(spec: Spec) -> Spec | None:
    """The spec that suits the task, as the task itself says; None where it says nothing."""
    try:
        return type(spec.task).presets()["default"]
    except (LabError, KeyError):
        return None


def own_default(spec: Spec | None, name: str) -> Settings:
    """The key of a model as the task's default has it, or else as a model of its kind has it by default;
    nothing where it has no such key.
    """
    if spec is None:
        return {}
    suited = default_of(spec)
    model = suited.model if suited and isinstance(suited.model, type(spec.model)) else type(spec.model)()
    value = getattr(model, name, None)
    key = f"model.{name}"
    return {} if value is None else {key: write_variant(value) if key in VARIANTS else value}


def more_examples(spec: Spec) -> Settings:
    """Four times the training examples, or as many as the task has by default if that is more; in twice as
    many steps as before, since there is more to learn, and ``PASSES`` through them at least.
    """
    task, epochs = spec.task, spec.training.epochs
    usual: int = type(task).train
    count = max(4 * task.train, usual)
    return {"task.train": count, "training.epochs": max(PASSES, round(2 * epochs * task.train / count))}
