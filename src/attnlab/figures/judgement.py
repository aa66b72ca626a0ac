"""How far methods of attribution agree, and what many inputs say about each."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from attnlab.analysis.explain import CONTROLS, MODES, Judgement
from attnlab.analysis.explain.verdict import AGREE
from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled
from attnlab.results import Estimate

_LOOKS = {"deletion": (BLUE, "o", -0.15), "insertion": (ORANGE, "s", 0.15)}  # colour, form and offset
_SIGNED = "PuOr_r"  # white at 0
_APART = 0.3  # columns between agreement and the check of weights


def draw_explain_many(found: Judgement) -> Figure:
    """Above, how much better than chance each method is; below, agreement and the check of weights."""
    figure = new_figure(9.5, 6.6)
    with styled():
        where = f", place {found.place}" if found.place else ""
        figure.suptitle(f"{found.run}: {found.inputs:,} {found.split} inputs{where}", fontsize=10)
        halves: Any = figure.subfigures(2, 1, height_ratios=(2.6, 3.4))
        top, bottom = halves
        _draw_advantages(top, found)
        left, right = bottom.subfigures(1, 2, width_ratios=(1, 1.05))
        rhos = [[found.agreement[a][b].value for b in found.methods] for a in found.methods]
        draw_agreement(left, found.methods, rhos)
        _draw_shuffled(right, found)
    return figure


def _draw_advantages(figure: SubFigure, found: Judgement) -> None:
    names = [*found.methods, *CONTROLS]
    grid = figure.subplots(1, len(found.replacements), sharex=True, sharey=True)
    for axes, replacement in zip(grid, found.replacements, strict=True):
        axes.axvline(0, color=GREY, linewidth=0.8)
        for mode in MODES:
            cells = [found.advantage[name][replacement][mode] for name in names]
            colour, marker, offset = _LOOKS[mode]
            _dots(axes, cells, colour, marker, offset, mode)
        axes.set_title(f"{replacement} in place of parts", fontsize=9)
        axes.set_xlabel("area better than chance", fontsize=8)
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=8)


def _draw_shuffled(figure: SubFigure, found: Judgement) -> None:
    axes = figure.subplots()
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.axvline(AGREE, color=GREY, linewidth=0.8, linestyle=":")
    _dots(axes, [found.shuffled[name] for name in found.methods], BLUE, "o", 0.0, None)
    labels = [f"{name}: {found.verdicts[name].answer}" for name in found.methods]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set(xlim=(-1.02, 1.02))
    axes.set_xlabel("rho with itself on shuffled weights; dots: limit", fontsize=8)
    axes.set_title("an explanation? and the check of weights", fontsize=9)


def _dots(
    axes: Axes, cells: list[Estimate], colour: str, marker: str, offset: float, label: str | None
) -> None:
    """Means with their 95% intervals, a row each."""
    for row, cell in enumerate(cells):
        axes.plot(cell.ends, [row + offset] * 2, color=colour, linewidth=1.6)
        axes.plot(
            [cell.value],
            [row + offset],
            marker,
            color=colour,
            markersize=5,
            label=label if row == 0 else None,
        )


def draw_agreement(
    figure: SubFigure, names: list[str], values: list[list[float]], shuffled: list[float] | None = None
) -> None:
    """Spearman's rho of every method with every method, and apart from it with itself, weights shuffled."""
    axes, count = figure.subplots(), len(names)
    _rhos(axes, values, 0.0)
    places = [place + 0.5 for place in range(count)]
    axes.set_yticks(places, names, fontsize=8)
    if shuffled is not None:
        _rhos(axes, [[value] for value in shuffled], count + _APART)
        places, names = [*places, count + _APART + 0.5], [*names, "itself, weights shuffled"]
    axes.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("agreement of ranks (Spearman's rho of sizes)", fontsize=9)


def _rhos(axes: Axes, values: list[list[float]], left: float) -> None:
    """A table of rho, coloured and written, whose first column begins at ``left``."""
    xs, ys = [left + at for at in range(len(values[0]) + 1)], list(range(len(values) + 1))
    axes.pcolormesh(xs, ys, values, cmap=_SIGNED, vmin=-1, vmax=1, edgecolor="white", linewidth=0.4)
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            axes.text(
                left + column + 0.5,
                row + 0.5,
                f"{value:z.2f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(value) > 0.7 else "black",
            )
