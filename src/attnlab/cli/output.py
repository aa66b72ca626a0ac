"""What people see: results on standard output, as tables or as JSON."""

import json as plain_json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from attnlab.cli.fitting import fitted
from attnlab.display import console
from attnlab.results import Part, Result, Table
from attnlab.specs import to_json


def print_json(value: Any) -> None:
    """The machine-readable form of a result, or of plain values."""
    print(plain_json.dumps(to_json(value), indent=2, ensure_ascii=False))


def print_result(result: Result, *, json: bool) -> None:
    """A result as JSON, or as its tables and sentences."""
    if json:
        print_json(result)
    else:
        print_parts(result.tables())


def print_parts(parts: Iterable[Part]) -> None:
    for part in parts:
        if isinstance(part, Table):
            print_table(part.title, part.columns, part.rows)
        else:
            print(part)


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
