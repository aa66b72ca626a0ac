"""What people see: results on standard output, as tables or as JSON."""

import json as plain_json
import re
import sys
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any

from rich.text import Text

from attnlab.cli.fitting import fitted
from attnlab.display import console
from attnlab.errors import printable
from attnlab.results import Part, Result, Table
from attnlab.specs import to_json

_UNESCAPED = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that steer terminals and that JSON may hold as they are."""


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def print_text(*lines: str, end: str = "\n") -> None:
    """Lines as they are, but for characters that would steer a terminal."""
    for line in lines:
        print(printable(line), end=end)


def print_json(value: Any) -> None:
    """The machine-readable form of a result, or of plain values."""
    text = plain_json.dumps(to_json(value), indent=2, ensure_ascii=False)
    print(_escaped(text))


def _escaped(text: str) -> str:
    return text if text.isprintable() else _UNESCAPED.sub(_escape, text)


def print_json_list(values: Iterable[Any]) -> None:
    """The same of a list whose values come one after the other; one that fails leaves it unfinished."""
    begin = "[\n"
    for value in values:
        text = plain_json.dumps(to_json(value), indent=2, ensure_ascii=False)
        print(begin + indent(_escaped(text), "  "), end="")
        begin = ",\n"
    print("\n]" if begin == ",\n" else "[]")


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
            print_text(part)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; the first column is text, all others are aligned as numbers."""
    screen = console(sys.stdout)
    screen.print(Text(printable(title), style="bold"))
    cells = [[printable(cell) for cell in row] for row in rows]
    for part in fitted([printable(each) for each in columns], cells, screen.width):
        screen.print(part)


def print_lines(lines: Sequence[Text]) -> None:
    """Lines that are as long as they are: never broken, coloured only in a terminal."""
    screen = console(sys.stdout)
    for line in lines:
        line.plain = printable(line.plain)
        screen.print(line, soft_wrap=True)
