"""From grey values to digits as MNIST has them (LeCun, Bottou, Bengio and Haffner, 1998).

MNIST's digits are white on black, scaled into 20 x 20 pixels with their proportions kept, and stand in
28 x 28 pixels such that their centre of mass is at the middle. Here:

    paper   a plane through the grey values of the edge, which bears uneven light
    ink     how far a pixel is from the paper, towards what is furthest from it, above the edge's noise
    digit   the box around the ink without specks, scaled and placed

A digit of MNIST that is saved as a picture comes back as it was, dark on light or light on dark.

What else a picture has is left out:

    border   the picture's edge has another colour than the paper inside it
    frame    a rectangle around all other ink, which stands free inside it
    rules    lines across the whole picture where two cells meet
    specks   parts with hardly any ink

The first three are straight, thin, and go along rows or columns of pixels. In pictures that are larger than
MNIST's a desk around the sheet, shadows (``sheets``) and other lines (``lines``) are left out as well.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from PIL import Image
from torch import Tensor

from attnlab.data.lines import Lines, cells_between, without_faint_lines, without_lines
from attnlab.data.pictures import edge_of, read_picture
from attnlab.data.sheets import SMALLEST, find_sheet, ink_on_uneven_paper, pen_of
from attnlab.errors import InputError, brief

SIDE, BOX = 28, 20
THIN, PEN = 1.3, 2.0
"""Lines thinner than the first, in pixels of the 20 x 20, are drawn again with the second."""

FAINTEST = 0.1
"""The least contrast of ink, on a scale from black to white."""
SPECK = 0.02
"""Parts with less than this share of the largest part's ink are no parts of a digit."""
THICKEST = 1 / 8
"""The most of a side that a border, a frame or a line takes."""
SPANNED = 0.9
"""The least share of a side along which a straight line goes."""
FREE = 0.1
"""The least share of the ink inside a frame that does not touch it."""

BRIGHT = 0.35
"""The least median of a picture that shows paper in shadows."""
UNEVEN, WEAK = 0.05, 0.2
"""The share of the edge that may be ink, beyond which paper is no plane; weaker ink does not count."""

Grey = Float[ndarray, "H W"]
Ink = Float[ndarray, "H W"]
Widths = tuple[int, int, int, int]
"""At the top, bottom, left and right."""


def read_picture_digits(
    source: Path | bytes, name: str, *, rows: int, columns: int
) -> UInt8[Tensor, "R C"]:
    """The digits of the picture in a file or in bytes."""
    digits = read_digits(read_picture(source, name), name, rows=rows, columns=columns)
    return torch.from_numpy(np.ascontiguousarray(digits))


def read_digits(grey: Grey, name: str, *, rows: int = 1, columns: int = 1) -> UInt8[ndarray, "R C"]:
    """The digits of a picture, cut into ``rows`` x ``columns`` equal cells, each as MNIST has it."""
    height, width = grey.shape
    if height < rows or width < columns:
        raise InputError(
            f"picture {brief(name)} has {width} x {height} pixels, too few for {rows} x {columns} digits"
        )
    inner = without_border(grey)
    ink = _ink_on_a_sheet(grey) if inner is grey else None
    if ink is None:
        ink = find_ink(inner)
    if ink.max() == 0:  # a bar that fills its picture looks like paper in a border
        ink = find_ink(grey)
    if ink.max() == 0:
        raise InputError(f"picture {brief(name)} has no ink in it: nothing stands out against its edge")
    ink, down, across = _cells(ink, rows, columns)
    digits = np.zeros((SIDE * rows, SIDE * columns), dtype=np.uint8)
    for row, (top, low) in enumerate(down):
        for column, (left, right) in enumerate(across):
            cell = ink[top:low, left:right]
            if not cell.any():
                raise InputError(
                    f"picture {brief(name)} has no ink in row {row + 1}, column {column + 1} "
                    f"of its {rows} x {columns} cells"
                )
            digits[SIDE * row : SIDE * (row + 1), SIDE * column : SIDE * (column + 1)] = centred(cell)
    return digits


Cells = list[tuple[int, int]]
"""The first row of each cell and the one behind its last; or columns."""


def _cells(ink: Ink, rows: int, columns: int) -> tuple[Float[ndarray, "h w"], Cells, Cells]:
    """Ink without lines, and where its cells are: between lines that were drawn, or all alike but for
    digits that reach into the next cell. A picture that is as small as MNIST's has none of this.
    """
    small = min(ink.shape[0] / rows, ink.shape[1] / columns) < SMALLEST
    inside = without_rules(without_frame(ink), rows, columns)
    if small:
        return inside, _gaps(inside, rows, 0), _gaps(inside.T, columns, 0)
    inside = without_faint_lines(inside)
    lines = without_lines(inside, table=rows > 1 and columns > 1) or Lines(inside, [], [])
    down = cells_between(lines.across, rows, lines.ink.shape[0])
    across = cells_between(lines.down, columns, lines.ink.shape[1])
    return lines.ink, down or _gaps(lines.ink, rows, 4), across or _gaps(lines.ink.T, columns, 4)


