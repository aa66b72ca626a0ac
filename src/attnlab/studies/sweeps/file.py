"""Sweep files: W&B's form as it stands, or the short form, recognised by its key ``search``:

    task: addition
    search:
      training.lr: log 1e-4 .. 1e-2
      model.encoder_layers: 1 .. 4
      model.positions: [learned, "rotary:base=500", none]

Two whole numbers stand for whole numbers, on a log scale too; 1.0 .. 4.0 are real ones.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import SpecError
from attnlab.studies.sweeps.goal import goal_notes, read_goal, read_method, read_prune
from attnlab.studies.sweeps.names import by_spec_key
from attnlab.studies.sweeps.parts import SweepFile
from attnlab.studies.sweeps.space import Choice, Distribution, Integers, LogUniform, Stepped, Uniform
from attnlab.studies.sweeps.values import (
    brief,
    check_keys,
    expect,
    mapping,
    number,
    option,
    plain,
    read_yaml,
    text,
    whole,
)
from attnlab.studies.sweeps.wandb_form import FOREIGN_KEYS, WANDB_KEYS, read_options, read_wandb


def read_sweep_file(path: Path) -> SweepFile:
    """The sweep that a YAML or JSON file describes; what is wrong with it is one sentence."""
    try:
        return read_sweep(read_yaml(path), path.stem)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def read_sweep(data: Mapping[str, Any], name: str) -> SweepFile:
    """The same from plain values, called ``name`` unless they say otherwise."""
    short = "search" in data
    mine, other = (SHORT_KEYS, WANDB_KEYS) if short else (WANDB_KEYS, SHORT_KEYS)
    for key in data:
        if key in other and key not in mine:
            which = (
                "of W&B's form, which has no 'search'"
                if short
                else "of the short form, which needs 'search'"
            )
            raise SpecError(f"{key!r} is a key {which}")
    check_keys(data, (*mine, "search"), foreign=FOREIGN_KEYS)
    expect(isinstance(data.get("description", ""), str), "description", data.get("description"), "text")
    return read_short(data, name) if short else read_wandb(data, name)


SHORT_KEYS = (
    *("name", "description", "task", "preset", "method", "goal"),
    *("set", "search", "prune", "count"),
)
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(log\s+)?({_NUMBER})\s*\.\.\s*({_NUMBER})", re.ASCII)


def read_short(data: Mapping[str, Any], name: str) -> SweepFile:
    """A file in the short form; ``name`` is what it is called if it does not say."""
    words = {"name": name, "task": "addition", "preset": "default"}
    said = {key: text(key, data.get(key, default)) for key, default in words.items()}
    metric = read_goal(data.get("goal", "maximize valid_exact_match"))
    search = mapping("search", data["search"])
    settings = mapping("set", data.get("set", {}))
    return SweepFile(
        name=said["name"],
        method=read_method(data.get("method", "bayes")),
        metric=metric,
        parameters=by_spec_key({key: _read_range(key, value) for key, value in search.items()}),
        hyperband=read_prune(data["prune"]) if "prune" in data else None,
        count=whole("count", data["count"], 1) if "count" in data else None,
        task=said["task"],
        preset=said["preset"],
        settings=by_spec_key({key: option(f"set.{key}", value) for key, value in settings.items()}),
        notes=goal_notes(metric),
    )


def _read_range(name: str, value: Any) -> Distribution:
    try:
        if isinstance(value, list):
            return Choice(options=read_options(value))
        found = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
        if found:
            return _range(*found.groups())
    except SpecError as error:
        raise SpecError(f"search.{name}: {error}") from error
    rule = "a list of values or a range such as 'log 1e-4 .. 1e-2'; what stays the same belongs to 'set'"
    raise SpecError(f"search.{name} is {brief(value)}, but it must be {rule}")


def _range(log: str | None, low: str, high: str) -> Distribution:
    integers = all(type(plain(bound)) is int for bound in (low, high))
    if integers and not log:
        return Integers(low=whole("min", low), high=whole("max", high))
    scale = LogUniform if log else Uniform
    reals = scale(low=number("min", low), high=number("max", high))
    return Stepped(of=reals) if integers else reals
