"""What a picture has beside its digits: a border, a frame, ruled lines, specks.

    border   the picture's edge has another colour than the paper inside it
    frame    a rectangle around all other ink, which stands free inside it
    rules    lines across the whole picture where two cells meet
    specks   parts with hardly any ink

The first three are straight, thin, and go along rows or columns of pixels. What is tilted by more than its
own width, or has grown together with a digit, is taken for ink.
"""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

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

Grey = Float[ndarray, "H W"]
Ink = Float[ndarray, "H W"]
Widths = tuple[int, int, int, int]
"""At the top, bottom, left and right."""


def edge_of(values: ndarray) -> ndarray:
    """What stands in the first and last row and column."""
    return np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])


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
    down, across = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    box = slice(down[0], down[-1] + 1), slice(across[0], across[-1] + 1)
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
    top, bottom, left, right = (
        _first_lines(each) for each in (marked, marked[::-1], marked.T, marked.T[::-1])
    )
    height, width = (THICKEST * side for side in marked.shape)
    thin = min(top, bottom, left, right) > 0 and max(top, bottom) <= height and max(left, right) <= width
    return (top, bottom, left, right) if thin else None


def _first_lines(marked: Bool[ndarray, "H W"]) -> int:
    """How many lines at the top are marked, nearly from side to side."""
    return int(np.cumprod(marked.mean(axis=1) >= SPANNED).sum())


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
