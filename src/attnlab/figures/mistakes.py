"""A gallery of mistakes, the most confident first, with those framed that are likely mislabelled."""

import math
from typing import Any

from jaxtyping import UInt8
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlab.figures.style import ORANGE, new_figure, styled

SHOWN, ACROSS = 40, 8


def mistakes_data(digits: UInt8[Tensor, "M 28 28"], worst: list[dict[str, Any]]) -> dict[str, Any]:
    """Mistakes with their images."""
    return {
        "mistakes": [
            {**row, "image": image.tolist()}
            for row, image in zip(worst[:SHOWN], digits[:SHOWN], strict=True)
        ]
    }


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
            axes.imshow(row["image"], cmap="gray_r", vmin=0, vmax=255)
            likely = row["likely_mislabelled"]
            words = f"{row['truth']} read as {row['answer']}{' ?' if likely else ''}"
            axes.set_title(
                f"{words}\n{100 * row['probability']:.1f}%, {row['input']}",
                fontsize=7,
                loc="center",
                color=ORANGE if likely else "black",
            )
            if likely:
                frame = Rectangle((-0.5, -0.5), 28, 28, fill=False, edgecolor=ORANGE, linewidth=2.5)
                axes.add_patch(frame)
        figure.supxlabel("framed, with a question mark: likely mislabelled", fontsize=8)
    return figure
