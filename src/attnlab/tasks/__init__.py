"""Tasks: how examples are made, what counts as right, how an example is shown, and its strata."""

from attnlab.tasks.addition import Addition
from attnlab.tasks.build import Task, build_task
from attnlab.tasks.digits import Digits
from attnlab.tasks.examples import Examples, Splits
from attnlab.tasks.grids import Grids
from attnlab.tasks.sorting import Sorting

__all__ = ["Addition", "Digits", "Examples", "Grids", "Sorting", "Splits", "Task", "build_task"]
