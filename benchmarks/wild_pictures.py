"""Pictures of digits that are not MNIST's: printed in many fonts, drawn like with a mouse, photographed.

A picture is a function of its group, its source and its number. A source is a font, or a hand: a seed that
fixes slant, width, roundness and forms of a writer. Sources with even numbers are to develop on, odd ones
are held out.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from PIL import Image, ImageDraw, ImageFont

Grey = Float[ndarray, "H W"]
"""From 0, black, to 1, white."""
Chance = np.random.Generator
Point = tuple[float, float]
Stroke = list[Point]

FORMS: dict[int, list[list[Stroke]]] = {
    0: [
        [[(0.5, 0), (0.1, 0.25), (0.08, 0.7), (0.5, 1), (0.92, 0.7), (0.9, 0.25), (0.5, 0)]],
        [[(0.6, 0.02), (0.2, 0.15), (0.05, 0.6), (0.4, 1), (0.85, 0.75), (0.9, 0.3), (0.5, 0.0)]],
    ],
    1: [
        [[(0.5, 0), (0.5, 0.5), (0.5, 1)]],
        [[(0.3, 0.22), (0.45, 0.1), (0.55, 0), (0.55, 0.5), (0.55, 1)]],
        [[(0.62, 0), (0.52, 0.5), (0.42, 1)]],
    ],
    2: [
        [[(0.1, 0.22), (0.3, 0.03), (0.7, 0.03), (0.87, 0.28), (0.6, 0.6), (0.1, 0.98)],
         [(0.1, 0.98), (0.5, 0.97), (0.92, 0.98)]],
        [[(0.12, 0.2), (0.45, 0), (0.82, 0.15), (0.75, 0.48), (0.3, 0.85), (0.12, 0.97), (0.3, 0.9),
          (0.6, 0.97), (0.95, 0.93)]],
    ],
    3: [
        [[(0.12, 0.12), (0.45, 0), (0.82, 0.17), (0.72, 0.4), (0.38, 0.48)],
         [(0.38, 0.48), (0.78, 0.55), (0.88, 0.78), (0.5, 1), (0.1, 0.88)]],
        [[(0.15, 0.08), (0.55, 0), (0.8, 0.2), (0.6, 0.42), (0.35, 0.47), (0.7, 0.52), (0.86, 0.75),
          (0.55, 1), (0.12, 0.92)]],
    ],
    4: [
        [[(0.25, 0.02), (0.15, 0.35), (0.1, 0.6)], [(0.1, 0.6), (0.5, 0.58), (0.92, 0.58)],
         [(0.7, 0.1), (0.68, 0.5), (0.66, 1)]],
        [[(0.68, 0.02), (0.4, 0.35), (0.08, 0.66)], [(0.08, 0.66), (0.5, 0.66), (0.95, 0.66)],
         [(0.68, 0.02), (0.68, 0.5), (0.68, 1)]],
    ],
    5: [
        [[(0.85, 0.03), (0.5, 0.03), (0.22, 0.03)], [(0.22, 0.03), (0.19, 0.25), (0.17, 0.45)],
         [(0.17, 0.45), (0.5, 0.36), (0.85, 0.55), (0.82, 0.85), (0.45, 1), (0.1, 0.9)]],
        [[(0.25, 0.05), (0.22, 0.25), (0.2, 0.45), (0.5, 0.38), (0.83, 0.55), (0.78, 0.88), (0.4, 1),
          (0.1, 0.88)], [(0.25, 0.05), (0.55, 0.04), (0.9, 0.02)]],
    ],
    6: [
        [[(0.72, 0), (0.35, 0.2), (0.12, 0.6), (0.3, 0.97), (0.7, 0.95), (0.85, 0.7), (0.6, 0.5),
          (0.2, 0.62)]],
        [[(0.6, 0), (0.25, 0.35), (0.12, 0.72), (0.4, 1), (0.8, 0.85), (0.75, 0.58), (0.45, 0.52),
          (0.16, 0.7)]],
    ],
    7: [
        [[(0.1, 0.05), (0.5, 0.04), (0.9, 0.05)], [(0.9, 0.05), (0.6, 0.5), (0.4, 1)]],
        [[(0.1, 0.06), (0.5, 0.04), (0.88, 0.06)], [(0.88, 0.06), (0.62, 0.5), (0.42, 1)],
         [(0.32, 0.52), (0.55, 0.5), (0.8, 0.5)]],
    ],
    8: [
        [[(0.5, 0.48), (0.18, 0.25), (0.5, 0), (0.82, 0.25), (0.5, 0.48), (0.12, 0.75), (0.5, 1),
          (0.88, 0.75), (0.5, 0.48)]],
        [[(0.8, 0.12), (0.45, 0), (0.2, 0.22), (0.5, 0.47), (0.85, 0.75), (0.5, 1), (0.14, 0.78),
          (0.5, 0.47), (0.8, 0.12)]],
    ],
    9: [
        [[(0.82, 0.25), (0.55, 0.02), (0.18, 0.2), (0.3, 0.5), (0.7, 0.45), (0.82, 0.22), (0.8, 0.6),
          (0.7, 1)]],
        [[(0.85, 0.2), (0.5, 0), (0.15, 0.25), (0.4, 0.52), (0.82, 0.25), (0.8, 0.65), (0.45, 1),
          (0.2, 0.92)]],
    ],
}  # fmt: skip
"""Ways to write each digit: strokes through points of a unit square, y downwards."""

FINE = 4
"""Pictures are drawn so many times as large."""


@dataclass(frozen=True)
class Hand:
    """How somebody writes."""

    slant: float
    narrow: float
    width: float
    shaky: float
    forms: tuple[int, ...]

    @staticmethod
    def of(number: int) -> "Hand":
        chance = np.random.default_rng([7, number])
        return Hand(
            slant=chance.normal(0.08, 0.12),
            narrow=chance.uniform(0.5, 0.85),
            width=(0.035, 0.06, 0.09, 0.13)[number // 2 % 4] * chance.uniform(0.85, 1.15),
            shaky=chance.uniform(0.008, 0.025),
            forms=tuple(int(chance.integers(len(FORMS[digit]))) for digit in range(10)),
        )

    def write(self, digit: int, chance: Chance) -> list[Stroke]:
        """Strokes of a digit of height 1, as a mouse would move: smooth, with a hand that shakes."""
        turn = chance.normal(0, 0.05)
        found = []
        for stroke in FORMS[digit][self.forms[digit]]:
            points = np.array(stroke) + chance.normal(0, 0.02, (len(stroke), 2))
            smooth = _spline(points) + _tremble(chance, self.shaky, 24 * (len(stroke) - 1) + 1)
            x = (smooth[:, 0] - 0.5) * self.narrow + self.slant * (0.5 - smooth[:, 1])
            y = smooth[:, 1] - 0.5
            found.append([(a * np.cos(turn) - b * np.sin(turn), a * np.sin(turn) + b * np.cos(turn))
                          for a, b in zip(x, y, strict=True)])  # fmt: skip
        return found


def _spline(points: Float[ndarray, "N 2"]) -> Float[ndarray, "M 2"]:
    """Catmull and Rom's, 24 steps a piece."""
    ends = np.concatenate([points[:1], points, points[-1:]])
    steps = np.linspace(0, 1, 24, endpoint=False)[:, None]
    pieces = []
    for a, b, c, d in zip(ends, ends[1:], ends[2:], ends[3:], strict=False):
        pieces.append(
            0.5 * (2 * b + (c - a) * steps + (2 * a - 5 * b + 4 * c - d) * steps**2
                   + (3 * b - a - 3 * c + d) * steps**3)
        )  # fmt: skip
    return np.concatenate([*pieces, points[-1:]])


