"""What analyses refuse by looking at what is asked alone, before anything is loaded."""

from attnlab.errors import InputError, LabError
from attnlab.problems.addition import Addition
from attnlab.spec import Task

MOST_DIGITS = 3
VIEWS = (1, 5, 9)
"""Views of an image: itself, with its four neighbours, with the four corners too."""


def check_size(task: Task) -> Addition:
    """Refuse to verify other tasks, and operands with more pairs than anybody can wait for."""
    if not isinstance(task, Addition):
        raise LabError(
            f"verify decodes sums, but the task is {task.kind!r}; use 'attnlab evaluate' instead"
        )
    if task.digits > MOST_DIGITS:
        raise LabError(
            f"verify decodes every pair, and operands of {task.digits} digits have 10^{2 * task.digits}; "
            f"the limit is {MOST_DIGITS} digits, so use 'attnlab evaluate' instead"
        )
    return task


def check_views(views: int) -> None:
    """Refuse a number of views that would favour a side."""
    if views not in VIEWS:
        raise InputError(f"--views is {views}; it must be {', '.join(map(str, VIEWS[:-1]))} or {VIEWS[-1]}")
