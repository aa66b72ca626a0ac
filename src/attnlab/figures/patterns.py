"""Attention patterns: every head on one example, or one head on many.

Of tokens the weight from 0 to 1; of images multiples of uniform attention, which gives 1 to every patch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from attnlab.analysis.patterns import Looked
from attnlab.analysis.record import AttentionPatterns
from attnlab.errors import LabError
from attnlab.figures.parts import heat_map, panels, show_image
from attnlab.figures.style import GREY, MAP, new_figure, styled
from attnlab.models.images import patch_grid
from attnlab.specs.codec import later

_PANEL, _IMAGE = 1.8, 2.6  # width of one map in inches, and of one beside an image
_ACROSS, _IMAGES = 4, 8  # maps in a row, and images
_MASKED = "#e4e4e4"  # paper below the hatching of masked keys

Weights = list[list[float]]


@dataclass(frozen=True)
class LayerData:
    """The heads of one attention, with the signs on both axes; ``says`` is what a decoder says in each row.

    A key that no head gives any weight in a row cannot be seen from there: it is masked.
    """

    attention: str
    queries: list[str]
    keys: list[str]
    heads: list[Weights]
    says: list[str] | None = later(None)

    @property
    def masked(self) -> list[list[bool]]:
        """Which keys are masked, row by row."""
        return np.all(np.array(self.heads) == 0, axis=0).tolist()


@dataclass(frozen=True, kw_only=True)
class PatternsData:
    """Every head on one example, which may go unnamed."""

    example: str = later("")
    answer: str = later("")
    note: str = later("")
    layers: list[LayerData]


@dataclass(frozen=True)
class PanelData:
    """One head on one example."""

    example: str
    answer: str
    queries: list[str]
    keys: list[str]
    pattern: Weights
    says: list[str] | None = later(None)


@dataclass(frozen=True)
class HeadData:
    """One head on each example."""

    head: str
    examples: list[PanelData]
    note: str = later("")


@dataclass(frozen=True)
class PatchHead:
    """One head on an image: its pattern and what each patch receives, both times S."""

    head: str
    queries: list[str]
    keys: list[str]
    pattern: Weights
    received: Weights


@dataclass(frozen=True)
class PatchPatterns:
    """Every head on one image."""

    example: str
    answer: str
    image: list[Any]
    heads: list[PatchHead]


@dataclass(frozen=True)
class HeadImages:
    """Images, and what each of their patches receives from one head."""

    head: str
    images: list[Any]
    received: list[Weights]
    answers: list[str]


def patterns_data(
    patterns: Iterable[AttentionPatterns], *, example: str = "", answer: str = "", note: str = ""
) -> PatternsData:
    """Rows of heads by the attention that holds them."""
    layers = [
        LayerData(each.attention, each.queries, each.keys, each.pattern.tolist(), each.says)
        for each in patterns
    ]
    return PatternsData(example=example, answer=answer, note=note, layers=layers)


@styled()
def draw_patterns(data: PatternsData) -> Figure:
    """A map for each head: a row is a query, a column a key, colour the weight from 0 to 1; masked keys are
    hatched.
    """
    layers = data.layers
    rows, columns = len(layers), max(len(layer.heads) for layer in layers)
    tall = [len(layer.queries) / len(layer.keys) for layer in layers]
    figure = new_figure(_PANEL * columns + 0.7, sum(_PANEL * each + 0.35 for each in tall))
    title = f"{data.example} = {data.answer}" if data.example else ""
    if title or data.note:
        figure.suptitle("\n".join(filter(None, (title, data.note))), fontsize=10)
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=tall)
    for row, layer in zip(grid, layers, strict=True):
        for axes in row[len(layer.heads) :]:
            axes.axis("off")
        for index, (axes, head) in enumerate(zip(row, layer.heads, strict=False)):
            title = f"{layer.attention}.{index}"
            mesh = _map(axes, head, layer.masked, _rows(layer), layer.keys, title)
    figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight", aspect=20 * rows)
    return figure


def head_examples_data(head: str, looked: Sequence[Looked]) -> HeadData:
    """One head's pattern on each example."""
    found = [(each, *each.of(head)) for each in looked]
    examples = [
        PanelData(each.example, each.answer, holder.queries, holder.keys, pattern.tolist(), holder.says)
        for each, holder, pattern in found
    ]
    return HeadData(head, examples, looked[0].note)


