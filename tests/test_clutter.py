"""Borders, frames and ruled lines are no ink, and digits that look a little like them are."""

import numpy as np
import pytest
from numpy import ndarray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from attnlab.data.ink import frame_widths, read_digits, without_border, without_frame, without_rules

STROKES = {
    "1": [(50, 15, 50, 85)],
    "4": [(60, 15, 30, 60), (30, 60, 75, 60), (60, 15, 60, 85)],
    "7": [(25, 20, 75, 20), (75, 20, 40, 85)],
    "8": [(25, 10, 75, 10), (25, 90, 75, 90), (25, 10, 25, 90), (75, 10, 75, 90), (25, 50, 75, 50)],
}
STROKES["0"] = STROKES["8"][:4]


def page(text: str, *, rows: int = 1, margin: int = 0) -> Image.Image:
    """Digits with strokes of 7 pixels in cells of 101 x 97, and a margin around them."""
    columns = len(text) // rows
    image = Image.new("L", (101 * columns + 2 * margin, 97 * rows + 2 * margin), 255)
    draw = ImageDraw.Draw(image)
    for place, digit in enumerate(text):
        row, column = divmod(place, columns)
        left, top = 101 * column + margin, 97 * row + margin
        for ends in STROKES[digit]:
            moved = [end + (top if axis % 2 else left) for axis, end in enumerate(ends)]
            draw.line(moved, fill=0, width=7)
    return image


def ruled(image: Image.Image, width: int, *, rows: int, columns: int) -> Image.Image:
    """The picture with lines where its cells meet."""
    drawn = image.copy()
    draw = ImageDraw.Draw(drawn)
    for row in range(1, rows):
        draw.line((0, 97 * row, image.width, 97 * row), fill=0, width=width)
    for column in range(1, columns):
        draw.line((101 * column, 0, 101 * column, image.height), fill=0, width=width)
    return drawn


def framed(image: Image.Image, width: int, inset: int = 0) -> Image.Image:
    """The picture with a rectangle in it, ``inset`` pixels from its edge."""
    drawn = image.copy()
    box = (inset, inset, image.width - 1 - inset, image.height - 1 - inset)
    ImageDraw.Draw(drawn).rectangle(box, outline=0, width=width)
    return drawn


def read(image: Image.Image, *, rows: int = 1, columns: int = 1) -> ndarray:
    return read_digits(np.asarray(image) / 255, "it", rows=rows, columns=columns)


@pytest.mark.parametrize("width", [1, 3, 6])
def test_lines_between_cells_are_no_ink(width: int) -> None:
    plain = page("7417", rows=2)
    lined = ruled(plain, width, rows=2, columns=2)
    assert np.array_equal(read(lined, rows=2, columns=2), read(plain, rows=2, columns=2))
    row = page("741")
    lined = ruled(row, width, rows=1, columns=3)
    assert np.array_equal(read(lined, columns=3), read(row, columns=3))


def test_blurred_lines_are_no_ink() -> None:
    plain = page("7417", rows=2)
    blur = ImageFilter.GaussianBlur(1)
    lined = ruled(plain, 3, rows=2, columns=2).filter(blur)
    found, expected = (read(each, rows=2, columns=2) for each in (lined, plain.filter(blur)))
    assert np.abs(found.astype(int) - expected).max() <= 3


@pytest.mark.parametrize("width", [1, 4, 12])
@pytest.mark.parametrize("digit", ["7", "4", "1"])
def test_a_border_is_no_ink(width: int, digit: str) -> None:
    plain = page(digit, margin=20)
    for image in (framed(plain, width), ImageChops.invert(framed(plain, width))):
        assert np.array_equal(read(image), read(plain))


@pytest.mark.parametrize("digit", ["7", "4", "1", "8", "0"])
def test_a_frame_is_no_ink(digit: str) -> None:
    plain = page(digit, margin=20)
    assert np.array_equal(read(framed(plain, 3, inset=7)), read(plain))


def test_cells_are_those_of_the_frame() -> None:
    """Ruled and framed, on a page with a margin: the cells are cut out of what the frame holds."""
    plain = page("7417", rows=2)
    table = framed(ruled(plain, 3, rows=2, columns=2), 2)
    on_page = Image.new("L", (table.width + 60, table.height + 80), 255)
    on_page.paste(table, (40, 10))
    for image in (table, on_page):
        assert np.array_equal(read(image, rows=2, columns=2), read(plain, rows=2, columns=2))


@pytest.mark.parametrize("digit", ["0", "8"])
def test_a_digit_with_four_straight_sides_is_no_frame(digit: str) -> None:
    cropped = page(digit).crop((15, 2, 86, 97))
    found = read(cropped)
    assert without_frame(1 - np.asarray(cropped) / 255).shape == (95, 71)
    assert (found[5] > 0).sum() >= 10  # its upper bar
    assert bool(found[14, 14]) == (digit == "8")


def test_a_seven_that_fills_its_picture_keeps_its_bar() -> None:
    tight = page("7").crop((22, 17, 79, 88))
    ink = 1 - np.asarray(tight) / 255
    assert np.array_equal(without_rules(ink, 1, 1), ink)
    inked = (read(tight) > 0).sum(axis=1)
    assert inked[inked > 0][0] >= 15


def test_a_bar_that_fills_its_picture_is_no_paper() -> None:
    bar = np.zeros((97, 31))
    bar[3:-3, 3:-3] = 1
    assert without_border(bar).shape == (89, 23)
    found = read_digits(bar, "it")
    assert (found.sum(axis=1) > 0).sum() == 20


def test_a_broad_band_between_cells_is_ink() -> None:
    ink = np.zeros((80, 80))
    ink[36:44] = 1
    assert np.array_equal(without_rules(ink, 2, 2), ink)
    ink[:] = 0
    ink[38:41, 5:] = 1
    assert not without_rules(ink, 2, 2).any()
    assert np.array_equal(without_rules(ink, 1, 2), ink)  # no cells meet there


def test_frames_have_four_thin_sides() -> None:
    marked = np.ones((40, 32), dtype=bool)
    marked[5:-4, 3:-2] = False
    assert frame_widths(marked) == (5, 4, 3, 2)
    assert frame_widths(np.ones((40, 32), dtype=bool)) is None
    marked[:, -2:] = False
    assert frame_widths(marked) is None
