"""Attention patterns of images: every head on one image, or one head on many.

Weights are shown as multiples of uniform attention, which gives 1 to every patch.
"""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.patterns import Looked
from attnlab.errors import LabError
from attnlab.figures.digits import draw_gaze, gaze_data, received
from attnlab.figures.style import MAP, new_figure, show_image, styled

_PANEL = 2.6  # inches


def patch_patterns_data(looked: Looked) -> dict[str, Any]:
    """The image, and for each head its pattern and what each patch receives, both times S."""
    if looked.image is None:
        raise LabError(f"{looked.example} is no image, so it has no patches to draw")
    return {
        "example": looked.example,
        "answer": looked.answer,
        "image": looked.image.tolist(),
        "heads": [
            {
                "head": f"{each.attention}.{index}",
                "queries": each.queries,
                "keys": each.keys,
                "pattern": (pattern * len(each.keys)).tolist(),
                "received": received(looked.image.shape[-2:], pattern[None, None])[0].tolist(),
            }
            for each in looked.patterns
            for index, pattern in enumerate(each.pattern)
        ],
    }


def draw_patch_patterns(data: dict[str, Any]) -> Figure:
    """For each head a row: the image, what its patches receive, and the pattern between all patches."""
    heads = data["heads"]
    figure = new_figure(3 * _PANEL + 1.6, (_PANEL + 0.2) * len(heads))
    with styled():
        grid = figure.subplots(len(heads), 3, squeeze=False)
        for (image, received, pattern), head in zip(grid, heads, strict=True):
            show_image(image, data["image"])
            image.set_title(f"{data['example']}, answer {data['answer']}", fontsize=8)
            image.axis("off")
            side = len(head["received"])
            _map(received, head["received"], f"{head['head']}: received")
            received.set(xlabel="column of patches", ylabel="row of patches")
            received.set_xticks(range(side))
            received.set_yticks(range(side))
            _map(pattern, head["pattern"], f"{head['head']}: from patch to patch")
            _label_rows(pattern, side, front=len(head["keys"]) - side * side)
    return figure


def _map(axes: Axes, weights: list[list[float]], title: str) -> None:
    """With a scale of its own, since many patches share what one may get."""
    mesh = axes.imshow(weights, cmap=MAP, vmin=0, vmax=max(2.0, *map(max, weights)))
    axes.set_title(title, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(mesh, ax=axes, shrink=0.7, label="weight (1 = uniform)")


def head_images_data(head: str, looked: list[Looked]) -> dict[str, Any]:
    """Images, and what each of their patches receives from one head."""
    images = [each.image for each in looked if each.image is not None]
    patterns = [each.of(head)[1] for each in looked]
    words = [f"{each.example} → {each.answer}" for each in looked]
    return {"head": head, **gaze_data(torch.stack(images), torch.stack(patterns)[:, None], words)}


def draw_head_images(data: dict[str, Any]) -> Figure:
    """Images, and below each what its patches receive."""
    figure = draw_gaze(data)
    with styled():
        figure.suptitle(data["head"], fontsize=10)
    return figure


def _label_rows(axes: Axes, side: int, *, front: int) -> None:
    """49 names fit on no axis, so each row of patches is named once; ``front`` tokens stand before them."""
    middles = [front + side * row + (side - 1) / 2 for row in range(side)]
    names = [f"row {row}" for row in range(side)]
    axes.set_xticks(middles, names, rotation=90)
    axes.set_yticks(middles, names)
    axes.set(xlabel="key", ylabel="query")
    for edge in range(0 if front else 1, side):
        axes.axhline(front + side * edge - 0.5, color="white", linewidth=0.4)
        axes.axvline(front + side * edge - 0.5, color="white", linewidth=0.4)
