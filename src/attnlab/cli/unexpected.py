"""What a command says of an error that nobody foresaw: one sentence, and a file that helps to fix it."""

import contextlib
import platform
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from attnlab.errors import ECHOED, shortened
from attnlab.storage import user_cache

FOLDER = "errors"
"""Where tracebacks are kept, in the user's cache; where that cannot be written, among temporary files."""


def describe(error: Exception, words: Sequence[str]) -> str:
    """A sentence about ``error``, which ended the command ``words``; its traceback is in a file."""
    what = shortened(" ".join(f"{type(error).__name__}: {error}".split()), ECHOED)
    path = _keep(_text(error, words))
    where = f"its traceback is in {path}" if path else "its traceback could not be saved"
    return f"unexpected error ({what}); {where}"


def _text(error: Exception, words: Sequence[str]) -> str:
    """All that helps: versions, the command, the traceback."""
    head = f"attnlab {version('attnlab')}, Python {platform.python_version()}, {platform.platform()}"
    command = " ".join(map(repr, ["attnlab", *words]))
    return f"{head}\n{command}\n\n{''.join(traceback.format_exception(error))}"


def _keep(text: str) -> Path | None:
    """Save ``text`` in the first place that can be written."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            prefix = time.strftime("%Y%m%d-%H%M%S-")
            handle, name = tempfile.mkstemp(".txt", prefix, folder)
            with open(handle, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                file.write(text)
            return Path(name)
    return None


def _folders() -> Iterator[Path]:
    with contextlib.suppress(OSError):
        own = user_cache() / FOLDER
        own.mkdir(parents=True, exist_ok=True)
        yield own
    with contextlib.suppress(OSError):
        yield Path(tempfile.gettempdir())
