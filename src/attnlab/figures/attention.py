"""Attention patterns of sums: every head on one example, or one head on many."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.patterns import AttentionPatterns, Looked
from attnlab.figures.style import MAP, new_figure, styled

_PANEL = 1.8  # width of one map in inches
_ACROSS = 4


def patterns_data(patterns: list[AttentionPatterns]) -> dict[str, Any]:
    """Rows of heads by the attention that holds them, with the signs on both axes."""
    return {
        "layers": [
            {
                "attention": each.attention,
                "queries": each.queries,
                "keys": each.keys,
                "heads": each.pattern.tolist(),
            }
            for each in patterns
        ]
    }


def draw_patterns(data: dict[str, Any]) -> Figure:
    """A map for each head: a row is a query, a column a key, colour the weight from 0 to 1."""
    layers = data["layers"]
    rows, columns = len(layers), max(len(layer["heads"]) for layer in layers)
    tall = [len(layer["queries"]) / len(layer["keys"]) for layer in layers]
    figure = new_figure(_PANEL * columns + 0.7, sum(_PANEL * each + 0.35 for each in tall))
    with styled():
        if "example" in data:
            figure.suptitle(f"{data['example']} = {data['answer']}", fontsize=10)
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=tall)
        for row, layer in zip(grid, layers, strict=True):
            for index, axes in enumerate(row):
                if index >= len(layer["heads"]):
                    axes.axis("off")
                    continue
                mesh = _map(axes, layer["heads"][index], layer["queries"], layer["keys"])
                axes.set_title(f"{layer['attention']}.{index}", fontsize=8)
        figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight", aspect=20 * rows)
    return figure


def head_examples_data(head: str, looked: list[Looked]) -> dict[str, Any]:
    """One head's pattern on each example."""
    panels = []
    for each in looked:
        holder, pattern = each.of(head)
        panels.append(
            {
                "example": each.example,
                "answer": each.answer,
                "queries": holder.queries,
                "keys": holder.keys,
                "pattern": pattern.tolist(),
            }
        )
    return {"head": head, "examples": panels}


def draw_head_examples(data: dict[str, Any]) -> Figure:
    """A map for each example, each with its own signs on both axes."""
    panels = data["examples"]
    columns = min(_ACROSS, len(panels))
    rows = math.ceil(len(panels) / columns)
    tall = len(panels[0]["queries"]) / len(panels[0]["keys"])
    figure = new_figure(_PANEL * max(columns, 2) + 0.7, (_PANEL * tall + 0.35) * rows + 0.4)
    with styled():
        figure.suptitle(data["head"], fontsize=10)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.axis("off")
        for axes, panel in zip(grid.flat, panels, strict=False):
            mesh = _map(axes, panel["pattern"], panel["queries"], panel["keys"])
            axes.set_title(f"{panel['example']} = {panel['answer']}", fontsize=8)
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
