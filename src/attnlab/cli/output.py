"""What people see: results on standard output, progress on standard error; and how they stop what they see.

A bar with an estimate in a terminal, a plain line now and then in a pipe or a log. Nothing depends on
colour.
"""

import json as plain_json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Self, TypeVar, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from attnlab.cli.fitting import fitted
from attnlab.progress import Stages
from attnlab.spec import to_json

R = TypeVar("R")

PIPE_WIDTH = 240
CELL = 14  # columns that a number with its interval takes in a table
SECONDS_BETWEEN_LINES = 10.0


def print_json(value: Any) -> None:
    """The machine-readable form of a result, or of plain values."""
    print(plain_json.dumps(to_json(value), indent=2, ensure_ascii=False))


def tell(result: R, show: Callable[[R], object], *, json: bool) -> None:
    """A result as ``show`` prints it, or as JSON."""
    if json:
        print_json(result)
    else:
        show(result)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; the first column is text, all others are aligned as numbers."""
    screen = console(sys.stdout)
    screen.print(Text(title, style="bold"))
    for part in fitted(columns, rows, screen.width):
        screen.print(part)


def in_parts(names: Sequence[str], label: int) -> list[Sequence[str]]:
    """Columns in parts that fit into the terminal, with intervals and beside a ``label`` so wide."""
    room = max(1, (console(sys.stdout).width - label - 2) // CELL)
    return [names[start : start + room] for start in range(0, len(names), room)]


def print_lines(lines: Sequence[Text]) -> None:
    """Lines that are as long as they are: never broken, coloured only in a terminal."""
    screen = console(sys.stdout)
    for line in lines:
        screen.print(line, soft_wrap=True)


def say(text: str) -> None:
    """A sentence beside the result."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """``8 s``, ``2 min 5 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


class Bars:
    """How far some work is: bars in a terminal, and a plain line now and then elsewhere."""

    def __init__(self, name: str, total: int, done: int = 0) -> None:
        self._name = name
        self._total = total
        self._began = self._last_line = time.monotonic()
        self._bars: Progress | None = None
        screen = console(sys.stderr)
        if screen.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),  # names are no markup
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}", markup=False),
                console=screen,
            )
            self._whole = self._bars.add_task(name, total=total, completed=done, note="")

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def line(self, text: str | Text) -> None:
        """A line that stays, above the bars."""
        if self._bars is not None:
            self._bars.console.print(Text(text) if isinstance(text, str) else text, soft_wrap=True)
        else:
            say(str(text))

    def _is_time(self) -> bool:
        """Whether the last plain line is long enough ago."""
        now = time.monotonic()
        if now - self._last_line < SECONDS_BETWEEN_LINES:
            return False
        self._last_line = now
        return True

    def _left(self, gone: float, rest: float) -> str:
        """How long ``rest`` will take if it goes on as ``gone`` went since the beginning."""
        return (
            f", about {duration((time.monotonic() - self._began) / gone * rest)} left" if gone > 0 else ""
        )


@final
class Meter(Bars):
    """Progress of one piece of work, with an estimate of what is left."""

    _first: int | None = None

    def update(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """``done`` of ``total`` are finished."""
        self._total = total or self._total
        if self._bars is not None:
            self._bars.update(self._whole, completed=done, total=self._total)
            if note is not None:
                self._bars.update(self._whole, note=note)
            return
        if self._first is None:
            self._first, self._began = done, time.monotonic()
        if self._is_time():
            left = self._left(done - self._first, self._total - done)
            say(f"{self._name}: {done:,} of {self._total:,}{left}")


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
    """Ctrl-C and SIGTERM ask training to stop after the current step; a second one interrupts at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def console(stream: Any) -> Console:
    """Where to print: as wide as the terminal, or wide enough for any table in a pipe."""
    return _Screen(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


@final
class _Screen(Console):
    """A console that leaves it to the command what becomes of output that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end the program with 1
