"""Runs that several benchmarks share: trained once, found again."""

import sys
from dataclasses import replace
from pathlib import Path

from attnlab.presets import preset
from attnlab.runs import RunFolder, create_run, open_run
from attnlab.training import train_run


def trained_adder(name: str, seed: int, folder: Path) -> RunFolder:
    """The run of the addition preset ``name`` in ``folder``, trained to its end."""
    path = folder / f"{name}-s{seed}"
    spec = replace(preset("addition", name), seed=seed)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        create_run(path, spec)
    run = open_run(str(path))
    if run.spec() != spec:
        sys.exit(f"{path} has another spec; remove it or name another folder")
    finish(run)
    return run


def finish(run: RunFolder) -> None:
    """Train ``run`` to its end, or stop the benchmark."""
    if train_run(run) is None:
        sys.exit(f"{run.path} was stopped; begin again to go on")
