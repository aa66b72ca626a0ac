"""Figures about models that read digits: which are taken for which, and where attention goes."""

import math
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from attnlab.figures.style import BLUE, GREY, MAP, ORANGE, new_figure, show_image, styled
from attnlab.models.images import patch_grid

_ACROSS = 8  # images in a row


def confusion_data(confusion: list[list[int]], classes: list[str] | None = None) -> dict[str, Any]:
    """Percent of each class's images by answer; evaluations that were kept before tell no names."""
    return {
        "classes": classes or [str(number) for number in range(len(confusion))],
        "counts": confusion,
        "percent": [[100 * count / max(1, sum(row)) for count in row] for row in confusion],
    }


def draw_confusion(data: dict[str, Any]) -> Figure:
    """A map: a row is the digit that is shown, a column the answer; mistakes carry their number."""
    size = len(data["counts"])
    figure = new_figure(max(6.8, 0.42 * size), max(5.4, 0.36 * size))
    with styled():
        axes = figure.subplots()
        mesh = axes.pcolormesh(
            data["percent"], vmin=0, vmax=100, cmap=MAP, edgecolor="white", linewidth=0.4
        )
        for shown, row in enumerate(data["counts"]):
            for answer, count in enumerate(row):
                if count:
                    dark = data["percent"][shown][answer] < 60
                    axes.text(
                        answer + 0.5,
                        shown + 0.5,
                        f"{count:,}",
                        ha="center",
                        va="center",
                        color="white" if dark else "black",
                        fontsize=8,
                    )
        places = [place + 0.5 for place in range(size)]
        axes.set_xticks(places, data["classes"])
        axes.set_yticks(places, data["classes"])
        axes.invert_yaxis()
        axes.set_aspect("equal")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set(xlabel="answer", ylabel="shown")
        figure.colorbar(mesh, ax=axes, label="% of the digit's images", shrink=0.8)
    return figure


def gaze_data(
    images: Float[Tensor, "N 28 28"], pattern: Float[Tensor, "N H T S"], answers: list[str]
) -> dict[str, Any]:
    """Images with, for each patch, the weight it gets from all queries and heads times T.

    1 is what every patch gets when attention is uniform.
    """
    return {
        "images": images.tolist(),
        "received": received(images.shape[1:], pattern).tolist(),
        "answers": answers,
    }


def received(image: Sequence[int], pattern: Float[Tensor, "N H T S"]) -> Float[Tensor, "N Y X"]:
    """What every patch gets from all queries and heads, times S; what stands in front has no place."""
    rows, columns = patch_grid(image, pattern.shape[-1])
    each = pattern.mean(dim=(1, 2)) * pattern.shape[-1]  # (N, S)
    return each[:, -rows * columns :].reshape(len(each), rows, columns)


def draw_gaze(data: dict[str, Any]) -> Figure:
    """Images above, what their patches receive below; so again if they do not fit side by side."""
    count = len(data["images"])
    across = min(count, _ACROSS)
    bands = math.ceil(count / across)
    figure = new_figure(1.15 * _ACROSS + 0.6, 3.1 * bands)
    most = max(2.0, max(value for grid in data["received"] for row in grid for value in row))
    with styled():
        grid = figure.subplots(2 * bands, across, squeeze=False)
        for axes in grid.flat:
            axes.axis("off")
        for place in range(count):
            band, column = divmod(place, across)
            above, below = grid[2 * band][column], grid[2 * band + 1][column]
            show_image(above, data["images"][place])
            above.set_title(data["answers"][place], fontsize=8)
            mesh = below.imshow(data["received"][place], cmap=MAP, vmin=0, vmax=most)
        figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight received\n(1 = uniform)")
    return figure


def probes_data(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """What the probes found, by step."""
    probes = [line for line in metrics if line["event"] == "probe"]
    return {
        "step": [line["step"] for line in probes],
        "entropy": [line["entropy"] for line in probes],
        "moved": [line.get("moved") for line in probes],
    }


def draw_probes(data: dict[str, Any]) -> Figure:
    """Both answers over training."""
    figure = new_figure(9.0, 2.8)
    with styled():
        axes = figure.subplots()
        axes.axhline(1, color=GREY, linewidth=0.6)
        axes.plot(
            data["step"], data["entropy"], "o-", color=BLUE, label="entropy of attention, 1 = uniform"
        )
        if None not in data["moved"]:
            axes.plot(
                data["step"], data["moved"], "s--", color=ORANGE, label="answer moved by shuffled patches"
            )
        axes.set(xlabel="step", ylim=(-0.03, 1.06))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    return figure
