"""Sweeps: a search over specs. A file says what is searched, Optuna proposes, workers of studies train."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.studies.sweeps.file import read_sweep_file
    from attnlab.studies.sweeps.outcome import best_again, collect_sweep, keep_sweep, scales, trials_table
    from attnlab.studies.sweeps.parts import Hyperband, Metric, SweepFile, SweepResult
    from attnlab.studies.sweeps.search import Sweep
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Hyperband", "Metric", "Sweep", "SweepFile", "SweepResult", "best_again", "collect_sweep", "keep_sweep",
    "read_sweep_file", "scales", "trials_table",
]  # fmt: skip
