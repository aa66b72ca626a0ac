"""Heads and metrics as a map: a row is a head, a column a metric, above each kind uniform attention."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.figures.style import MAP, new_figure, styled

_LEFT_OUT = "entropy_nats"  # all others go from 0 to 1
_ROW, _COLUMN = 0.23, 0.78  # inches


def heads_data(found: dict[str, Any]) -> dict[str, Any]:
    """Values with their intervals, by kind of attention; None where a metric does not apply."""
    names = [name for name in found["metrics"] if name != _LEFT_OUT]
    kinds = list(dict.fromkeys(row["kind"] for row in found["heads"]))
    return {
        "metrics": names,
        "examples": found["examples"],
        "kinds": [_kind(kind, names, found["heads"]) for kind in kinds],
    }


def _kind(kind: str, names: list[str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [row for row in rows if row["kind"] == kind]

    def cells(name: str, field: str) -> list[Any]:
        return [row["metrics"].get(name, {}).get(field) for row in mine]

    def uniform(name: str) -> float | None:
        known = [value for value in cells(name, "uniform") if value is not None]
        return sum(known) / len(known) if known else None

    return {
        "kind": kind,
        "heads": [row["head"] for row in mine],
        "uniform": [uniform(name) for name in names],
        "values": [list(row) for row in zip(*(cells(name, "value") for name in names), strict=True)],
        "intervals": [list(row) for row in zip(*(cells(name, "interval") for name in names), strict=True)],
    }


def draw_heads(data: dict[str, Any]) -> Figure:
    """A map for each kind of attention, with the numbers in it."""
    names, kinds = data["metrics"], data["kinds"]
    tall = [len(kind["heads"]) + 1 for kind in kinds]
    figure = new_figure(2.3 + _COLUMN * len(names), 0.7 + _ROW * sum(tall) + 0.3 * len(tall))
    with styled():
        grid = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=tall)[:, 0]
        for axes, kind in zip(grid, kinds, strict=True):
            mesh = _draw_kind(axes, kind, names)
        grid[0].xaxis.set_ticks_position("top")
        grid[0].set_xticks([i + 0.5 for i in range(len(names))], [name.replace("_", " ") for name in names])
        grid[0].tick_params(labeltop=True)
        figure.colorbar(mesh, ax=list(grid), shrink=0.6, label="value, from 0 to 1", pad=0.02)
    return figure


def _draw_kind(axes: Axes, kind: dict[str, Any], names: list[str]) -> Any:
    rows = [kind["uniform"], *kind["values"]]
    shown = [[float("nan") if value is None else value for value in row] for row in rows]
    axes.set_facecolor("#EEEEEE")
    mesh = axes.pcolormesh(shown, vmin=0, vmax=1, cmap=MAP, edgecolor="white", linewidth=0.4)
    for place, row in enumerate(rows):
        for column, value in enumerate(row):
            if value is not None:
                axes.text(
                    column + 0.5,
                    place + 0.5,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    style="italic" if place == 0 else "normal",
                    color="white" if value < 0.6 else "black",
                )
    axes.set_yticks([i + 0.5 for i in range(len(rows))], [f"{kind['kind']}, uniform", *kind["heads"]])
    axes.get_yticklabels()[0].set_fontstyle("italic")
    axes.set_xticks([i + 0.5 for i in range(len(names))], [])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh
