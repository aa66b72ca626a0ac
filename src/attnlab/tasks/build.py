"""From a task spec to a task."""

from typing import overload

from attnlab.spec import AdditionTask, DigitsTask, GridsTask, SortingTask, TaskSpec
from attnlab.tasks.addition import Addition
from attnlab.tasks.digits import Digits
from attnlab.tasks.grids import Grids
from attnlab.tasks.sorting import Sorting

Task = Addition | Digits | Sorting | Grids


@overload
def build_task(spec: AdditionTask) -> Addition: ...
@overload
def build_task(spec: DigitsTask) -> Digits: ...
@overload
def build_task(spec: SortingTask) -> Sorting: ...
@overload
def build_task(spec: GridsTask) -> Grids: ...
@overload
def build_task(spec: TaskSpec) -> Task: ...
def build_task(spec: TaskSpec) -> Task:
    """The task that ``spec`` describes."""
    match spec:
        case AdditionTask():
            return Addition(spec)
        case DigitsTask():
            return Digits(spec)
        case SortingTask():
            return Sorting(spec)
        case GridsTask():
            return Grids(spec)
