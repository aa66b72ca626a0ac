"""Paper that is no plane: a sheet on a desk, and light with shadows.

    sheet    a bright quadrilateral on a dark desk, or a dark one on a bright one, on which something thin
             is written on the side of the desk; what is outside of it is no ink
    paper    where much of the edge stands out from a plane: the grey closing of the picture (Serra,
             1982), a maximum in a window around each pixel, then a minimum, which keeps edges of shadows
             and fills what is thinner than the window

A bright sheet differs from a bright 0 on black, which has a hole too, by its straight sides and by the thin
lines of what is written.
"""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from attnlab.data.pictures import edge_of

Grey = Float[ndarray, "H W"]
Mask = Bool[ndarray, "H W"]

COARSE = 256
"""Pixels along the longer side of the picture in which a sheet is looked for."""
SMALLEST = 64
"""The shorter side of a picture that may show a sheet."""
DESK, SHEET = 0.7, 0.12
"""The least shares of the edge that is desk, and of the picture that is sheet."""
STEP = 0.2
"""The least difference between sheet and desk."""
STRAIGHT = 0.84
"""The least share of the smallest box around a sheet, at whatever angle, that is sheet."""
TURNS = 30
LONG, MOST = 5.0, 0.3
"""Of what is written: the least area in squares of the pen, the most as a share of the sheet."""
RIM = 0.02
"""What is left out along the sides of a sheet, as a share of the longer side of the picture."""
WINDOW = 0.25
"""That of the closing, as a share of the longer side of the paper; pens are thinner."""


def find_sheet(grey: Grey) -> tuple[Mask, bool] | None:
    """Where the sheet is, and whether it is brighter than the desk; None if there is none."""
    if min(grey.shape) < SMALLEST:
        return None
    step = -(-max(grey.shape) // COARSE)
    coarse = reduced(grey, step)
    level = threshold(coarse)
    bright = coarse > level
    desk = float(edge_of(bright).mean())
    if max(desk, 1 - desk) < DESK or coarse[bright].mean() - coarse[~bright].mean() < STEP:
        return None
    unlike = bright != (desk > 0.5)
    filled = without_holes(largest_part(unlike))
    if filled.mean() < SHEET or squareness(filled) < STRAIGHT or not _is_written(filled & ~unlike, filled):
        return None
    rim = max(1, round(RIM * max(coarse.shape)))
    inner = extreme(np.pad(filled, rim).astype(np.float64), 2 * rim + 1, least=True)[rim:-rim, rim:-rim] > 0
    whole = np.repeat(np.repeat(inner, step, axis=0), step, axis=1)
    height, width = grey.shape
    return np.pad(whole, ((0, step), (0, step)), mode="edge")[:height, :width], desk <= 0.5


def reduced(grey: Grey, step: int) -> Float[ndarray, "h w"]:
    """Means of squares; what is left at the right and at the bottom is left out."""
    height, width = (side // step for side in grey.shape)
    return grey[: height * step, : width * step].reshape(height, step, width, step).mean(axis=(1, 3))


def threshold(grey: Grey) -> float:
    """The level that parts the most distant halves (Otsu, 1979)."""
    counts, ends = np.histogram(grey, bins=128, range=(0.0, 1.0))
    middles = (ends[:-1] + ends[1:]) / 2
    below, sums = np.cumsum(counts), np.cumsum(counts * middles)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return float(ends[1 + int(np.nanargmax(apart))])


def largest_part(marked: Mask) -> Mask:
    """Of parts that touch, also at corners."""
    from scipy import ndimage  # here: it takes a while to import

    parts, _ = ndimage.label(marked, structure=np.ones((3, 3)))
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    return parts == int(sizes.argmax())


def without_holes(marked: Mask) -> Mask:
    """With all that the marked pixels surround."""
    from scipy import ndimage

    parts, _ = ndimage.label(~marked)
    return ~np.isin(parts, np.setdiff1d(edge_of(parts), [0]))


def squareness(marked: Mask) -> float:
    """The share of the smallest box around what is marked, over the angles of its sides."""
    down, across = np.nonzero(marked)
    smallest = np.inf
    for turn in range(TURNS):
        angle = np.pi / 2 * turn / TURNS
        one = np.cos(angle) * across + np.sin(angle) * down
        other = np.cos(angle) * down - np.sin(angle) * across
        box = (one.max() - one.min() + 1) * (other.max() - other.min() + 1)
        smallest = min(smallest, float(box))
    return len(down) / smallest


def pen_of(drawn: Mask) -> float:
    """The width of lines: in a bar that is w wide, a pixel is w/4 + 1/2 away from the paper on average."""
    from scipy import ndimage

    return 4 * float(ndimage.distance_transform_edt(np.pad(drawn, 1))[1:-1, 1:-1][drawn].mean()) - 2


def _is_written(drawn: Mask, filled: Mask) -> bool:
    """Whether what is drawn are thin lines, or nothing that one could tell."""
    if not drawn.any():
        return True
    pen = max(1.0, pen_of(drawn))
    return bool(LONG * pen**2 <= drawn.sum() <= MOST * filled.sum())


def extreme(values: Grey, size: int, *, least: bool = False) -> Grey:
    """The maximum in a square of an odd ``size`` around each pixel, or the ``least``."""
    from scipy import ndimage

    filtered = ndimage.minimum_filter if least else ndimage.maximum_filter
    return np.asarray(filtered(values, size=size, mode="nearest"))


def ink_on_uneven_paper(grey: Grey, mask: Mask, *, dark: bool) -> tuple[Grey, float]:
    """How far each pixel is from the paper around it, as a share of the paper's light, and the deviation of
    the paper itself; nothing outside ``mask``. ``dark``: ink is darker than paper.
    """
    from scipy import ndimage

    light = ndimage.uniform_filter(grey if dark else 1 - grey, 3, mode="nearest")
    down, across = np.nonzero(mask)
    side = max(down.max() - down.min(), across.max() - across.min()) + 1
    size = 2 * round(WINDOW * side / 2) + 1
    paper = extreme(np.where(mask, light, -np.inf), size)
    paper = np.where(mask, extreme(np.where(mask, paper, np.inf), size, least=True), 1.0)
    above = np.where(mask, (paper - light) / np.maximum(paper, 0.1), 0.0)
    usual = float(np.median(above[mask]))
    noise = 1.4826 * float(np.median(np.abs(above[mask] - usual)))
    return np.where(mask, above - usual, 0.0), noise
