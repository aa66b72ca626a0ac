"""Tables in the width that there is: no cell is ever cut or dropped.

A last column of sentences is wrapped. What does not fit as one table loses the columns that say the same in
every row to a line above it. What is still too wide is stacked: tables below each other that all begin with
the columns that identify a row. Where not even one column fits next to those, each row is printed line by
line.
"""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

Column = tuple[str, list[str]]
"""A name, and the cells below it."""
_BETWEEN = 3  # signs that a table puts between two columns
_EDGES = 2  # and around all of them
_SENTENCE = 5  # words
_PROSE = 30  # signs in a line of a wrapped column, at least


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[Table | Text]:
    """All cells, as one table if it fits."""
    every = [(name, [row[place] for row in rows]) for place, name in enumerate(columns)]
    if _width(every) <= width:
        return [_table(every)]
    if _is_prose(every[-1]) and _width([*every[:-1], ("", ["x" * _PROSE])]) <= width:
        return [_table(every, wrapped=width)]
    same = [column for column in every[1:] if _is_constant(column)]
    told = ", ".join(f"{name} {cells[0]}".strip() for name, cells in same)
    differing = every[:1] + [column for column in every[1:] if not _is_constant(column)]
    return [*([Text(f"in every row: {told}")] if same else []), *_stacked(differing, width)]


def _stacked(every: list[Column], width: int) -> list[Table | Text]:
    key, others = _parted(every)
    if any(_width(key + beside) > width for beside in [[column] for column in others] or [[]]):
        return _row_by_row(every)
    tables: list[list[Column]] = [key]
    for column in others:
        if _width([*tables[-1], column]) > width:
            tables.append(key)
        tables[-1] = [*tables[-1], column]
    return [_table(table) for table in tables]


def _parted(every: list[Column]) -> tuple[list[Column], list[Column]]:
    """The first columns, as many as tell all rows apart, and the others; one column if none do."""
    rows = len(every[0][1])
    for count in range(1, len(every) + 1):
        if len(set(zip(*(cells for _, cells in every[:count]), strict=True))) == rows:
            return every[:count], every[count:]
    return every[:1], every[1:]


def _row_by_row(every: list[Column]) -> list[Table | Text]:
    """A line for each cell, and an empty one after each row."""
    names = [f"{name}: " if name else "" for name, _ in every]
    rows = zip(*(cells for _, cells in every), strict=True)
    return [Text("".join(f"{each}{cell}\n" for each, cell in zip(names, row, strict=True))) for row in rows]


def _is_constant(column: Column) -> bool:
    """Whether a column of several rows says one thing."""
    _, cells = column
    return len(cells) > 1 and cells[0] != "" and len(set(cells)) == 1


def _is_prose(column: Column) -> bool:
    """Whether a column holds sentences, which may be broken between words."""
    return any(len(cell.split()) >= _SENTENCE for cell in column[1])


def _width(every: list[Column]) -> int:
    widest = [max(map(cell_len, [name, *cells])) for name, cells in every]
    return sum(widest) + _BETWEEN * (len(every) - 1) + _EDGES


def _table(every: list[Column], *, wrapped: int | None = None) -> Table:
    """The first column is text, all others are aligned as numbers; ``wrapped`` is the width to which a last
    column of sentences is broken.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False, width=wrapped)
    for place, column in enumerate(every):
        words = place == 0 or _is_prose(column)
        broken = wrapped is not None and place == len(every) - 1
        table.add_column(Text(column[0]), justify="left" if words else "right", no_wrap=not broken)
    for row in zip(*(cells for _, cells in every), strict=True):
        table.add_row(*map(Text, row))  # names are no markup
    return table
