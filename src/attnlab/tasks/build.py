"""From a task spec to a task."""

from typing import overload

from attnlab.spec import AdditionTask, DigitsTask, SortingTask, TaskSpec
from attnlab.tasks.addition import Addition
from attnlab.tasks.digits import Digits
from attnlab.tasks.sorting import Sorting

Task = Addition | Digits | Sorting


@overload
def build_task(spec: AdditionTask) -> Addition: ...
@overload
def build_task(spec: DigitsTask) -> Digits: ...
@overload
def build_task(spec: SortingTask) -> Sorting: ...
def build_task(spec: TaskSpec) -> Task:
    """The task that ``spec`` describes."""
    match spec:
        case AdditionTask():
            return Addition(spec)
        case DigitsTask():
            return Digits(spec)
        case SortingTask():
            return Sorting(spec)
