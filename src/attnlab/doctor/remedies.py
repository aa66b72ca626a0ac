"""Remedies that are settings of a spec: the command that applies them, the spec that they give, and the
best guess at a setting where nothing was measured.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote

from attnlab.doctor.findings import Remedy, Setting, Settings
from attnlab.doctor.limits import FAR, USUAL
from attnlab.errors import InputError, SpecError, brief
from attnlab.specs import Spec, Training, with_settings, write_variant

VARIANTS = ("model.positions", "training.optimiser", "training.schedule")
"""Choices between variants, which flags take as one word with its settings."""
WARMED = "cosine:warmup=0.1"
"""A schedule that warms up and ends with the training."""


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


# Guesses


def usual_rate(training: Training) -> float:
    """The learning rate that small models usually want of the optimiser."""
    return USUAL[training.optimiser.kind].value


def faster(training: Training) -> float:
    """A higher rate: the usual one if that is far away, else three times the present one."""
    usual = usual_rate(training)
    return rounded(usual if usual > FAR.value * training.lr else 3 * training.lr)


def slower(training: Training) -> float:
    """A lower rate: the usual one if that is far away, else a third of the present one."""
    usual = usual_rate(training)
    return rounded(usual if usual < training.lr / FAR.value else training.lr / 3)


def other_rate(training: Training) -> float:
    """A rate to try where it is not known on which side the present one is."""
    return faster(training) if FAR.value * training.lr < usual_rate(training) else slower(training)


def rounded(rate: float) -> float:
    """To two digits."""
    return float(f"{rate:.2g}")


def own_default(spec: Spec | None, name: str) -> Settings:
    """The key of a model as a model of its kind has it by default; nothing where it has no such key."""
    value = None if spec is None else getattr(type(spec.model)(), name, None)
    key = f"model.{name}"
    return {} if value is None else {key: write_variant(value) if key in VARIANTS else value}


def livelier(spec: Spec | None) -> Settings:
    """Another rate, a warm-up, and the usual gain of queries and keys, where a model chooses nothing."""
    if spec is None:
        return {}
    rate: Settings = {"training.lr": other_rate(spec.training), "training.schedule": WARMED}
    return rate | own_default(spec, "gain")


def more_examples(spec: Spec) -> Settings:
    """Four times the training examples, or as many as the task has by default if that is more; in twice as
    many steps as before, since there is more to learn.
    """
    task, epochs = spec.task, spec.training.epochs
    usual: int = type(task).train
    count = max(4 * task.train, usual)
    return {"task.train": count, "training.epochs": max(1, round(2 * epochs * task.train / count))}
