"""Lines that are no digits: of ruled and squared paper, of frames and of drawn tables.

    faint    where ink spans the picture, and ink that is fuller than half of the fullest does not but is no
             dust, only the latter and what touches it are ink
    lines    straight, thin, and nearly from side to side of all ink, three of them or more; the ink is
             sheared so that they go along rows and columns, and they are taken out where no digit crosses

A digit alone has two such lines at most, as 7 has one; digits in rows and columns may have them in one of
both directions, as 1 above 1.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from attnlab.data.sheets import extreme

Ink = Float[ndarray, "H W"]

COARSE = 200
"""Pixels along the longer side of the ink in which lines are looked for."""
SLOPES = range(-27, 28)
"""Hundredths by which lines may rise, up to 15 degrees."""
DRAWN = 0.25
"""The least ink of a pixel of a line."""
SPANNED, BESIDE = 0.7, 0.35
"""The least shares of a row that a line inks: in its middle, and beside it."""
THIN = 1 / 20
"""The most of a side that a line takes."""
FEWEST = 3
LEFT = 0.05
"""The least share of the ink that is no line."""
WIDE, DIGIT = 0.9, 1 / 8
"""The share of a side that faint lines span, and the least that something in a digit takes."""


@dataclass(frozen=True)
class Lines:
    """Ink without its lines, and the rows and columns in whose middle there were some."""

    ink: Ink
    across: list[float]
    down: list[float]


def without_faint_lines(ink: Ink) -> Ink:
    """The ink without a pattern that is weaker than half of it."""
    strong = ink > float(ink.max()) / 2
    if _longest(ink > 0) < WIDE or not DIGIT <= _longest(strong) < WIDE:
        return ink
    near = extreme(strong.astype(np.float64), 3) > 0
    return np.where(near, ink, 0.0)


def _longest(marked: Bool[ndarray, "H W"]) -> float:
    """The most that one part takes of a side."""
    from scipy import ndimage  # here: it takes a while to import

    parts, _ = ndimage.label(marked, structure=np.ones((3, 3)))
    height, width = marked.shape
    boxes = ndimage.find_objects(parts)
    sides = [((y.stop - y.start) / height, (x.stop - x.start) / width) for y, x in boxes]
    return max(map(max, sides), default=0.0)


def without_lines(ink: Ink, *, table: bool = False) -> Lines | None:
    """None if there are fewer than three lines, in a ``table`` none in one of both directions, or nothing
    else.
    """
    slopes = [_slope(marked) for marked in _coarse(ink)]
    straight = sheared(sheared(ink, slopes[0]).T, slopes[1]).T
    across, down = (_bands(share) for share in _shares(straight > DRAWN))
    if (not across or not down) if table else len(across) + len(down) < FEWEST:
        return None
    left = _taken_out(_taken_out(straight, across).T, down).T
    if left.sum() < LEFT * ink.sum():
        return None
    return Lines(left, *([(first + last) / 2 for first, last in bands] for bands in (across, down)))


def _coarse(ink: Ink) -> tuple[Bool[ndarray, "h w"], Bool[ndarray, "w h"]]:
    """What is drawn, in few pixels: for lines across, and turned for lines down."""
    step = -(-max(ink.shape) // COARSE)
    height, width = (-(-side // step) for side in ink.shape)
    padded = np.zeros((height * step, width * step), dtype=bool)
    padded[: ink.shape[0], : ink.shape[1]] = ink > DRAWN
    marked: Bool[ndarray, "h w"] = padded.reshape(height, step, width, step).max(axis=(1, 3))
    return marked, marked.T


def _slope(marked: Bool[ndarray, "h w"]) -> float:
    """The slope along which most rows are inked nearly all along."""
    best, most = 0.0, 0.0
    for hundredths in sorted(SLOPES, key=abs):
        share = sheared(marked.astype(np.float64), hundredths / 100).mean(axis=1)
        found = float((np.clip(share - 0.5, 0, None) ** 2).sum())
        if found > most + 1e-9:
            best, most = hundredths / 100, found
    return best


def sheared(values: Float[ndarray, "h w"], slope: float) -> Float[ndarray, "h w"]:
    """Columns moved so that lines of this slope go along rows; 0 moves in."""
    if slope == 0:
        return values
    height, width = values.shape
    shifts = np.rint(slope * (np.arange(width) - (width - 1) / 2)).astype(np.int64)
    rows = np.arange(height)[:, None] + shifts
    found = np.take_along_axis(values, rows.clip(0, height - 1), axis=0)
    return np.where((rows >= 0) & (rows < height), found, 0)


def _shares(drawn: Bool[ndarray, "H W"]) -> tuple[Float[ndarray, "H"], Float[ndarray, "W"]]:
    """Of each row and each column how much of what is between the outermost ink is drawn."""
    down, across = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if len(down) == 0:
        return np.zeros(drawn.shape[0]), np.zeros(drawn.shape[1])
    high, wide = down[-1] - down[0] + 1, across[-1] - across[0] + 1
    return drawn.sum(axis=1) / wide, drawn.sum(axis=0) / high


def _bands(share: Float[ndarray, "L"]) -> list[tuple[int, int]]:
    """First and last row of each line; none is thick."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], share >= BESIDE, [0]])))
    bands = [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]
    most = THIN * len(share) + 2
    return [(a, b) for a, b in bands if share[a : b + 1].max() >= SPANNED and b - a + 1 <= most]


def _taken_out(ink: Ink, bands: list[tuple[int, int]]) -> Ink:
    """Without rows of lines, except where there is ink above and below them."""
    found = ink.copy()
    for first, last in bands:
        first, last = max(0, first - 1), min(len(ink) - 1, last + 1)
        above = ink[max(0, first - 2) : first].max(axis=0, initial=0) > DRAWN
        below = ink[last + 1 : last + 3].max(axis=0, initial=0) > DRAWN
        found[first : last + 1, ~(above & below)] = 0
    return found


def cells_between(lines: list[float], count: int, size: int) -> list[tuple[int, int]] | None:
    """The first and the last row behind of each cell, if lines part so many; None if they do not."""
    if len(lines) == count + 1:
        ends = lines
    elif len(lines) == count - 1:
        ends = [0.0, *lines, float(size)]
    elif len(lines) == 2:  # a frame
        ends = [lines[0] + (lines[1] - lines[0]) * place / count for place in range(count + 1)]
    else:
        return None
    cells = [(round(first), round(end)) for first, end in pairwise(ends)]
    return cells if all(end - first >= size / (4 * count) for first, end in cells) else None
