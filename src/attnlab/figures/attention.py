"""Attention patterns: every head of one kind, a row a layer."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.patterns import AttentionPatterns
from attnlab.figures.style import MAP, new_figure, styled

_PANEL = 1.8  # width of one map in inches


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
    tall = max(len(layer["queries"]) / len(layer["keys"]) for layer in layers)
    figure = new_figure(_PANEL * columns + 0.7, (_PANEL * tall + 0.35) * rows)
    with styled():
        grid = figure.subplots(rows, columns, squeeze=False)
        for row, layer in zip(grid, layers, strict=True):
            for index, axes in enumerate(row):
                if index >= len(layer["heads"]):
                    axes.axis("off")
                    continue
                mesh = axes.pcolormesh(
                    layer["heads"][index], vmin=0, vmax=1, cmap=MAP, edgecolor="white", linewidth=0.4
                )
                axes.set_xticks([i + 0.5 for i in range(len(layer["keys"]))], layer["keys"])
                axes.set_yticks([i + 0.5 for i in range(len(layer["queries"]))], layer["queries"])
                axes.invert_yaxis()
                axes.set_aspect("equal")
                axes.tick_params(length=0)
                axes.set_title(f"{layer['attention']}.{index}", fontsize=8)
                axes.spines[:].set_visible(False)
        figure.colorbar(mesh, ax=grid, shrink=0.8, label="weight")
    return figure
