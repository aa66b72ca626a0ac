"""Progress for people: a bar with an estimate in a terminal or a notebook, elsewhere a plain line now and
then; and how they stop what they see.

Progress goes to standard error, results to standard output. Nothing depends on colour.
"""

import html
import importlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from attnlab.errors import printable
from attnlab.progress import Stages

PIPE_WIDTH = 240
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BEFORE_ESTIMATE = 2.0  # of work that takes longer than the time between two lines
SECONDS_BETWEEN_BARS = 0.2  # in a notebook, where each is a message to a browser


def in_notebook() -> bool:
    """Whether output goes to cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def say(text: str) -> None:
    """A sentence beside the result; in a notebook on standard output, since the other one looks like an
    error there.
    """
    print(printable(text), file=sys.stdout if in_notebook() else sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """``8 s``, ``2 min 5 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


class _CellBar:
    """A bar in the output of a cell, replaced in place and gone at the end."""

    def __init__(self) -> None:
        shown: Any = importlib.import_module("IPython.display")
        self._html = shown.HTML
        self._handle = shown.display(shown.HTML(""), display_id=True)
        self._last = 0.0

    def show(self, share: float, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_BARS:
            self._last = now
            bar = f'<progress value="{share:.4f}" max="1"></progress> {html.escape(text)}'
            self._handle.update(self._html(bar))

    def close(self) -> None:
        self._handle.update(self._html(""))


class Bars:
    """How far some work is: bars in a terminal or a notebook, and a plain line now and then elsewhere."""

    def __init__(self, name: str, total: int, done: int = 0) -> None:
        self._name = printable(name, lines=False)
        self._total = total
        self._began = self._last_line = time.monotonic()
        self._estimated = False
        self._bars: Progress | None = None
        self._cell: _CellBar | None = None
        screen = console(sys.stderr)
        if in_notebook():
            self._cell = _CellBar()
        elif screen.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),  # names are no markup
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}", markup=False),
                console=screen,
            )
            self._whole = self._bars.add_task(self._name, total=total, completed=done, note="")

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
        if self._cell is not None:
            self._cell.close()

    def line(self, text: str | Text) -> None:
        """A line that stays, above the bars."""
        if self._bars is not None:
            shown = Text(printable(text)) if isinstance(text, str) else text
            self._bars.console.print(shown, soft_wrap=True)
        else:
            say(str(text))

    def _tell(self, share: float, text: str, left: float = 0.0) -> None:
        """Where there are no bars of a terminal: all of it in the cell, or as a line if it is time. How
        long slow work will take is said as soon as that can be judged.
        """
        slow = not self._estimated and left > SECONDS_BETWEEN_LINES
        pause = SECONDS_BEFORE_ESTIMATE if slow else SECONDS_BETWEEN_LINES
        if self._cell is not None:
            self._cell.show(share, text)
        elif time.monotonic() - self._last_line >= pause:
            self._last_line, self._estimated = time.monotonic(), True
            say(text)

    def _seconds_left(self, gone: float, rest: float) -> float | None:
        """How long ``rest`` will take if it goes on as ``gone`` went since the beginning."""
        return (time.monotonic() - self._began) / gone * rest if gone > 0 else None

    def _left(self, gone: float, rest: float) -> str:
        seconds = self._seconds_left(gone, rest)
        return "" if seconds is None else f", about {duration(seconds)} left"


@final
class Meter(Bars):
    """Progress of one piece of work, with an estimate of what is left."""

    _first: int | None = None
    _note = ""

    def update(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """``done`` of ``total`` are finished."""
        self._total = total or self._total
        self._note = self._note if note is None else printable(note, lines=False)
        if self._bars is not None:
            self._bars.update(self._whole, completed=done, total=self._total, note=self._note)
            return
        if self._first is None:
            self._first, self._began = done, time.monotonic()
        gone, rest = done - self._first, self._total - done
        note = f"   {self._note}" if self._note and self._cell is not None else ""
        text = f"{self._name}: {done:,} of {self._total:,}{self._left(gone, rest)}{note}"
        self._tell(done / max(1, self._total), text, self._seconds_left(gone, rest) or 0.0)


@contextmanager
def meters() -> Iterator[Stages]:
    """A meter for each stage."""
    with ExitStack() as stack:

        def begin(name: str) -> Callable[..., None]:
            stack.close()
            return stack.enter_context(Meter(name, 1)).update

        yield begin


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Ctrl-C, the interrupt of a notebook and SIGTERM ask training to stop after the current step; a second
    one interrupts at once. Only the main thread hears of signals.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def console(stream: Any) -> Console:
    """Where to print: as wide as the terminal, or wide enough for any table in a pipe."""
    return _Screen(file=stream, width=None if stream.isatty() else PIPE_WIDTH, force_jupyter=False)


@final
class _Screen(Console):
    """A console that leaves it to the command what becomes of output that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end the program with 1
