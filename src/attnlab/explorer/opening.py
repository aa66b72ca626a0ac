"""Opening the explorer from Python: a widget in a notebook, elsewhere a page in the browser."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from attnlab.display import in_notebook
from attnlab.errors import LabError

if TYPE_CHECKING:
    from attnlab.explorer.library import Library
    from attnlab.explorer.widget import Explorer

MISSING = "the explorer needs the package {}; install it with: pip install 'attnlab[explorer]'"


def open_explorer(
    library: "Library", text: str, *, serve: bool | None, port: int, browser: bool
) -> "Explorer | None":
    """The first of the library as a widget, or None when the server has ended. ``serve`` None is whatever
    suits the place.
    """
    name = next(iter(library.shelves()))
    if serve is None:
        serve = not shows_widgets()
    if not serve:
        require("anywidget")
        from attnlab.explorer.widget import Explorer

        return Explorer(library, name, text)
    serve_library(library, start=name, text=text, port=port, browser=browser)
    return None


def serve_library(
    library: "Library",
    *,
    start: str = "",
    text: str = "",
    host: str = "",
    port: int = 0,
    browser: bool = True,
) -> None:
    """Serve until Ctrl-C; an empty ``host`` is this computer alone."""
    for name in ("fastapi", "uvicorn", "websockets"):
        require(name)
    from attnlab.explorer.security import LOOPBACK
    from attnlab.explorer.server import serve

    serve(library, start=start, text=text, host=host or LOOPBACK, port=port, browser=browser)


def shows_widgets() -> bool:
    """Whether we are in a notebook of Jupyter or marimo."""
    marimo = sys.modules.get("marimo")
    return in_notebook() or (marimo is not None and marimo.running_in_notebook())


def require(name: str) -> None:
    """Refuse to go on without a package of the extra."""
    try:
        import_module(name)
    except ImportError as error:
        raise LabError(MISSING.format(name)) from error
