"""What patched values restore, as maps with the numbers in them."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.patch.grids import ATTENTION_OUT, HEADS, STREAM
from attnlab.figures.style import GREY, MAP, new_figure, styled

_ROW, _CELL, _LETTER, _TITLE = 0.23, 0.46, 0.068, 0.75  # inches
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORDS = {
    "denoising": "the sum without it is given values of the sum with it",
    "noising": "the sum with it is given values of the sum without it",
}


def stream_data(column: dict[str, Any], direction: str = "denoising") -> dict[str, Any]:
    """Residual stream and attention outputs by position, in percent."""
    titles = {STREAM: "residual stream after", ATTENTION_OUT: "output of attention"}
    panels = [
        [_panel(grid, title) for grid in column[direction] if grid["quantity"] == quantity]
        for quantity, title in titles.items()
    ]
    return _data(column, _WORDS[direction], panels)


def head_grids_data(column: dict[str, Any]) -> dict[str, Any]:
    """Every head at all positions, by what is put in, in both directions, in percent."""
    panels = [
        _panel(grid, {"denoising": "carry put in", "noising": "carry taken out"}[direction])
        for direction in _WORDS
        for grid in column[direction]
        if grid["quantity"] == HEADS
    ]
    return _data(column, "one head at all positions", [panels])


def positions_data(
    column: dict[str, Any], quantity: str = "z", direction: str = "denoising"
) -> dict[str, Any]:
    """One quantity of every head by position, in percent."""
    panels = [_panel(grid, quantity) for grid in column[direction] if grid["quantity"] == quantity]
    return _data(column, _WORDS[direction], [panels])


def _data(column: dict[str, Any], what: str, panels: list[list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "title": f"Carry into {column['name']}, {column['pairs']} pairs: {what}",
        "label": "% of the logit difference restored",
        "panels": panels,
    }


def _panel(grid: dict[str, Any], title: str) -> dict[str, Any]:
    return {
        "title": title,
        "rows": grid["rows"],
        "columns": grid["columns"],
        "percent": [[100 * share for share in row] for row in grid["share"]],
        "interval": [[[100 * end for end in ends] for ends in row] for row in grid["interval"]],
    }


def draw_grids(data: dict[str, Any]) -> Figure:
    """A map for each panel: a row is a layer or a head, a column a position or a quantity."""
    panels = [row for row in data["panels"] if row]
    across = max(map(len, panels))
    wide = [
        max(len(row[place]["columns"]) for row in panels if place < len(row)) for place in range(across)
    ]
    tall = [max(len(panel["rows"]) for panel in row) for row in panels]
    names = [
        max(_LETTER * len(name) for row in panels if place < len(row) for name in row[place]["rows"])
        for place in range(across)
    ]
    figure = new_figure(_CELL * sum(wide) + sum(names) + 1.2, _ROW * sum(tall) + _TITLE * len(tall) + 0.3)
    with styled():
        grid = figure.subplots(len(tall), across, squeeze=False, width_ratios=wide, height_ratios=tall)
        for line, row, height in zip(grid, panels, tall, strict=True):
            for place, axes in enumerate(line):
                if place < len(row):
                    mesh = _draw_panel(axes, row[place], height)
                else:
                    axes.axis("off")
        figure.colorbar(mesh, ax=grid, shrink=0.7, label=data["label"], extend="both", pad=0.02)
        figure.suptitle(_raised(data["title"]), x=0.01, ha="left", fontsize=10)
    return figure


def _draw_panel(axes: Axes, panel: dict[str, Any], height: int) -> Any:
    rows, columns = panel["rows"], panel["columns"]
    mesh = axes.pcolormesh(panel["percent"], vmin=0, vmax=100, cmap=MAP, edgecolor="white", linewidth=0.4)
    for y, row in enumerate(panel["percent"]):
        for x, value in enumerate(row):
            colour = "white" if value < 60 else "black"
            text = f"{value:.0f}".replace("-0", "0")
            axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks([x + 0.5 for x in range(len(columns))], [_raised(name, "\n") for name in columns])
    axes.set_yticks([y + 0.5 for y in range(len(rows))], rows)
    axes.set_ylim(height, 0)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=7.5)
    axes.spines[:].set_visible(False)
    axes.set_title(panel["title"], fontsize=8.5, color=GREY)
    return mesh


def _raised(text: str, space: str = " ") -> str:
    """``10^2`` with a raised 2."""
    first, *rest = text.split("^")
    parts = [first]
    for part in rest:
        digits = len(part) - len(part.lstrip("0123456789"))
        parts.append(part[:digits].translate(_RAISED) + part[digits:])
    return "".join(parts).replace(" ", space)