def _tremble(chance: Chance, size: float, count: int) -> Float[ndarray, "M 2"]:
    """A smooth random walk about 0."""
    raw = chance.normal(0, 1, (count + 30, 2))
    kernel = np.hanning(15) / np.hanning(15).sum()
    smooth = np.stack([np.convolve(raw[:, axis], kernel, mode="same") for axis in (0, 1)], axis=1)
    return size * 2.5 * smooth[15 : 15 + count]


def drawn(strokes: list[Stroke], pen: float, height: float, size: tuple[int, int], at: Point) -> Grey:
    """How much ink each pixel has; the digit is ``height`` pixels high, its middle at a point (x, y)."""
    image = Image.new("L", (FINE * size[0], FINE * size[1]))
    draw, radius = ImageDraw.Draw(image), FINE * pen * height / 2
    for stroke in strokes:
        line = [(FINE * (at[0] + height * x), FINE * (at[1] + height * y)) for x, y in stroke]
        draw.line(line, fill=255, width=max(1, round(2 * radius)))
        for x, y in line:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return np.asarray(image.resize(size, Image.Resampling.BOX), dtype=np.float64) / 255


def printed(font: Path, digit: int, height: float, size: tuple[int, int], at: Point) -> Grey:
    """The same of a font, its digit ``height`` pixels high."""
    face = ImageFont.truetype(str(font), round(FINE * height * 1.4))
    left, top, right, bottom = face.getbbox(str(digit))
    image = Image.new("L", (FINE * size[0], FINE * size[1]))
    draw = ImageDraw.Draw(image)
    place = (FINE * at[0] - (left + right) / 2, FINE * at[1] - (top + bottom) / 2)
    draw.text(place, str(digit), fill=255, font=face)
    return np.asarray(image.resize(size, Image.Resampling.BOX), dtype=np.float64) / 255


