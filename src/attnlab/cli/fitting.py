"""Tables in the width that there is: no cell is ever cut or dropped.

Names of columns and cells with sentences are broken between words. What then does not fit as one table
loses the columns that say the same in every row to a line above it. What is still too wide is stacked:
tables below each other that all begin with the columns that identify a row. Where not even one column fits
next to those, each row is printed line by line.
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
_SENTENCE = 6  # words
_PROSE = 24  # signs in a line of sentences, at least


def fitted(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[Table | Text]:
    """All cells, as one table if it fits."""
    every = [(name, [row[place] for row in rows]) for place, name in enumerate(columns)]
    if _width(every) <= width:
        return [_table(every)]
    if _narrowest(every) <= width:
        return [_broken_table(every, width)]
    same, differing = _parted_by_change(every, width)
    told = ", ".join(f"{name} {cells[0]}".strip() for name, cells in same)
    above = [Text(f"in every row: {told}")] if same else []
    if same and _width(differing) > width and _narrowest(differing) <= width:
        return [*above, _broken_table(differing, width)]
    return [*above, *_stacked(differing, width)]


def _parted_by_change(every: list[Column], width: int) -> tuple[list[Column], list[Column]]:
    """Columns that say the same in every row, and the others. Where nothing but the first differs, only as
    many are taken away, from the left, as make the table fit.
    """
    same = [column for column in every[1:] if _is_constant(column)]
    differing = every[:1] + [column for column in every[1:] if not _is_constant(column)]
    if all(not any(cells) for _, cells in differing[1:]) or len(differing) <= 2:
        for count in range(1, len(same)):
            rest = [column for column in every if not any(column is each for each in same[:count])]
            if _narrowest(rest) <= width:
                return same[:count], rest
    return same, differing


def _stacked(every: list[Column], width: int) -> list[Table | Text]:
    key, others = _parted(every)
    if any(_width(key + beside) > width for beside in [[column] for column in others] or [[]]):
        return [_broken_table(every, width)] if _narrowest(every) <= width else _row_by_row(every)
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


def _least(column: Column) -> int:
    """How narrow a column can be: names are broken between words, and so are sentences."""
    name, cells = column
    if _is_prose(column):
        return _PROSE
    return max(map(cell_len, [*name.split(), *cells]), default=0)


def _narrowest(every: list[Column]) -> int:
    return sum(map(_least, every)) + _BETWEEN * (len(every) - 1) + _EDGES


def _table(every: list[Column]) -> Table:
    """The first column and sentences are text, all others are aligned as numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, (name, _) in enumerate(every):
        words = place == 0 or _is_prose(every[place])
        table.add_column(Text(name), justify="left" if words else "right", no_wrap=True)
    return _filled(table, every)


def _broken_table(every: list[Column], width: int) -> Table:
    """A table whose names are broken between words, and its sentences where the width ends."""
    prose = [place for place, column in enumerate(every) if _is_prose(column)]
    left = width - _narrowest(every)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(every):
        words = place == 0 or place in prose
        wide = _least(column) + (left // len(prose) if place in prose else 0)
        table.add_column(Text(column[0]), justify="left" if words else "right", width=wide)
    return _filled(table, every)


def _filled(table: Table, every: list[Column]) -> Table:
    for row in zip(*(cells for _, cells in every), strict=True):
        table.add_row(*map(Text, row))  # names are no markup
    return table
