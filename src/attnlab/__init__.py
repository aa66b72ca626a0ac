"""attnlab: a laboratory for small transformers that runs on a laptop's CPU."""

from typing import TYPE_CHECKING

from attnlab.cores import bound_spinning
from attnlab.lazy import on_demand

bound_spinning()

if TYPE_CHECKING:
    from attnlab.drawn import task
    from attnlab.errors import InputError
    from attnlab.front.any_model import examples, wrap
    from attnlab.front.diagnosing import diagnose
    from attnlab.front.loading import load
    from attnlab.front.run import Run
    from attnlab.front.specs import spec
    from attnlab.front.studying import compare, study, sweep
    from attnlab.front.training import train
    from attnlab.front.watching import watch
    from attnlab.runs.listing import list_runs
    from attnlab.sets import Examples, Pairs, Shown, Splits
    from attnlab.specs.task import Task, Tokens
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Examples", "InputError", "Pairs", "Run", "Shown", "Splits", "Task", "Tokens", "compare", "diagnose",
    "examples", "list_runs", "load", "spec", "study", "sweep", "task", "train", "watch", "wrap",
]  # fmt: skip