def _gaps(ink: Ink, count: int, part: int) -> Cells:
    """Equal cells, whose ends move to where there is no ink, or least, up to a ``part`` of a cell."""
    size, mass = len(ink), ink.sum(axis=1)
    beside = np.concatenate([[0], mass]) + np.concatenate([mass, [0]])
    ends = [0]
    for place in range(1, count):
        end, reach = size * place // count, size // (part * count) if part else 0
        near = sorted(range(end - reach, end + reach + 1), key=lambda at: (beside[at], abs(at - end)))
        ends.append(near[0])
    return list(pairwise([*ends, size]))


def _ink_on_a_sheet(grey: Grey) -> Ink | None:
    """The ink of a sheet that lies on a desk; None if there is none."""
    found = find_sheet(grey)
    if found is None:
        return None
    mask, bright = found
    ink = _scaled(*ink_on_uneven_paper(grey, mask, dark=bright))
    return ink if ink.any() else None


def find_ink(grey: Grey) -> Ink:
    """How much ink each pixel has, 0 to 1; nothing but 0 where there is none."""
    paper, noise = _paper(grey)
    above = grey - paper
    dark = above.max() < -above.min()
    ink = _scaled(-above if dark else above, noise)
    if (edge_of(ink) > WEAK).mean() <= UNEVEN or min(grey.shape) < SMALLEST:
        return ink
    dark = bool(dark or np.median(grey) > BRIGHT)
    return _within(_scaled(*ink_on_uneven_paper(grey, np.ones(grey.shape, dtype=bool), dark=dark)))


def _within(ink: Ink) -> Ink:
    """The ink without parts that touch the edge, unless most of it does."""
    from scipy import ndimage  # here: it takes a while to import

    parts, _ = ndimage.label(ink > 0, structure=np.ones((3, 3)))
    free = np.where(np.isin(parts, edge_of(parts)), 0, ink)
    return free if free.sum() >= FREE * ink.sum() else ink


def _scaled(above: Grey, noise: float) -> Ink:
    """From nothing, where a pixel is no further from the paper than its noise, to 1."""
    most = float(above.max())
    if most < FAINTEST + min(4 * noise, FAINTEST):
        return np.zeros_like(above)
    floor = min(4 * noise, most / 2)  # half where a digit that touches the edge passes for noise
    return np.clip((above - floor) / (_full(most) - floor), 0, 1)


def _full(most: float) -> float:
    """What counts as ink at its fullest: nearly full is left as it is."""
    return 1.0 if most > 0.95 else most


def _paper(grey: Grey) -> tuple[Grey, float]:
    """The plane through the edge, and the deviation of the edge from it."""
    height, width = grey.shape
    down, across = np.mgrid[0:height, 0:width]
    edge = np.zeros(grey.shape, dtype=bool)
    edge[0] = edge[-1] = edge[:, 0] = edge[:, -1] = True
    values, paper = grey[edge], np.full(grey.shape, float(np.median(grey[edge])))
    if _deviation(values - paper[edge]) == 0:
        return paper, 0.0
    terms = np.stack([np.ones(grey.shape), down / height, across / width], axis=-1)
    for _ in range(3):  # what is far from the plane is ink that touches the edge
        apart = np.abs(values - paper[edge])
        near = apart <= max(3 * _deviation(values - paper[edge]), float(np.median(apart)))
        found, *_ = np.linalg.lstsq(terms[edge][near], values[near], rcond=None)
        paper = terms @ found
    return paper, _deviation(values - paper[edge])


def _deviation(values: Float[ndarray, "N"]) -> float:
    """By the median of distances, which ink on less than half of the edge does not move."""
    return 1.4826 * float(np.median(np.abs(values)))


def centred(ink: Ink) -> UInt8[ndarray, "28 28"]:
    """One digit, scaled and placed as in MNIST."""
    digit = without_specks(ink)
    digit = digit[_box(digit)]
    scale = BOX / max(digit.shape)
    if scale < 0.5:
        thick = _thickened(digit, scale)
        digit = thick[_box(thick)]
    height, width = (max(1, round(BOX * side / max(digit.shape))) for side in digit.shape)
    small = np.asarray(
        Image.fromarray(digit.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR)
    )
    small = np.clip(small / _full(float(small.max())), 0, 1)
    placed = np.zeros((SIDE, SIDE), dtype=np.uint8)
    top, left = (_start(small, axis) for axis in (0, 1))
    placed[top : top + height, left : left + width] = np.rint(255 * small)
    return placed


