"""Whatever a loss of power leaves of a training, the run opens and ends with the same bytes.

``benchmarks/faults.py`` does the same at more moments, with more kinds of training.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from attnlab.runs import create_run
from attnlab.training import train_run
from power_training import spec_of, wrong_after_loss
from powerloss import Change, Disk, build, compiler, lose_power, record

needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler (cc) on Linux")
CUTS = 16


@pytest.fixture(scope="module", autouse=True)
def _unflushed() -> Iterator[None]:
    """No power is lost while the tests resume."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def changes(*lines: str) -> list[Change]:
    found = []
    for line in lines:
        kind, inode, path, *rest = line.split()
        data, other = (rest[0].encode(), "") if kind == "W" else (b"", "".join(rest))
        found.append(Change(kind, int(inode), 0, data, path, other))
    return found


def after(lines: list[str], folder: Path) -> set[tuple[tuple[str, bytes], ...]]:
    """All that may be there, in a hundred losses."""
    found = set()
    for number in range(100):
        lose_power(changes(*lines), len(lines), folder / str(number), Random(number))
        files = sorted(path for path in (folder / str(number)).rglob("*") if path.is_file())
        found.add(tuple((path.name, path.read_bytes()) for path in files))
    return found


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["C 1 a", "W 1 a ab"], {(), *((("a", each),) for each in (b"", b"ab", b"\0\0", b"\0"))}),
        (["C 1 a", "W 1 a ab", "D 9 ."], {(("a", each),) for each in (b"", b"ab", b"\0\0", b"\0")}),
        (["C 1 a", "W 1 a ab", "S 1 a"], {(), (("a", b"ab"),)}),
        (["C 1 a", "W 1 a ab", "S 1 a", "D 9 ."], {(("a", b"ab"),)}),
        (["C 1 a", "D 9 .", "R 0 a b"], {(("a", b""),), (("b", b""),)}),
        (["C 1 a", "D 9 .", "R 0 a b", "D 9 ."], {(("b", b""),)}),
        (
            ["C 1 a", "C 2 b", "D 9 .", "U 0 a", "U 0 b"],
            {(("a", b""), ("b", b"")), (("a", b""),), (("b", b""),), ()},
        ),
        (["K 0 f", "C 1 f/a", "D 9 f"], {(), (("a", b""),)}),
    ],
)
def test_what_is_not_flushed_may_be_lost(
    lines: list[str], left: set[tuple[tuple[str, bytes], ...]], tmp_path: Path
) -> None:
    assert after(lines, tmp_path) == left


def test_a_journal_keeps_the_order_of_names() -> None:
    disk = Disk(in_order=True)
    for change in changes("K 0 f", "C 1 a", "C 2 f/b", "D 9 f"):
        disk.apply(change)
    assert disk.unsafe == []
    disk = Disk(in_order=False)
    for change in changes("K 0 f", "C 1 a", "C 2 f/b", "D 9 f"):
        disk.apply(change)
    assert len(disk.unsafe) == 2


def test_what_is_not_known_is_no_change_without_a_word() -> None:
    with pytest.raises(ValueError, match="cannot lose what writev does to x"):
        Disk(in_order=True).apply(Change("?", 0, 0, b"", "writev", "x"))


@needs_compiler
def test_a_run_outlives_a_loss_of_power(tmp_path: Path) -> None:
    spec = spec_of("addition", tmp_path)
    train_run(create_run(tmp_path / "whole", spec))
    (tmp_path / "root").mkdir()
    script = str(Path(__file__).with_name("power_training.py"))
    command = [sys.executable, script, str(tmp_path / "root"), "addition", str(tmp_path)]
    done = record(command, root=tmp_path / "root", library=build(tmp_path))
    assert len(done) > 300
    for number in range(CUTS):
        chance = Random(number)
        place, at = tmp_path / f"cut-{number}", int((number + chance.random()) / CUTS * len(done))
        marks = lose_power(done, at, place, chance)
        assert wrong_after_loss(place, marks, tmp_path / "whole", spec) == "", f"behind change {at}"
