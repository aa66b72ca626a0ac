"""Tables in terminals: every cell is there, whatever the width."""

import io
import sys
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.text import Text

from attnlab.cli.fitting import fitted
from attnlab.cli.output import print_table

COLUMNS = ("map", "image", "of", "entropy", "at most", "share", "peak", "at patch", "in front")
MAPS = [
    (f"encoder.{head}.self.0", "test:0", "received", f"3.8{head}", "3.89", f"9{head}%", "1.07", "3,6", "0%")
    for head in range(5)
]
SAID = [
    (f"decoder.0.cross.{head}", f"test:{image}", f"digit {digit}: 7", f"2.{head}{image}{digit}")
    for image in range(2)
    for head in range(2)
    for digit in range(3)
]


def printed(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lines on a screen of that width without what only parts them."""
    screen = io.StringIO()
    for part in fitted(columns, rows, width):
        Console(file=screen, width=width).print(part)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return [" ".join(line.split()) for line in lines if line.strip() and "──" not in line]


def test_what_fits_is_one_table() -> None:
    assert printed(COLUMNS, MAPS, 96) == [" ".join(row) for row in (COLUMNS, *MAPS)]
    assert printed(("ab", "[c]"), [("1", "[d]")], 10) == ["ab [c]", "1 [d]"]
    assert printed(("ab", "[c]"), [("1", "[d]")], 9) == ["ab: 1", "[c]: [d]"]


def test_columns_of_one_value_go_above() -> None:
    told = "in every row: image test:0, of received, at most 3.89, peak 1.07, at patch 3,6, in front 0%"
    for width in (80, 40):
        lines = printed(COLUMNS, MAPS, width)
        assert " ".join(lines[:-6]) == told
        assert lines[-6:] == ["map entropy share", *(f"{row[0]} {row[3]} {row[5]}" for row in MAPS)]
    assert printed(("name", "one", "none"), [("a", "5555", ""), ("b", "5555", "")], 16) == [
        "in every row:",
        "one 5555",
        "name none",
        "a",
        "b",
    ]


def test_tables_are_stacked_with_all_that_tells_rows_apart() -> None:
    columns = (*COLUMNS[:4], "peak of map")
    rows = [(*row, f"3.{place}") for place, row in enumerate(SAID)]
    one, other = ([(*row[:3], row[place]) for row in rows] for place in (3, 4))
    assert printed(columns, rows, 57) == [
        "map image of entropy",
        *map(" ".join, one),
        "map image of peak of map",
        *map(" ".join, other),
    ]


def test_rows_are_told_line_by_line_where_no_column_fits_beside_their_names() -> None:
    lines = printed(COLUMNS[:4], SAID, 40)
    assert lines[:4] == ["map: decoder.0.cross.0", "image: test:0", "of: digit 0: 7", "entropy: 2.000"]
    assert len(lines) == 4 * len(SAID)
    question = ("does the order of digits in the answer matter", "what does a head more bring")
    told = printed(
        ("", "seeds", "question"), [("order", "3", question[0]), ("heads", "5", question[1])], 40
    )
    assert (
        " ".join(told) == f"order seeds: 3 question: {question[0]} heads seeds: 5 question: {question[1]}"
    )


def test_a_last_column_of_sentences_is_wrapped() -> None:
    question = "does the order of digits in the answer matter for how fast a sum is learned"
    lines = printed(("study", "seeds", "question"), [("order", "3", question), ("heads", "5", "why")], 60)
    assert lines[0] == "study seeds question"
    assert " ".join(lines[1:]) == f"order 3 {question} heads 5 why"
    assert len(lines) == 4


def test_names_of_columns_are_broken_and_no_more_is_taken_away_than_must_be() -> None:
    columns = ("length", "lists", "accuracy", "95% interval", "says sorted", "")
    rows = [(str(n), "20", "100.00%", "83.89% to 100.00%", "50.00%", "") for n in (8, 16)]
    cells = " ".join(rows[0][1:]).strip()
    lines = printed(columns, rows, 62)
    assert lines == ["says", "length lists accuracy 95% interval sorted", f"8 {cells}", f"16 {cells}"]
    lines = printed(columns, rows, 55)
    assert lines[0] == "in every row: lists 20"
    assert lines[-1] == f"16 {cells.removeprefix('20 ')}"


def test_rows_that_are_the_same_go_by_their_first_column() -> None:
    rows = [("a" * 9, "1", "2"), ("a" * 9, "1", "2"), ("a" * 9, "3", "4")]
    lines = printed(("n", "wide one", "wide two"), rows, 24)
    one, other = ([f"{row[0]} {row[place]}" for row in rows] for place in (1, 2))
    assert lines == ["n wide one", *one, "n wide two", *other]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [80, 40])
def test_a_terminal_gets_all_that_a_pipe_gets(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "25")
    gains = [f"+0.{place}23 / -0.{place}34" for place in range(6)]
    rows = [
        (f"method {place}", f"8 (at {place})", f"0.{place}1", *[gains[place]] * 3) for place in range(6)
    ]
    shown = []
    for screen in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stdout", screen)
        print_table("why", ("method", "strongest", "rho", "zero", "mean", "resample"), rows)
        shown.append(Text.from_ansi(screen.getvalue()).plain)
    terminal, pipe = shown
    assert max(map(len, terminal.splitlines())) <= width < max(map(len, pipe.splitlines()))
    for row in rows:
        assert " ".join(row) in " ".join(pipe.split())
        assert all(terminal.count(cell) >= row.count(cell) for cell in row)
