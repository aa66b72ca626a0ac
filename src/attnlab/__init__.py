"""attnlab: a laboratory for small transformers that runs on a laptop's CPU."""

from typing import TYPE_CHECKING

from attnlab.cores import bound_spinning
from attnlab.lazy import on_demand

bound_spinning()

if TYPE_CHECKING:
    from attnlab.drawn import task
    from attnlab.errors import InputError
    from attnlab.front.any_model import examples, wrap
    from attnlab.registry import register
    from attnlab.sets import Examples, Pairs, Shown, Splits
    from attnlab.spec.task import Task, Tokens
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Examples", "InputError", "Pairs", "Shown", "Splits", "Task", "Tokens", "examples", "register", "task",
    "wrap",
]  # fmt: skip
