"""Ensembles: a folder that names runs whose probabilities are averaged. In it lies

    ensemble.json    the runs, by their paths from the folder, and what was measured when they were chosen

The runs stay where they are; whoever moves the folder takes them along.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.errors import LabError, RunError
from attnlab.runs.folder import ENSEMBLE, Run, check_unused, open_run
from attnlab.storage import refusing, write_json


@dataclass(frozen=True)
class Ensemble:
    """One such folder."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def runs(self) -> list[Run]:
        try:
            names = json.loads((self.path / ENSEMBLE).read_text(encoding="utf-8"))["runs"]
            if not names or not all(isinstance(name, str) for name in names):
                raise ValueError("it names no runs")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"ensemble {self.path} is damaged: {ENSEMBLE} cannot be read ({error})"
            ) from error
        return [self._run(name) for name in names]

    def _run(self, name: str) -> Run:
        try:
            return open_run(name if name.startswith("zoo:") else os.path.normpath(self.path / name))
        except LabError as error:
            raise RunError(f"ensemble {self.path} names a run that is not there: {error}") from error


def create_ensemble(path: Path, runs: Sequence[Run], found: dict[str, Any]) -> Ensemble:
    """A new folder that names ``runs``, with what was found about them; an existing one is refused."""
    check_unused(path)
    with refusing(path):
        path.mkdir(parents=True, exist_ok=True)
    names = [run.name if run.shipped else os.path.relpath(run.path, path) for run in runs]
    write_json(path / ENSEMBLE, {**found, "runs": names})
    return Ensemble(path)


def find_ensemble(name: str) -> Ensemble | None:
    return Ensemble(Path(name)) if os.path.isfile(os.path.join(name, ENSEMBLE)) else None  # noqa: PTH113, PTH118
