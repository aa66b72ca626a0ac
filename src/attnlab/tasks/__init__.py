"""Tasks: how examples are made, what counts as right, how an example is shown, and its strata."""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.tasks.addition import Addition
    from attnlab.tasks.build import Task, build_task
    from attnlab.tasks.choices import Split
    from attnlab.tasks.digits import Digits
    from attnlab.tasks.examples import Examples, Splits
    from attnlab.tasks.grids import Grids
    from attnlab.tasks.sorting import Sorting
else:
    __getattr__ = on_demand(__name__)

__all__ = ["Addition", "Digits", "Examples", "Grids", "Sorting", "Split", "Splits", "Task", "build_task"]
