"""What people see: results on standard output, progress on standard error.

A bar with an estimate in a terminal, a plain line now and then in a pipe or a log. Nothing depends on
colour.
"""

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from attnlab.cli.fitting import fitted
from attnlab.spec import to_json

PIPE_WIDTH = 240
SECONDS_BETWEEN_LINES = 10.0


def print_json(value: Any) -> None:
    """The machine-readable form of a result, or of plain values."""
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; the first column is text, all others are aligned as numbers."""
    screen = console(sys.stdout)
    screen.print(Text(title, style="bold"))
    for part in fitted(columns, rows, screen.width):
        screen.print(part)


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


@final
class Meter:
    """Progress of one piece of work, with an estimate of what is left."""

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._began = time.monotonic()
        self._first: int | None = None
        self._last_line = self._began
        screen = console(sys.stderr)
        self._bar = None
        if screen.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}"),
                console=screen,
            )
            self._task = self._bar.add_task(name, total=total, note="")

    def __enter__(self) -> "Meter":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """``done`` of ``total`` are finished."""
        self._total = total or self._total
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self._total)
            if note is not None:
                self._bar.update(self._task, note=note)
            return
        if self._first is None:
            self._first, self._began = done, time.monotonic()
        if time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            say(f"{self._name}: {done:,} of {self._total:,}{self._estimate(done)}")

    def line(self, text: str | Text) -> None:
        """A line that stays, above the bar."""
        if self._bar is not None:
            self._bar.console.print(Text(text) if isinstance(text, str) else text, soft_wrap=True)
        else:
            say(str(text))

    def _estimate(self, done: int) -> str:
        finished = done - (self._first or 0)
        if finished <= 0:
            return ""
        left = (time.monotonic() - self._began) / finished * (self._total - done)
        return f", about {duration(left)} left"


def console(stream: Any) -> Console:
    """Where to print: as wide as the terminal, or wide enough for any table in a pipe."""
    return _Screen(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


@final
class _Screen(Console):
    """A console that leaves it to the command what becomes of output that nobody reads."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end the program with 1
