"""The commands that make a run and its page again."""

import dataclasses
from shlex import quote
from typing import Any

from attnlab.presets import all_presets
from attnlab.report.page import Made, as_json
from attnlab.runs import Run
from attnlab.spec import Spec, to_json, write_variant

_VARIANTS = {"optimiser", "schedule", "positions", "start"}
"""Settings that are one word: a choice between kinds."""


def made(run: Run, page: list[str]) -> Made:
    """How ``run`` was trained, and the words of the command that wrote its page."""
    spec = run.spec()
    trained = "This trains the same run again; so does attnlab train --spec spec.json with the file below."
    if run.file("start.safetensors").exists():
        trained = "Its training began with the weights of another run, which a command alone does not give."
    return Made(
        commands=[
            (trained, train_command(spec)),
            ("This wrote the page:", " ".join(["attnlab", *map(quote, page)])),
        ],
        files=[("spec.json", as_json(to_json(spec)))],
        environment={key: _plain(value) for key, value in run.environment().to_json().items()},
    )


def _plain(value: Any) -> str:
    """A value of the environment; of images, where they came from."""
    if isinstance(value, dict) and "source" in value:
        return f"{value['source']}{', only the bundled sample' if value.get('sample') else ''}"
    return str(value)


def train_command(spec: Spec) -> str:
    """``attnlab train`` with the preset that needs the fewest flags, or with a file where none fits."""
    found = []
    for name, preset in all_presets().get(spec.task.kind, {}).items():
        if type(preset.model) is type(spec.model):
            flags = _flags(spec, preset)
            found.append((len(flags), name != "default", name, flags))
    if not found:
        return "attnlab train --spec spec.json"
    _, _, name, flags = min(found)
    start = [] if name == "default" else ["--preset", name]
    return " ".join(["attnlab", "train", spec.task.kind, *start, *map(quote, flags)])


def _flags(wanted: Any, given: Any, path: str = "") -> list[str]:
    """A flag for each value of ``wanted`` that differs from ``given``."""
    flags = []
    for field in dataclasses.fields(wanted):
        mine, other = getattr(wanted, field.name), getattr(given, field.name)
        name = f"{path}{field.name}"
        if mine == other:
            continue
        if field.name in _VARIANTS:
            flags.append(f"--{name}={write_variant(mine)}")
        elif dataclasses.is_dataclass(mine):
            flags += _flags(mine, other, f"{name}.")
        elif isinstance(mine, bool):
            flags.append(f"--{name}" if mine else f"--{path}no-{field.name}")
        elif isinstance(mine, tuple):
            flags += [f"--{name}", *map(str, mine)]
        else:
            flags.append(f"--{name}={mine}")
    return flags