def _start(small: Ink, axis: int) -> int:
    """Where the box begins, so that the centre of mass is at the middle and nothing is outside."""
    mass = small.sum(axis=1 - axis)
    centre = float((mass * np.arange(len(mass))).sum() / mass.sum())
    return int(np.clip(round(SIDE / 2 - centre), 0, SIDE - len(mass)))


def _box(ink: ndarray) -> tuple[slice, slice]:
    """The smallest box around the ink."""
    down, across = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return slice(down[0], down[-1] + 1), slice(across[0], across[-1] + 1)


def _thickened(ink: Ink, scale: float) -> Float[ndarray, "h w"]:
    """Thin lines as a pen of MNIST would have drawn them.

    In a bar that is w wide, a pixel is w/4 + 1/2 away from the paper on average.
    """
    from scipy import ndimage  # here: it takes a while to import

    drawn: Bool[ndarray, "H W"] = ink > float(ink.max()) / 2  # a digit may be fainter than its neighbours
    pen = pen_of(drawn)
    if pen * scale >= THIN:
        return ink
    radius = (PEN / scale - pen) / 2
    room = np.pad(drawn, int(np.ceil(radius)))
    return (ndimage.distance_transform_edt(~room) <= radius).astype(np.float64)


def without_border(grey: Grey) -> Float[ndarray, "h w"]:
    """The picture inside its border; as it is if it has none."""
    edge, usual = float(np.median(edge_of(grey))), float(np.median(grey))
    if abs(edge - usual) < FAINTEST:
        return grey
    like = np.abs(grey - edge) < np.abs(grey - usual)
    widths = frame_widths(like)
    if widths is None or edge_of(_inside(like, widths)).mean() > 1 - SPANNED:
        return grey
    return _inside(grey, widths)


def without_frame(ink: Ink) -> Float[ndarray, "h w"]:
    """The ink inside the frame; as it is if there is none."""
    drawn = without_specks(ink) > float(ink.max()) / 2
    box = _box(drawn)
    widths = frame_widths(drawn[box])
    if widths is None:
        return ink
    inside = _inside(ink[box], widths)
    return inside if _stands_free(inside) else ink


def without_rules(ink: Ink, rows: int, columns: int) -> Ink:
    """The ink without lines between the cells."""
    across, down = (_rules((ink > 0).mean(axis=1 - axis), (rows, columns)[axis]) for axis in (0, 1))
    return np.where(across[:, None] | down, 0, ink)


def _rules(spans: Float[ndarray, "L"], cells: int) -> Bool[ndarray, "L"]:
    """Which lines of pixels are ruled, by the share of each that is inked."""
    ruled = np.zeros(len(spans), dtype=bool)
    thickest = THICKEST * len(spans) / cells
    for place in range(1, cells):
        apart = np.abs(np.arange(len(spans)) + 0.5 - len(spans) * place / cells)
        found = (apart <= thickest) & (spans >= SPANNED)
        if found.sum() <= thickest:
            ruled |= found
    wider = np.pad(ruled, 1)  # the lines beside them are blurred
    return ruled | wider[:-2] | wider[2:]


def frame_widths(marked: Bool[ndarray, "H W"]) -> Widths | None:
    """How many lines of pixels are marked at each side, if that is a thin frame."""
    sides = (marked, marked[::-1], marked.T, marked.T[::-1])  # lines of them go nearly from side to side
    top, bottom, left, right = (int(np.cumprod(each.mean(axis=1) >= SPANNED).sum()) for each in sides)
    height, width = (THICKEST * side for side in marked.shape)
    thin = min(top, bottom, left, right) > 0 and max(top, bottom) <= height and max(left, right) <= width
    return (top, bottom, left, right) if thin else None


def _inside(values: ndarray, widths: Widths) -> ndarray:
    """What a frame holds, less a line at each side where it may be blurred."""
    height, width = values.shape
    top, bottom, left, right = widths
    return values[top + 1 : height - bottom - 1, left + 1 : width - right - 1]


def _stands_free(inside: Ink) -> bool:
    """Whether there is ink that does not touch the edge: else a frame is part of a digit, as in 8."""
    from scipy import ndimage  # here: it takes a while to import

    parts, _ = ndimage.label(inside > 0, structure=np.ones((3, 3)))
    free = float(inside[~np.isin(parts, edge_of(parts))].sum())
    return free > 0 and free >= FREE * float(inside.sum())


def without_specks(ink: Ink) -> Ink:
    """The ink without its smallest parts."""
    from scipy import ndimage

    parts, count = ndimage.label(ink > 0, structure=np.ones((3, 3)))
    masses = ndimage.sum_labels(ink, parts, np.arange(count + 1))
    masses[0] = 0
    kept = masses >= SPECK * masses.max()
    return np.where(kept[parts], ink, 0)
