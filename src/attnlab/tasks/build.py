"""From a task spec to a task."""

from attnlab.spec import TaskSpec
from attnlab.tasks.addition import Addition


def build_task(spec: TaskSpec) -> Addition:
    """The task that ``spec`` describes."""
    return Addition(spec)
