"""Sheets on desks, shadows, squared paper and drawn tables: what is no digit is left out."""

import numpy as np
import pytest
from numpy import ndarray
from PIL import Image

from attnlab.data import ink
from attnlab.data.lines import cells_between, without_lines
from attnlab.data.mnist import load_sample
from attnlab.data.sheets import extreme, find_sheet, threshold

SIDE = 181


def digit(number: int, side: int = 90) -> ndarray:
    """A digit of MNIST, enlarged."""
    image = Image.fromarray(load_sample().test_images[number].numpy())
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC)) / 255


def page(number: int, *, paper: float = 0.9, pen: float = 0.15) -> ndarray:
    """Dark on bright paper with a margin."""
    drawn = np.pad(digit(number), ((43, 48), (47, 44)))
    return paper + (pen - paper) * drawn


def turned(picture: ndarray, degrees: float, fill: float) -> ndarray:
    image = Image.fromarray(picture.astype(np.float32))
    return np.asarray(image.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=fill), dtype=np.float64)


def noisy(picture: ndarray) -> ndarray:
    return np.clip(picture + np.random.default_rng(5).normal(0, 0.008, picture.shape), 0, 1)


def alike(found: ndarray, number: int) -> float:
    """The correlation with what is read of the digit on a clean page."""
    wanted = ink.read_digits(page(number), "a")
    return float(np.corrcoef(found.ravel(), wanted.ravel())[0, 1])


def on_a_desk(number: int, degrees: float = 0.0) -> ndarray:
    desk = np.full((257, 251), 0.2)
    sheet = np.pad(np.ones((SIDE, SIDE)), ((38, 38), (30, 40)))
    written = np.pad(page(number), ((38, 38), (30, 40)), constant_values=0.9)
    sheet, written = turned(sheet, degrees, 0), turned(written, degrees, 0.9)
    return noisy(sheet * written + (1 - sheet) * desk)


def on_squares(number: int, level: float, degrees: float) -> ndarray:
    """On squared paper whose lines are as bright as ``level``."""
    paper = np.full((SIDE, SIDE), 0.9)
    paper[7::23] = paper[:, 11::23] = level
    return turned(np.minimum(paper, page(number)), degrees, 0.9)


def in_a_table(degrees: float) -> ndarray:
    """The digits 3, 1, 4 and 6 in a drawn table with uneven cells and a margin."""
    ends = (20, 165, 270)
    paper = np.zeros((290, 290))
    numbers = iter((3, 1, 4, 6))
    for top in ends[:2]:
        for left in ends[:2]:
            paper[top + 8 : top + 98, left + 8 : left + 98] = digit(next(numbers))
    for end in ends:
        paper[end : end + 3, ends[0] : ends[-1] + 3] = 1
        paper[ends[0] : ends[-1] + 3, end : end + 3] = 1
    return noisy(0.9 - 0.75 * turned(paper, degrees, 0))


@pytest.mark.parametrize("number", range(7))
def test_the_desk_around_a_sheet_is_no_ink(number: int) -> None:
    for picture in (on_a_desk(number), 1 - on_a_desk(number)):
        assert alike(ink.read_digits(picture, "a"), number) > 0.8


def test_a_sheet_may_be_turned() -> None:
    found = find_sheet(on_a_desk(3, 12))
    assert found is not None
    mask, bright = found
    assert bright
    assert 0.3 < mask.mean() < SIDE**2 / (257 * 251)
    assert alike(ink.read_digits(turned(on_a_desk(3, 12), -12, 0.2), "a"), 3) > 0.9


def test_a_digit_with_a_hole_is_no_sheet() -> None:
    down, across = np.mgrid[-1:1:200j, -1:1:200j]
    ring = ((down / 0.8) ** 2 + (across / 0.6) ** 2 < 1) & ((down / 0.5) ** 2 + (across / 0.25) ** 2 > 1)
    block = (np.maximum(abs(down) / 0.8, abs(across) / 0.5) < 1) & (
        np.maximum(abs(down) / 0.5, abs(across) / 0.2) > 1
    )
    for drawn in (ring, block):
        assert find_sheet(drawn * 0.9) is None
        assert find_sheet(0.9 - 0.8 * drawn) is None


@pytest.mark.parametrize("way", [(1.0, 0.3), (-0.2, 1.0), (0.6, -0.8)])
def test_a_shadow_is_no_ink(way: tuple[float, float]) -> None:
    down, across = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    light = np.where(way[0] * down + way[1] * across > 0.1, 1.0, 0.45)
    for number in (2, 4, 6):
        assert alike(ink.read_digits(noisy(page(number) * light), "a"), number) > 0.85


@pytest.mark.parametrize("level", [0.75, 0.3])
@pytest.mark.parametrize("degrees", [0, 3])
def test_the_lines_of_paper_are_no_ink(level: float, degrees: float) -> None:
    """Whether they are fainter than the pen or not."""
    for number in (1, 3, 5):
        found = ink.read_digits(on_squares(number, level, degrees), "a")
        wanted = ink.read_digits(turned(page(number), degrees, 0.9), "a")
        assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.7


@pytest.mark.parametrize("degrees", [0, -4, 3])
def test_a_drawn_table_is_cut_along_its_lines(degrees: float) -> None:
    found = ink.read_digits(in_a_table(degrees), "a", rows=2, columns=2)
    cells = (found[:28, :28], found[:28, 28:], found[28:, :28], found[28:, 28:])
    for cell, number in zip(cells, (3, 1, 4, 6), strict=True):
        assert alike(cell, number) > 0.8


def test_a_digit_alone_has_no_lines() -> None:
    seven = np.zeros((97, 71))
    seven[5:8, 3:68] = seven[5:93, 60:63] = 1
    assert without_lines(seven) is None
    frame = np.zeros((97, 71))
    frame[[2, -3]] = frame[:, [2, -3]] = 1
    assert without_lines(frame) is None  # nothing else is there


def test_cells_are_between_as_many_lines_as_they_need() -> None:
    assert cells_between([3.0, 50.0, 97.0], 2, 100) == [(3, 50), (50, 97)]
    assert cells_between([40.0], 2, 100) == [(0, 40), (40, 100)]
    assert cells_between([40.0, 60.0, 80.0, 90.0], 2, 100) is None
    assert cells_between([3.0, 8.0, 97.0], 2, 100) is None  # too narrow for a digit


def test_cells_that_are_uneven_are_parted_where_there_is_no_ink() -> None:
    four = np.zeros((150, 150))
    for number, (top, left) in enumerate([(0, 0), (0, 84), (60, 0), (60, 84)]):
        four[top : top + 60, left : left + 60] = digit(number, 60)
    found = ink.read_digits(0.9 - 0.8 * four, "a", rows=2, columns=2)
    for number, cell in enumerate((found[:28, :28], found[:28, 28:], found[28:, :28], found[28:, 28:])):
        assert alike(cell, number) > 0.9


def test_the_level_parts_two_halves_and_windows_hold_their_extremes() -> None:
    assert 0.2 < threshold(np.repeat([[0.2, 0.8]], 11, axis=0)) < 0.8
    values = np.random.default_rng(3).uniform(0, 1, (13, 17))
    wanted = np.array([[values[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].max() for x in range(17)]
                       for y in range(13)])  # fmt: skip
    assert np.array_equal(extreme(values, 5), wanted)
    assert np.array_equal(extreme(-values, 5, least=True), -wanted)
