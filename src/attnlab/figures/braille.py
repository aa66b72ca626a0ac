"""Images as text: Braille dots in boxes, as many side by side as fit.

A Braille character has 2 x 4 dots, so a digit of 28 x 28 pixels takes 14 x 7 characters. Of Unicode's
patterns U+2800 is the empty one, and each dot adds a bit to it. What a colour says, a mark says too.
"""

import shutil
from collections.abc import Sequence

import torch
from jaxtyping import UInt8
from rich.text import Text
from torch import Tensor

from attnlab.analysis.samples import Sample
from attnlab.analysis.statistics import percent

INK = 100
"""The least value of a pixel, of 255, that makes a dot."""
MOST = 64
"""Pixels along a side; larger images are shown smaller."""
GAP = 2
RIGHT, WRONG = "✓", "✗"
_EMPTY = 0x2800
_BITS = torch.tensor([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])

LEGEND = (
    f"top left: expected; bottom right: predicted, {RIGHT} right (green) or {WRONG} wrong (red)",
    "below: the image's name, and how probable the answer is",
)


def braille(pixels: UInt8[Tensor, "*C Y X"], *, ink: int = INK) -> list[str]:
    """Lines of Braille, four rows of pixels each; what is missing to whole characters is empty.

    Dots are what is bright; where the edge of an image is bright, what is dark.
    """
    pixels = _shades(pixels)
    rows, columns = pixels.shape
    dots = torch.zeros(-(-rows // 4) * 4, -(-columns // 2) * 2, dtype=torch.long)
    dots[:rows, :columns] = (pixels >= ink).long()
    cells = dots.reshape(dots.shape[0] // 4, 4, dots.shape[1] // 2, 2).transpose(1, 2)
    codes = (cells * _BITS).sum(dim=(2, 3)) + _EMPTY
    return ["".join(map(chr, line)) for line in codes.tolist()]


def _shades(pixels: UInt8[Tensor, "*C Y X"]) -> UInt8[Tensor, "y x"]:
    """Grey, small enough, and bright on dark."""
    grey = pixels if pixels.ndim == 2 else pixels.float().mean(dim=0).round().to(torch.uint8)
    edge = torch.cat((grey[0], grey[-1], grey[:, 0], grey[:, -1])).float().mean()
    return 255 - grey if edge > 127 and pixels.ndim == 3 else grey


def card(sample: Sample, width: int, *, caption: bool = True) -> list[Text]:
    """A sample as lines: a box for each cell, and the image's name below.

    A row of boxes that is wider than ``width`` goes on below, indented.
    """
    lines: list[Text] = []
    across, box = sample.task.columns, _cell(sample, 0, 0).shape[-1]
    box = (box + 1) // 2 + 2  # characters across a cell with its frame
    each = across if across * box <= width else max(1, (width - GAP) // box)
    for place in range(len(sample.answer)):
        row, column = divmod(place, across)
        if column % each == 0:
            boxes = [_box(sample, row, at) for at in range(column, min(column + each, across))]
            indent = " " * GAP if column else ""
            lines += [Text.assemble(indent, *parts) for parts in zip(*boxes, strict=True)]
    if not caption:
        return lines
    room = max(line.cell_len for line in lines)
    words = f"{sample.name} {percent(sample.probability)}"
    return [*lines, Text(words if len(words) <= room else sample.name[: room - 1] + "…")]


def _box(sample: Sample, row: int, column: int) -> list[Text]:
    place = row * sample.task.columns + column
    inside = braille(_cell(sample, row, column))
    width, answer = len(inside[0]), sample.named([sample.answer[place]])
    top, mark, style = "─", "", ""
    if sample.truth is not None:
        top = sample.named([sample.truth[place]])[:width]
        right = sample.truth[place] == sample.answer[place]
        mark, style = (f"{RIGHT} ", "green") if right else (f"{WRONG} ", "red")
    said = f"{mark}{answer}"[:width]
    return [
        Text(f"┌{top}{'─' * (width - len(top))}┐", style),
        *(Text.assemble(("│", style), line, ("│", style)) for line in inside),
        Text(f"└{'─' * (width - len(said))}{said}┘", style),
    ]


def _cell(sample: Sample, row: int, column: int) -> UInt8[Tensor, "*C y x"]:
    """One cell of an image, with every so many of its pixels if it is large."""
    _, height, width = sample.task.cell_shape
    step = max(1, -(-max(height, width) // MOST))
    top, left = row * height, column * width
    return sample.pixels[..., top : top + height : step, left : left + width : step]


def side_by_side(cards: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """Cards in rows, as many in each as ``width`` holds, with an empty line between rows."""
    if not cards:
        return []
    each = max(line.cell_len for card in cards for line in card)
    across = max(1, (width + GAP) // (each + GAP))
    lines: list[Text] = []
    for start in range(0, len(cards), across):
        row = cards[start : start + across]
        for parts in zip(*row, strict=True):
            line = Text()
            for part in parts:
                line.append_text(part).append(" " * (each + GAP - part.cell_len))
            line.rstrip()
            lines.append(line)
        lines.append(Text())
    return lines[:-1]


def picture_width() -> int:
    """Columns for pictures: the terminal's, and 80 where there is none."""
    return shutil.get_terminal_size(fallback=(80, 24)).columns
