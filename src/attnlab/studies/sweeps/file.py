"""Sweep files: W&B's form as it stands, or the short form, recognised by its key ``search``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.errors import SpecError
from attnlab.studies.sweeps.parts import Hyperband, Metric, SweepFile
from attnlab.studies.sweeps.plain_yaml import read_yaml
from attnlab.studies.sweeps.short import SHORT_KEYS, read_short
from attnlab.studies.sweeps.values import check_keys, expect
from attnlab.studies.sweeps.wandb_form import FOREIGN_KEYS, WANDB_KEYS, read_wandb

__all__ = ["Hyperband", "Metric", "SweepFile", "read_sweep", "read_sweep_file"]


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
