"""What only a run's task can be asked: its own analyses, as methods of the run."""

from collections.abc import Callable
from functools import partial
from inspect import getdoc, signature
from typing import Any

from attnlab.display import Meter
from attnlab.errors import AnalysisError, brief, nearest
from attnlab.results import Result
from attnlab.runs import RunFolder

GIVEN = ("progress", "keep")
"""Parameters of an analysis that users do not set."""


def own_names(run: RunFolder) -> list[str]:
    """Those that can be methods; others, such as what studies measure, cannot."""
    return [name for name in run.spec().task.analyses() if name.isidentifier()]


def own_analysis(run: RunFolder, name: str) -> Callable[..., Result]:
    """The analysis ``name`` of the task, asked of ``run`` with progress."""
    task = run.spec().task
    known = task.analyses()
    if name not in known:
        raise AnalysisError(
            f"run {run.name} does the task {brief(task.kind)}, which has no {brief(name)}"
            f"{nearest(name, own_names(run))}"
        )
    asked = known[name]
    takes = [each for each in signature(asked).parameters if each not in GIVEN]

    def ask(**options: Any) -> Result:
        for option in options:
            if option not in takes:
                raise AnalysisError(
                    f"{name} of the task {brief(task.kind)} has no {brief(option)}{nearest(option, takes)}"
                )
        with Meter(name, 1) as meter:
            return asked(run, **options, progress=meter.update)

    plain = asked.func if isinstance(asked, partial) else asked
    _, *parameters = signature(asked).parameters.values()
    ask.__name__, ask.__doc__ = name, getdoc(plain)
    ask.__signature__ = signature(asked).replace(  # type: ignore[attr-defined]
        parameters=[each for each in parameters if each.name not in GIVEN]
    )
    return ask