@styled()
def draw_head_examples(data: HeadData) -> Figure:
    """A map for each example, each with its own signs on both axes."""
    first, count = data.examples[0], len(data.examples)
    columns = min(_ACROSS, count)
    rows = -(-count // columns)
    tall = len(first.queries) / len(first.keys)
    figure = new_figure(_PANEL * max(columns, 2) + 0.7, (_PANEL * tall + 0.35) * rows + 0.4)
    figure.suptitle("\n".join(filter(None, (data.head, data.note))), fontsize=10)
    every = panels(figure, count, columns)
    for axes, panel in zip(every, data.examples, strict=True):
        title = f"{panel.example} = {panel.answer}"
        masked = (np.array(panel.pattern) == 0).tolist()
        mesh = _map(axes, panel.pattern, masked, _rows(panel), panel.keys, title)
    figure.colorbar(mesh, ax=figure.axes, shrink=0.8, label="weight", aspect=20 * rows)
    return figure


def _rows(of: LayerData | PanelData) -> list[str]:
    """What stands at the rows: of a decoder the token that is said there, else the query."""
    return of.queries if of.says is None else [f"→{each}" for each in of.says]


def _map(
    axes: Axes, weights: Weights, masked: list[list[bool]], rows: list[str], keys: list[str], title: str
) -> Any:
    """Queries downwards, keys to the right; masked keys are hatched, not dark like a weight of 0."""
    shown = [
        [None if hidden else weight for weight, hidden in zip(row, line, strict=True)]
        for row, line in zip(weights, masked, strict=True)
    ]
    mesh = heat_map(axes, shown, rows=rows, columns=keys)
    axes.patch.set(facecolor=_MASKED, edgecolor=GREY, hatch="////", linewidth=0)
    axes.tick_params(labelsize=9 if max(map(len, (*keys, *rows))) == 1 else 7)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=8)
    return mesh


def received(image: Sequence[int], pattern: Float[Tensor, "N H T S"]) -> Float[Tensor, "N Y X"]:
    """What every patch gets from all queries and heads, times S; what stands in front has no place."""
    rows, columns = patch_grid(image, pattern.shape[-1])
    each = pattern.mean(dim=(1, 2)) * pattern.shape[-1]  # (N, S)
    return each[:, -rows * columns :].reshape(len(each), rows, columns)


def patch_patterns_data(looked: Looked) -> PatchPatterns:
    """Every head on an image."""
    if looked.image is None:
        raise LabError(f"{looked.example} is not an image, so it has no patches to draw")
    heads = [
        PatchHead(
            head=f"{each.attention}.{index}",
            queries=each.queries,
            keys=each.keys,
            pattern=(pattern * len(each.keys)).tolist(),
            received=received(looked.image.shape[-2:], pattern[None, None])[0].tolist(),
        )
        for each in looked.patterns
        for index, pattern in enumerate(each.pattern)
    ]
    return PatchPatterns(looked.example, looked.answer, looked.image.tolist(), heads)


@styled()
def draw_patch_patterns(data: PatchPatterns) -> Figure:
    """For each head a row: the image, what its patches receive, and the pattern between all patches."""
    figure = new_figure(3 * _IMAGE + 1.6, (_IMAGE + 0.2) * len(data.heads))
    grid = figure.subplots(len(data.heads), 3, squeeze=False)
    for (image, patches, pattern), head in zip(grid, data.heads, strict=True):
        show_image(image, data.image)
        image.set_title(f"{data.example}, answer {data.answer}", fontsize=8)
        image.axis("off")
        side = len(head.received)
        _patch_map(patches, head.received, f"{head.head}: received")
        patches.set(xlabel="column of patches", ylabel="row of patches")
        patches.set(xticks=range(side), yticks=range(side))
        _patch_map(pattern, head.pattern, f"{head.head}: from patch to patch")
        _label_rows(pattern, side, front=len(head.keys) - side * side)
    return figure


def _patch_map(axes: Axes, weights: Weights, title: str) -> None:
    """With a scale of its own, since many patches share what one may get."""
    mesh = axes.imshow(weights, cmap=MAP, vmin=0, vmax=max(2.0, *map(max, weights)))
    axes.set_title(title, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(mesh, ax=axes, shrink=0.7, label="weight (1 = uniform)")


def _label_rows(axes: Axes, side: int, *, front: int) -> None:
    """49 names fit on no axis, so each row of patches is named once; ``front`` tokens stand before them."""
    middles = [front + side * row + (side - 1) / 2 for row in range(side)]
    names = [f"row {row}" for row in range(side)]
    axes.set_xticks(middles, names, rotation=90)
    axes.set_yticks(middles, names)
    axes.set(xlabel="key", ylabel="query")
    for edge in range(0 if front else 1, side):
        for line in (axes.axhline, axes.axvline):
            line(front + side * edge - 0.5, color="white", linewidth=0.4)


def head_images_data(head: str, looked: Sequence[Looked]) -> HeadImages:
    """What every patch of each image receives from one head."""
    images = torch.stack([each.image for each in looked if each.image is not None])
    patterns = torch.stack([each.of(head)[1] for each in looked])[:, None]
    answers = [f"{each.example} → {each.answer}" for each in looked]
    return HeadImages(head, images.tolist(), received(images.shape[-2:], patterns).tolist(), answers)


@styled()
def draw_head_images(data: HeadImages) -> Figure:
    """Images above, what their patches receive below; so again if they do not fit side by side."""
    count = len(data.images)
    across = min(count, _IMAGES)
    bands = -(-count // across)
    figure = new_figure(1.15 * _IMAGES + 0.6, 3.1 * bands)
    figure.suptitle(data.head, fontsize=10)
    grid = figure.subplots(2 * bands, across, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, image, answer in zip(grid[::2].flat, data.images, data.answers, strict=False):
        show_image(axes, image)
        axes.set_title(answer, fontsize=8)
    most = max(2.0, np.max(data.received))
    for axes, weights in zip(grid[1::2].flat, data.received, strict=False):
        mesh = axes.imshow(weights, cmap=MAP, vmin=0, vmax=most)
    figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight received\n(1 = uniform)")
    return figure
