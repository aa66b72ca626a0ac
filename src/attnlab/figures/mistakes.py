"""A gallery of mistakes, the most confident first, with those framed that are likely mislabelled."""

import math
from typing import Any

from jaxtyping import UInt8
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlab.analysis.mistakes import ImageMistake
from attnlab.figures.style import ORANGE, in_grey, new_figure, show_image, styled

SHOWN, ACROSS = 40, 8


def gallery(worst: list[ImageMistake]) -> list[ImageMistake]:
    """Which mistakes are shown: those likely mislabelled, then the most confident, in their order.

    A digit that stands in several grids is shown once.
    """
    new = [row for row in worst if not row.again]
    order = sorted(range(len(new)), key=lambda place: (not new[place].likely_mislabelled, place))
    return [new[place] for place in sorted(order[:SHOWN])]


def mistakes_data(digits: UInt8[Tensor, "M *C Y X"], worst: list[ImageMistake]) -> dict[str, Any]:
    """Mistakes with their images."""
    return {
        "mistakes": [
            {**vars(row), "image": image.tolist()}
            for row, image in zip(worst[:SHOWN], digits[:SHOWN], strict=True)
        ]
    }


def caption(row: dict[str, Any]) -> str:
    """What is said, how surely, and which digit it is."""
    words = f"{row['labelled']} read as {row['read_as']}, {100 * row['probability']:.1f}%"
    return f"{words}{' ?' if row['likely_mislabelled'] else ''}\n{row['name']}"


def draw_mistakes(data: dict[str, Any]) -> Figure:
    """Each image with its label, the answer and its probability."""
    rows = data["mistakes"]
    bands = max(1, math.ceil(len(rows) / ACROSS))
    figure = new_figure(1.25 * ACROSS, 1.62 * bands + 0.35)
    with styled():
        grid = figure.subplots(bands, ACROSS, squeeze=False)
        for axes in grid.flat:
            axes.axis("off")
        for axes, row in zip(grid.flat, rows, strict=False):
            show_image(axes, row["image"], most=255)
            likely = row["likely_mislabelled"]
            axes.set_title(
                caption(row),
                fontsize=7,
                loc="center",
                color=ORANGE if likely else "black",
            )
            if likely:
                high, wide = in_grey(row["image"]).shape
                frame = Rectangle((-0.5, -0.5), wide, high, fill=False, edgecolor=ORANGE, linewidth=2.5)
                axes.add_patch(frame)
        figure.supxlabel("framed, with a question mark: likely mislabelled", fontsize=8)
    return figure
