"""Of two results of one analysis a run keeps the larger: a quick look at few inputs costs nothing."""

from typing import Any

from attnlab.results import Result
from attnlab.runs.folder import Run
from attnlab.spec import to_json


def save_if_larger(run: Run, name: str, found: Result | dict[str, Any], *sizes: str) -> None:
    """Keep ``found`` under ``name``, unless what is kept there is larger in one of ``sizes``."""
    if why_kept_stays(run, name, found, *sizes) is None:
        run.keep_analysis(name, to_json(found))


def why_kept_stays(run: Run, name: str, found: Result | dict[str, Any], *sizes: str) -> str | None:
    """In which size the kept result is larger than ``found``, as a sentence; None if in none. ``sizes``
    are keys of both.
    """
    kept = None if run.shipped else run.analysis(name)
    if kept is None:
        return None
    plain = to_json(found)
    for size in sizes:
        if kept.get(size, 0) > plain[size]:
            file = run.file(f"analysis/{name}.json")
            return f"{file} stays as it is: it is of {kept[size]:,} {size}, this is of {plain[size]:,}"
    return None
