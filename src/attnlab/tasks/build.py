"""From a task spec to a task."""

from typing import overload

from attnlab.spec import AdditionTask, DigitsTask, TaskSpec
from attnlab.tasks.addition import Addition
from attnlab.tasks.digits import Digits

Task = Addition | Digits


@overload
def build_task(spec: AdditionTask) -> Addition: ...
@overload
def build_task(spec: DigitsTask) -> Digits: ...
def build_task(spec: TaskSpec) -> Task:
    """The task that ``spec`` describes."""
    match spec:
        case AdditionTask():
            return Addition(spec)
        case DigitsTask():
            return Digits(spec)
