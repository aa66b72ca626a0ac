"""Attention patterns of tokens: every head on one example, or one head on many."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.patterns import AttentionPatterns, Looked
from attnlab.figures.style import MAP, new_figure, styled
from attnlab.spec.codec import later

_PANEL = 1.8  # width of one map in inches
_ACROSS = 4


@dataclass(frozen=True)
class LayerData:
    """The heads of one attention, with the signs on both axes."""

    attention: str
    queries: list[str]
    keys: list[str]
    heads: list[list[list[float]]]


@dataclass(frozen=True, kw_only=True)
class PatternsData:
    """Every head on one example, which may go unnamed."""

    example: str = later("")
    answer: str = later("")
    layers: list[LayerData]


@dataclass(frozen=True)
class PanelData:
    """One head on one example."""

    example: str
    answer: str
    queries: list[str]
    keys: list[str]
    pattern: list[list[float]]


@dataclass(frozen=True)
class HeadData:
    """One head on each example."""

    head: str
    examples: list[PanelData]


def patterns_data(
    patterns: Iterable[AttentionPatterns], *, example: str = "", answer: str = ""
) -> PatternsData:
    """Rows of heads by the attention that holds them."""
    layers = [
        LayerData(each.attention, each.queries, each.keys, each.pattern.tolist()) for each in patterns
    ]
    return PatternsData(example=example, answer=answer, layers=layers)


def draw_patterns(data: PatternsData) -> Figure:
    """A map for each head: a row is a query, a column a key, colour the weight from 0 to 1."""
    layers = data.layers
    rows, columns = len(layers), max(len(layer.heads) for layer in layers)
    tall = [len(layer.queries) / len(layer.keys) for layer in layers]
    figure = new_figure(_PANEL * columns + 0.7, sum(_PANEL * each + 0.35 for each in tall))
    with styled():
        if data.example:
            figure.suptitle(f"{data.example} = {data.answer}", fontsize=10)
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=tall)
        for row, layer in zip(grid, layers, strict=True):
            for index, axes in enumerate(row):
                if index >= len(layer.heads):
                    axes.axis("off")
                    continue
                mesh = _map(axes, layer.heads[index], layer.queries, layer.keys)
                axes.set_title(f"{layer.attention}.{index}", fontsize=8)
        figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight", aspect=20 * rows)
    return figure


def head_examples_data(head: str, looked: list[Looked]) -> HeadData:
    """One head's pattern on each example."""
    panels = []
    for each in looked:
        holder, pattern = each.of(head)
        panels.append(PanelData(each.example, each.answer, holder.queries, holder.keys, pattern.tolist()))
    return HeadData(head, panels)


def draw_head_examples(data: HeadData) -> Figure:
    """A map for each example, each with its own signs on both axes."""
    panels = data.examples
    columns = min(_ACROSS, len(panels))
    rows = math.ceil(len(panels) / columns)
    tall = len(panels[0].queries) / len(panels[0].keys)
    figure = new_figure(_PANEL * max(columns, 2) + 0.7, (_PANEL * tall + 0.35) * rows + 0.4)
    with styled():
        figure.suptitle(data.head, fontsize=10)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.axis("off")
        for axes, panel in zip(grid.flat, panels, strict=False):
            mesh = _map(axes, panel.pattern, panel.queries, panel.keys)
            axes.set_title(f"{panel.example} = {panel.answer}", fontsize=8)
        figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight", aspect=20 * rows)
    return figure


def _map(axes: Axes, weights: list[list[float]], queries: list[str], keys: list[str]) -> Any:
    """Queries downwards, keys to the right."""
    mesh = axes.pcolormesh(weights, vmin=0, vmax=1, cmap=MAP, edgecolor="white", linewidth=0.4)
    size = 9 if max(map(len, (*keys, *queries))) == 1 else 7
    axes.set_xticks([place + 0.5 for place in range(len(keys))], keys, fontsize=size)
    axes.set_yticks([place + 0.5 for place in range(len(queries))], queries, fontsize=size)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh
