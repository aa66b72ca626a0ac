"""What ``attnlab patch`` finds: for each column every site, and the heads that carry the carry."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from attnlab.errors import InputError, LabError
from attnlab.model import attentions
from attnlab.problems.addition.carries import Contrast, contrast, measure_carriers, measure_column
from attnlab.problems.addition.choices import Digit
from attnlab.problems.addition.task import Addition
from attnlab.progress import Progress, silent
from attnlab.runs import Run, load_model
from attnlab.runs.weights import other_task

MOST = 1000  # pairs: all their values are kept in memory

Watch = Callable[[str], AbstractContextManager[Progress]]
"""Opens the progress of a piece of work that is called so."""


@contextmanager
def unwatched(name: str) -> Iterator[Progress]:
    """Work that nobody watches."""
    yield silent


def patch_run(
    run: Run,
    *,
    column: int | None = None,
    pairs: int = 64,
    reach: int = 1,
    digit: Digit = "same",
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Patch between sums with and without a carry into ``column``, or into each; keep it in the run."""
    if not 1 < pairs <= MOST:
        raise InputError(f"--pairs is {pairs}; it must be from 2 to {MOST:,}")
    task, model = run.spec().task, load_model(run)
    if not isinstance(task, Addition):
        raise other_task(run, Addition.kind)
    if not attentions(model):
        raise LabError(f"run {run.name} has no attention left, so it has no heads to patch")
    columns = [column] if column is not None else range(max(1, reach), max(task.digits, reach) + 1)
    contrasts = [
        contrast(task, model, column=each, pairs=pairs, reach=reach, digit=digit, seed=run.spec().seed)
        for each in columns
    ]
    found = []
    for each in contrasts:
        with watch(f"patching, carry into {each.name}") as progress:
            found.append(measure_column(task, model, each, progress=progress))
    carriers = []
    for group in _groups(contrasts):
        with watch(f"trying sets of heads, {', '.join(each.name for each in group)}") as progress:
            carriers.append(measure_carriers(task, model, group, progress=progress))
    result = {"run": run.name, "reach": reach, "digit": digit, "columns": found, "carriers": carriers}
    run.keep_analysis("patch", result)
    return result


def _groups(contrasts: list[Contrast]) -> list[list[Contrast]]:
    """Each column by itself, and all together."""
    alone = [[each] for each in contrasts]
    return [*alone, contrasts] if len(contrasts) > 1 else alone
