"""From grey values to digits as MNIST has them (LeCun, Bottou, Bengio and Haffner, 1998).

MNIST's digits are white on black, scaled into 20 x 20 pixels with their proportions kept, and stand in
28 x 28 pixels such that their centre of mass is at the middle. Here:

    paper   a plane through the grey values of the edge, which bears uneven light
    ink     how far a pixel is from the paper, towards what is furthest from it, above the edge's noise
    digit   the box around the ink without specks, scaled and placed

Borders, frames and ruled lines between cells are left out.

A digit of MNIST that is saved as a picture comes back as it was, dark on light or light on dark.
"""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from PIL import Image
from torch import Tensor

from attnlab.data.clutter import (
    FAINTEST,
    without_border,
    without_frame,
    without_rules,
    without_specks,
)
from attnlab.data.pictures import read_picture
from attnlab.errors import InputError

SIDE, BOX = 28, 20
THIN, PEN = 1.3, 2.0
"""Lines thinner than the first, in pixels of the 20 x 20, are drawn again with the second."""

Grey = Float[ndarray, "H W"]
Ink = Float[ndarray, "H W"]


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
            f"picture {name!r} has {width} x {height} pixels, too few for {rows} x {columns} digits"
        )
    ink = find_ink(without_border(grey))
    if ink.max() == 0:  # a bar that fills its picture looks like paper in a border
        ink = find_ink(grey)
    if ink.max() == 0:
        raise InputError(f"picture {name!r} has no ink in it: nothing stands out against its edge")
    ink = without_rules(without_frame(ink), rows, columns)
    height, width = ink.shape
    digits = np.zeros((SIDE * rows, SIDE * columns), dtype=np.uint8)
    for row in range(rows):
        for column in range(columns):
            cell = ink[
                height * row // rows : height * (row + 1) // rows,
                width * column // columns : width * (column + 1) // columns,
            ]
            if not cell.any():
                raise InputError(
                    f"picture {name!r} has no ink in row {row + 1}, column {column + 1} "
                    f"of its {rows} x {columns} cells"
                )
            digits[SIDE * row : SIDE * (row + 1), SIDE * column : SIDE * (column + 1)] = centred(cell)
    return digits


def find_ink(grey: Grey) -> Ink:
    """How much ink each pixel has, 0 to 1; nothing but 0 where there is none."""
    paper, noise = _paper(grey)
    above = grey - paper
    above = above if above.max() >= -above.min() else -above
    most = float(above.max())
    if most < FAINTEST + min(4 * noise, FAINTEST):
        return np.zeros_like(grey)
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
    digit = _boxed(without_specks(ink))
    scale = BOX / max(digit.shape)
    if scale < 0.5:
        digit = _boxed(_thickened(digit, scale))
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


def _boxed(ink: Ink) -> Float[ndarray, "h w"]:
    """The smallest box around the ink."""
    down, across = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return ink[down[0] : down[-1] + 1, across[0] : across[-1] + 1]


def _thickened(ink: Ink, scale: float) -> Float[ndarray, "h w"]:
    """Thin lines as a pen of MNIST would have drawn them.

    In a bar that is w wide, a pixel is w/4 + 1/2 away from the paper on average.
    """
    from scipy import ndimage  # here: it takes a while to import

    drawn: Bool[ndarray, "H W"] = ink > float(ink.max()) / 2  # a digit may be fainter than its neighbours
    pen = 4 * float(ndimage.distance_transform_edt(np.pad(drawn, 1))[1:-1, 1:-1][drawn].mean()) - 2
    if pen * scale >= THIN:
        return ink
    radius = (PEN / scale - pen) / 2
    room = np.pad(drawn, int(np.ceil(radius)))
    return (ndimage.distance_transform_edt(~room) <= radius).astype(np.float64)
