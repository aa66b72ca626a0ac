"""Studies: many runs as one result, on one machine or on many; sweeps: a search over specs."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.studies.jobs import Event, Job
    from attnlab.studies.outcome import collect
    from attnlab.studies.running import (
        Executor,
        LocalExecutor,
        check_pool,
        open_executor,
        open_jobs,
        run_jobs,
    )
    from attnlab.studies.study import (
        EXACT_MATCH,
        STEPS_TO_99,
        Curve,
        Measure,
        Study,
        find_study,
        read_catalogue,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "EXACT_MATCH", "STEPS_TO_99", "Curve", "Event", "Executor", "Job", "LocalExecutor", "Measure", "Study",
    "check_pool", "collect", "find_study", "open_executor", "open_jobs", "read_catalogue", "run_jobs",
]  # fmt: skip