# papers, light and cameras: from ink to a picture


def _smooth(chance: Chance, size: tuple[int, int], coarse: int) -> Grey:
    """Values from 0 to 1 that change slowly."""
    small = chance.uniform(0, 1, (coarse, coarse)).astype(np.float32)
    return np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BICUBIC), dtype=np.float64)


def _turned(picture: Grey, degrees: float, fill: float) -> Grey:
    turned = Image.fromarray(picture.astype(np.float32)).rotate(
        degrees, Image.Resampling.BICUBIC, fillcolor=fill
    )
    return np.asarray(turned, dtype=np.float64)


def _textured(picture: Grey, chance: Chance, size: float) -> Grey:
    """Fibres of paper and the noise of a camera."""
    height, width = picture.shape
    fibres = _smooth(chance, (width, height), max(8, width // 6)) - 0.5
    return picture + size * fibres + chance.normal(0, size / 3, picture.shape)


def _page(ink: Grey, paper: float, pen: float) -> Grey:
    return paper * (1 - ink) + pen * ink


def _lines(shape: tuple[int, int], chance: Chance, *, squares: bool) -> Grey:
    """Lines of ruled or squared paper."""
    height, width = shape
    ruled = np.zeros(shape)
    step = chance.uniform(0.09, 0.16) * height
    thick = chance.uniform(1.0, 2.2)
    start = chance.uniform(0, step)
    ruled[np.abs((np.arange(height) - start + step / 2) % step - step / 2) < thick / 2 + 0.5] = 1
    if squares:
        ruled[:, np.abs((np.arange(width) - start + step / 2) % step - step / 2) < thick / 2 + 0.5] = 1
    return ruled


def plain(ink: Grey, chance: Chance) -> Grey:
    return _page(ink, chance.uniform(0.85, 1), chance.uniform(0, 0.35))


def inverted(ink: Grey, chance: Chance) -> Grey:
    return _page(ink, chance.uniform(0, 0.25), chance.uniform(0.75, 1))


def faint(ink: Grey, chance: Chance) -> Grey:
    return _textured(_page(ink, 0.85, chance.uniform(0.5, 0.62)), chance, 0.02)


def uneven(ink: Grey, chance: Chance) -> Grey:
    """A lamp at one side, and a camera that is dark at the corners."""
    height, width = ink.shape
    down, across = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    way = chance.uniform(0, 2 * np.pi)
    light = 0.78 + 0.2 * (np.cos(way) * down + np.sin(way) * across) - 0.08 * (down**2 + across**2)
    return _textured(_page(ink, 1, chance.uniform(0.1, 0.35)) * light, chance, 0.03)


def textured(ink: Grey, chance: Chance) -> Grey:
    return _textured(_page(ink, 0.85, chance.uniform(0.1, 0.35)), chance, 0.06)


def rotated(ink: Grey, chance: Chance) -> Grey:
    turned = _turned(ink, chance.uniform(-15, 15), 0)
    return _textured(_page(np.clip(turned, 0, 1), 0.9, chance.uniform(0.1, 0.35)), chance, 0.02)


def _shadowed(ink: Grey, chance: Chance, soft: float) -> Grey:
    height, width = ink.shape
    down, across = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    way, where = chance.uniform(0, 2 * np.pi), chance.uniform(-0.45, 0.45)
    depth = chance.uniform(0.4, 0.65)
    edge = 1 / (1 + np.exp(-(np.cos(way) * down + np.sin(way) * across - where) / soft))
    light = depth + (1 - depth) * edge
    return _textured(_page(ink, 0.92, chance.uniform(0.05, 0.25)) * light, chance, 0.02)


def soft_shadow(ink: Grey, chance: Chance) -> Grey:
    return _shadowed(ink, chance, 0.15)


def hard_shadow(ink: Grey, chance: Chance) -> Grey:
    return _shadowed(ink, chance, 0.012)


def ruled(ink: Grey, chance: Chance) -> Grey:
    lines = _lines(ink.shape, chance, squares=False)
    page = 0.93 - chance.uniform(0.12, 0.4) * lines
    turned = _turned(page * (1 - ink) + chance.uniform(0.05, 0.25) * ink, chance.uniform(-3, 3), 0.93)
    return _textured(turned, chance, 0.02)


def squared(ink: Grey, chance: Chance) -> Grey:
    lines = _lines(ink.shape, chance, squares=True)
    page = 0.93 - chance.uniform(0.12, 0.4) * lines
    turned = _turned(page * (1 - ink) + chance.uniform(0.05, 0.25) * ink, chance.uniform(-3, 3), 0.93)
    return _textured(turned, chance, 0.02)


def desk(ink: Grey, chance: Chance) -> Grey:
    """A sheet on a dark desk, a little turned, with light from one side."""
    height, width = ink.shape
    page = _page(ink, 0.95, chance.uniform(0.05, 0.3))
    margin = (0.08, 0.2)
    top, left = (round(chance.uniform(*margin) * side) for side in ink.shape)
    low, right = (round((1 - chance.uniform(*margin)) * side) for side in ink.shape)
    sheet = np.zeros(ink.shape)
    sheet[top:low, left:right] = 1
    turn = chance.uniform(-10, 10)
    sheet, page = _turned(sheet, turn, 0), _turned(page, turn, 0.95)
    wood = chance.uniform(0.08, 0.35) * (0.85 + 0.3 * _smooth(chance, (width, height), 12))
    light = 0.85 + 0.15 * _smooth(chance, (width, height), 2)
    return _textured((page * sheet + wood * (1 - sheet)) * light, chance, 0.02)


Condition = Callable[[Grey, Chance], Grey]
CLEAN: dict[str, Condition] = {"plain": plain, "inverted": inverted, "faint": faint}
PHOTOS: dict[str, Condition] = {
    "uneven": uneven, "textured": textured, "rotated": rotated, "soft shadow": soft_shadow,
    "hard shadow": hard_shadow, "ruled": ruled, "squared": squared, "desk": desk,
}  # fmt: skip
JPEG_QUALITY = (35, 90)


@dataclass(frozen=True)
class Wild:
    """A picture as a file, with what it shows. ``group`` is fonts, strokes, photos, grids or tables."""

    group: str
    condition: str
    source: str
    number: int
    truth: str
    content: bytes

    @property
    def held_out(self) -> bool:
        return self.number % 2 == 1


def _file(picture: Grey, chance: Chance, *, photo: bool, colour: bool) -> bytes:
    """PNG, or JPEG as cameras write it; in colours as grey as ``picture``, or nearly."""
    values = np.clip(picture, 0, 1)
    image = Image.fromarray(np.rint(255 * values).astype(np.uint8))
    if colour:
        paper, ink = chance.uniform(0.75, 1, 3), chance.uniform(0, 0.45, 3)
        paper, ink = paper / paper.max(), ink
        mixed = values[..., None] * paper + (1 - values[..., None]) * ink
        image = Image.fromarray(np.rint(255 * np.clip(mixed, 0, 1)).astype(np.uint8))
    buffer = io.BytesIO()
    if photo:
        image.save(buffer, format="JPEG", quality=int(chance.integers(*JPEG_QUALITY)))
    else:
        image.save(buffer, format="PNG")
    return buffer.getvalue()


def pictures_of_fonts(fonts: list[Path]) -> Iterator[Wild]:
    """Every digit of every font."""
    for number, font in enumerate(fonts):
        for digit in range(10):
            chance = np.random.default_rng([1, number, digit])
            names = list(CLEAN)
            condition = names[(number // 2 + digit) % len(names)]
            side = int(chance.integers(80, 400))
            height = side * chance.uniform(0.3, 0.8)
            at = _place(side, height, chance)
            ink = printed(font, digit, height, (side, side), at)
            picture = CLEAN[condition](ink, chance)
            content = _file(picture, chance, photo=False, colour=bool(chance.integers(2)))
            yield Wild("fonts", condition, font.stem, number, str(digit), content)


def _place(side: int, height: float, chance: Chance) -> Point:
    """A middle for a digit that is as wide as high at most."""
    room = max(0.0, side / 2 - 0.62 * height)
    return side / 2 + room * chance.uniform(-1, 1), side / 2 + room * chance.uniform(-1, 1)


def pictures_of_strokes(hands: int) -> Iterator[Wild]:
    """Every digit by every hand, as drawn with a mouse."""
    for number in range(hands):
        hand = Hand.of(number)
        for digit in range(10):
            chance = np.random.default_rng([2, number, digit])
            names = list(CLEAN)
            condition = names[(number // 2 + digit) % len(names)]
            side = int(chance.integers(60, 500))
            height = side * chance.uniform(0.35, 0.85)
            ink = drawn(
                hand.write(digit, chance), hand.width, height, (side, side), _place(side, height, chance)
            )
            picture = CLEAN[condition](ink, chance)
            content = _file(picture, chance, photo=False, colour=bool(chance.integers(2)))
            yield Wild("strokes", condition, f"hand {number}", number, str(digit), content)


def pictures_of_photos(hands: int) -> Iterator[Wild]:
    """Digits by hand under every light and on every paper."""
    for number in range(hands):
        hand = Hand.of(1000 + number)
        for place, (condition, change) in enumerate(PHOTOS.items()):
            for again in range(2):
                chance = np.random.default_rng([3, number, place, again])
                digit = (number // 2 + 3 * place + 5 * again) % 10
                side = int(chance.integers(200, 700))
                share = (0.25, 0.45) if condition == "desk" else (0.3, 0.7)
                height = side * chance.uniform(*share)
                at = _place(side, height, chance)
                if condition == "desk":
                    at = (
                        side / 2 + 0.05 * side * chance.uniform(-1, 1),
                        side / 2 + 0.05 * side * chance.uniform(-1, 1),
                    )
                ink = drawn(hand.write(digit, chance), max(0.045, hand.width), height, (side, side), at)
                content = _file(change(ink, chance), chance, photo=True, colour=False)
                yield Wild("photos", condition, f"hand {1000 + number}", number, str(digit), content)


def pictures_of_grids(hands: int) -> Iterator[Wild]:
    """Four digits of one hand: with uneven spacing, and in a table that is drawn, with a margin."""
    for number in range(hands):
        hand = Hand.of(2000 + number)
        for table in (False, True):
            for again in range(2):
                chance = np.random.default_rng([4, number, int(table), again])
                digits = chance.integers(10, size=4)
                side = int(chance.integers(240, 600))
                content = _file(
                    _grid(hand, digits.tolist(), side, chance, table=table),
                    chance,
                    photo=bool(again),
                    colour=False,
                )
                truth = "".join(map(str, digits))
                yield Wild("tables" if table else "grids", "table" if table else "uneven spacing",
                           f"hand {2000 + number}", number, truth, content)  # fmt: skip


def _grid(hand: Hand, digits: list[int], side: int, chance: Chance, *, table: bool) -> Grey:
    margin = side * (chance.uniform(0.06, 0.15) if table else 0.02)
    room = side - 2 * margin
    middle = [margin + room * chance.uniform(0.45, 0.55) for _ in range(2)]
    ink = np.zeros((side, side))
    for place, digit in enumerate(digits):
        row, column = divmod(place, 2)
        ends = [(margin, middle[0]) if row == 0 else (middle[0], side - margin),
                (margin, middle[1]) if column == 0 else (middle[1], side - margin)]  # fmt: skip
        high = min(end - start for start, end in ends)
        height = high * chance.uniform(0.5, 0.68)
        y, x = ((start + end) / 2 + 0.08 * high * chance.uniform(-1, 1) for start, end in ends)
        ink = np.maximum(ink, drawn(hand.write(digit, chance), hand.width, height, (side, side), (x, y)))
    if table:
        pen, low, high = max(1.5, side * chance.uniform(0.004, 0.012)), margin, side - margin
        lines = [((low, low), (high, low)), ((low, high), (high, high)), ((low, low), (low, high)),
                 ((high, low), (high, high)), ((low, middle[0]), (high, middle[0])),
                 ((middle[1], low), (middle[1], high))]  # fmt: skip
        strokes = [[(x / side, y / side) for x, y in line] for line in lines]
        ink = np.maximum(ink, drawn(strokes, pen / side, side, (side, side), (0, 0)))
        ink = np.clip(_turned(ink, chance.uniform(-4, 4), 0), 0, 1)
    return _textured(_page(ink, 0.93, chance.uniform(0.05, 0.3)), chance, 0.015)
