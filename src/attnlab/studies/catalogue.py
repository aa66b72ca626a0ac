"""The studies there are: those of every task, and of a file of your own, ``--catalogue FILE``."""

import runpy
from collections.abc import Mapping
from pathlib import Path

from attnlab.errors import LabError, SpecError, nearest
from attnlab.registry import find_task, task_names
from attnlab.studies.study import Study


def find_study(name: str, studies: Mapping[str, Study]) -> Study:
    """The study ``name``, or a sentence with the nearest."""
    if name not in studies:
        raise SpecError(f"{name!r} is no study{nearest(name, studies, command='attnlab study list')}")
    return studies[name]


def read_catalogue(path: Path | None = None) -> dict[str, Study]:
    """The studies of all tasks that can be found, and those of the Python file ``path``, which must define
    ``STUDIES``.
    """
    found = {study.name: study for task in task_names() for study in find_task(task).studies()}
    if path is None:
        return found
    try:
        added = runpy.run_path(str(path)).get("STUDIES")
    except LabError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's program
        raise SpecError(f"catalogue {path} cannot be run ({type(error).__name__}: {error})") from error
    if not isinstance(added, (list, tuple)) or not all(isinstance(study, Study) for study in added):
        raise SpecError(f"catalogue {path} must define STUDIES, a list of attnlab.studies.Study")
    return {**found, **{study.name: study for study in added}}
