"""Of two results of one analysis a run keeps the fuller: a quick look at few inputs costs nothing."""

from typing import Any

from attnlab.runs.folder import Run


def keep_fullest(run: Run, name: str, found: dict[str, Any], *sizes: str) -> None:
    """Keep ``found`` under ``name``, unless what is kept there is larger in one of ``sizes``."""
    if why_kept_stays(run, name, found, *sizes) is None:
        run.keep_analysis(name, found)


def why_kept_stays(run: Run, name: str, found: dict[str, Any], *sizes: str) -> str | None:
    """In which size the kept result is larger than ``found``, as a sentence; None if in none. ``sizes``
    are keys of both.
    """
    kept = None if run.shipped else run.analysis(name)
    if kept is None:
        return None
    for size in sizes:
        if kept.get(size, 0) > found[size]:
            file = run.file(f"analysis/{name}.json")
            return f"{file} stays as it is: it is of {kept[size]:,} {size}, this is of {found[size]:,}"
    return None
