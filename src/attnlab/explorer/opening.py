"""Opening the explorer in the browser."""

from importlib import import_module
from typing import TYPE_CHECKING

from attnlab.errors import LabError

if TYPE_CHECKING:
    from attnlab.explorer.library import Library

MISSING = "the explorer needs the package {}; install it with: pip install 'attnlab[explorer]'"


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


def require(name: str) -> None:
    """Refuse to go on without a package of the extra."""
    try:
        import_module(name)
    except ImportError as error:
        raise LabError(MISSING.format(name)) from error
