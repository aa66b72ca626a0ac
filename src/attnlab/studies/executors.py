"""Choosing where jobs run."""

from pathlib import Path

from attnlab.cores import cores
from attnlab.errors import SpecError
from attnlab.studies.driving import Executor
from attnlab.studies.local import LocalExecutor


def open_executor(pool: Path, *, workers: int | None, cluster: str | None) -> Executor:
    """Processes on this machine, or a Ray cluster if its address is given."""
    if workers is not None and workers < 1:
        raise SpecError(f"--workers is {workers}, but it must be at least 1")
    if cluster is None:
        return LocalExecutor(pool, workers or cores())
    from attnlab.studies.cluster import RayExecutor  # here: Ray is an extra

    return RayExecutor(pool, address=cluster, workers=workers)
