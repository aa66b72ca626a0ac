"""Pictures and strokes become digits in the page as they do in Python, and look as MNIST's digits do."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy import ndarray
from PIL import Image, ImageDraw

import test_sheets as sheets
from attnlab.data import ink
from attnlab.data.mnist import load_sample
from attnlab.errors import InputError
from page_modules import NODE, ask

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")


def grey(values: ndarray) -> dict[str, Any]:
    height, width = values.shape
    return {"height": height, "width": width, "grey": values.ravel().tolist()}


@cache
def digits() -> ndarray:
    images: ndarray = load_sample().test_images[:40].numpy()
    return images


def pictures() -> list[tuple[ndarray, int, int]]:
    """Pictures with all that is left out: uneven light, noise, specks, borders, frames, rules; cells."""
    generator = np.random.default_rng(7)
    made: list[tuple[ndarray, int, int]] = []
    for number, digit in enumerate(digits()[:12]):
        side = (31, 61, 101)[number % 3]
        large = np.asarray(Image.fromarray(digit).resize((side + 6, side), Image.Resampling.BICUBIC)) / 255
        picture = np.pad(large, ((3, 5), (7, 11)))
        down, across = np.mgrid[0 : picture.shape[0], 0 : picture.shape[1]]
        picture = 0.8 - 0.6 * picture - 0.001 * down + 0.0005 * across
        picture += generator.normal(0, 0.004, picture.shape)
        picture[1:3, -3:-1] = 0.1  # a speck
        made.append((np.clip(picture, 0, 1), 1, 1))
    four = np.block([[digits()[0], digits()[1]], [digits()[2], digits()[3]]]) / 255
    ruled = np.kron(four, np.ones((3, 3)))
    ruled[83:85] = ruled[:, 83:86] = 0.9
    framed = np.pad(ruled, 9)
    framed[4:6, 4:-4] = framed[-6:-4, 4:-4] = framed[4:-4, 4:6] = framed[4:-4, -6:-4] = 1
    made += [(ruled, 2, 2), (1 - framed, 2, 2), (np.pad(1 - ruled, 11, constant_values=0.3), 2, 2)]
    return made


def thin() -> ndarray:
    """A hair line, which is drawn again with a pen."""
    image = Image.new("L", (301, 307))
    ImageDraw.Draw(image).line([(40, 30), (250, 150), (60, 270)], fill=255, width=3)
    return np.asarray(image) / 255


def photos() -> list[tuple[ndarray, int, int]]:
    """What ``test_sheets`` makes: a sheet on a desk, a shadow, squared paper, a table."""
    down, across = np.mgrid[-1 : 1 : sheets.SIDE * 1j, -1 : 1 : sheets.SIDE * 1j]
    shadow = np.where(down + 0.3 * across > 0.1, 1.0, 0.45)
    faint, strong = (sheets.on_squares(5, level, 3) for level in (0.75, 0.3))
    single = [sheets.on_a_desk(2, 7), sheets.noisy(sheets.page(4) * shadow), faint, strong]
    return [*((each, 1, 1) for each in single), (sheets.in_a_table(-4), 2, 2)]


def test_pictures_are_read_as_in_python() -> None:
    given = [*pictures(), *photos(), (thin(), 1, 1)]
    answers = ask(
        *(("inputs/paper", "readDigits", [grey(each), rows, columns]) for each, rows, columns in given)
    )
    for (each, rows, columns), answer in zip(given, answers, strict=True):
        expected = ink.read_digits(each, "a", rows=rows, columns=columns).astype(int).ravel()
        assert (
            np.abs(np.array(answer["value"]) - expected).max() <= 1
        )  # one of 256 steps, where it is rounded


def test_digits_of_mnist_come_back_as_they_were() -> None:
    answers = ask(*(("inputs/paper", "readDigits", [grey(each / 255), 1, 1]) for each in digits()))
    same = [
        np.abs(np.array(a["value"]) - d.ravel()).max() <= 1 for a, d in zip(answers, digits(), strict=True)
    ]
    assert sum(same) >= 38  # a few are not quite centred in MNIST itself


@pytest.mark.parametrize(
    ("picture", "rows"), [(np.full((29, 31), 0.4), 1), (np.zeros((1, 5)), 2), (np.eye(37), 2)]
)
def test_refusals_are_pythons(picture: ndarray, rows: int) -> None:
    (answer,) = ask(("inputs/paper", "readDigits", [grey(picture), rows, rows]))
    with pytest.raises(InputError) as refused:
        ink.read_digits(picture, "a", rows=rows, columns=rows)
    assert answer["error"] == str(refused.value).replace("picture 'a'", "the picture")


def stroke(*points: tuple[float, float]) -> list[dict[str, float]]:
    return [{"x": x, "y": y, "pressure": 0.5} for x, y in points]


def drawn(*strokes: list[dict[str, float]]) -> ndarray:
    (answer,) = ask(("inputs/strokes", "digit", [list(strokes)]))
    return np.array(answer["value"]).reshape(28, 28)


def test_a_drawing_is_scaled_and_placed_as_in_mnist() -> None:
    seven = drawn(stroke((0.2, 0.1), (0.6, 0.1), (0.3, 0.5)))
    down, across = np.flatnonzero(seven.any(axis=1)), np.flatnonzero(seven.any(axis=0))
    assert max(np.ptp(down), np.ptp(across)) + 1 == 20
    rows, columns = np.mgrid[0:28, 0:28]
    for axis in (rows, columns):
        assert abs((axis * seven).sum() / seven.sum() - 14) <= 0.5
    assert seven.max() == 255


def test_the_size_and_place_of_a_drawing_do_not_matter() -> None:
    large = stroke((0.1, 0.1), (0.8, 0.1), (0.3, 0.9))
    small = stroke(*((0.5 + each["x"] / 2, 0.3 + each["y"] / 2) for each in large))
    assert np.array_equal(drawn(large), drawn(small))


def test_a_dot_stays_small() -> None:
    dot = drawn(stroke((0.5, 0.5)))
    assert 3 <= np.count_nonzero(dot) <= 16
    assert ask(("inputs/strokes", "digit", [[]]))[0]["value"] is None


def pen(digit: ndarray) -> float:
    """The mean width of lines as ``ink`` measures it."""
    from scipy import ndimage

    marked = digit > 127
    away = ndimage.distance_transform_edt(np.pad(marked, 1))[1:-1, 1:-1][marked]
    return float(4 * away.mean() - 2)


def test_the_pen_is_as_thick_as_those_of_mnist() -> None:
    usual = np.median([pen(each) for each in load_sample().test_images[:500].numpy()])
    lines = [
        stroke((0.5, 0.1), (0.5, 0.9)),
        stroke((0.2, 0.1), (0.6, 0.1), (0.3, 0.5)),
        stroke(*((0.5 + 0.2 * np.cos(a), 0.5 + 0.3 * np.sin(a)) for a in np.linspace(0, 6.28, 40))),
    ]
    assert abs(np.mean([pen(drawn(each)) for each in lines]) - usual) < 0.35
