"""Panels of a time-lapse: lines over log10(1 + step), and points at one step."""

import math
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes

from attnlab.analysis.timelapse import Plane, Timelapse
from attnlab.figures.projections import COLOURS
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE

Dash = Literal["-", "--", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", ":")
_BAND = "#F6E3B4"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A metric over snapshots: a line a head, uniform attention, and the head that ends highest."""

    what: str
    lines: dict[str, list[float]]
    uniform: dict[str, float]
    highest: str


def look(place: int) -> tuple[str, Dash]:
    """Colour and dashes of the attention at ``place``."""
    return MARKED[place % len(MARKED)][0], DASHES[place // len(MARKED) % len(DASHES)]


def path_of(head: str) -> str:
    """The attention that a head belongs to."""
    return head.rpartition(".")[0]


def _x(steps: list[int]) -> list[float]:
    return [math.log10(1 + step) for step in steps]


def _axis(axes: Axes, found: Timelapse) -> None:
    """Steps along the bottom, and the moment as a band."""
    end = max(found.steps[-1], found.curve.step[-1])
    ticks = [0, *(10**power for power in range(1 + int(math.log10(max(1, end)))))]
    axes.set_xticks(_x(ticks), [f"{tick:,}" for tick in ticks])
    axes.set_xlim(-0.03, math.log10(1 + end) + 0.03)
    axes.set_xlabel("step")
    moment = found.moment
    if moment.sudden and moment.start is not None and moment.end is not None:
        left, right = _x([moment.start, moment.end])
        axes.axvspan(left, right, color=_BAND, zorder=0)


def draw_curve(axes: Axes, found: Timelapse, key: Literal["accuracy", "loss"]) -> None:
    """``accuracy`` or ``loss``: a line through all measurements, a dot for each snapshot."""
    scale = 100 if key == "accuracy" else 1
    curve, frames = (
        [scale * value for value in (each.accuracy if key == "accuracy" else each.loss)]
        for each in (found.curve, found)
    )
    axes.plot(_x(found.curve.step), curve, color=BLUE, linewidth=1.2)
    axes.plot(_x(found.steps), frames, "o", color=BLUE, markersize=4, label="snapshots")
    if key == "accuracy":
        axes.set_ylim(-2, 102)
        axes.set_title("% of validation examples right", fontsize=8)
    else:
        if max(curve) > 10 * min(curve):
            axes.set_yscale("log")
        axes.set_title("loss on validation examples", fontsize=8)
    axes.legend(fontsize=7)
    _axis(axes, found)


def draw_metric(axes: Axes, found: Timelapse, panel: Panel, looks: dict[str, tuple[str, Dash]]) -> None:
    """A line for each head, and a grey one for uniform attention of each attention."""
    x = _x(found.steps)
    for level in panel.uniform.values():
        axes.axhline(level, color=GREY, linewidth=0.8, zorder=1)
    for head, values in panel.lines.items():
        colour, dashes = looks[path_of(head)]
        thick = head == panel.highest
        axes.plot(
            x,
            values,
            color=colour,
            linestyle=dashes,
            linewidth=2.4 if thick else 0.9,
            zorder=3 if thick else 2,
        )
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(f"{panel.what}\nhighest at the end: {panel.highest}", fontsize=8)
    _axis(axes, found)


def draw_movements(axes: Axes, found: Timelapse) -> None:
    """Every trained table of positions: distance from the start, and the part of it that is sideways."""
    for place, table in enumerate(found.positions):
        colour = (BLUE, ORANGE, MARKED[2][0])[place % 3]
        x = _x(found.steps)
        axes.plot(x, table.mean, color=colour, label=f"{table.stack}, {table.table}: distance")
        axes.plot(x, table.sideways, color=colour, linestyle="--", label="of it sideways")
    axes.set_title("how far position vectors are from their start\n(mean over places)", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    _axis(axes, found)


def draw_clouds(cells: list[Axes], plane: Plane, steps: dict[int, int]) -> None:
    """A panel for each chosen frame, all on one scale; ``steps`` by the number of the frame."""
    farthest = max(
        (abs(each) for frame in steps for each in (*plane.x[frame], *plane.y[frame])), default=1.0
    )
    reach = 1.05 * farthest or 1.0
    for axes, (frame, step) in zip(cells, steps.items(), strict=False):
        for label in sorted(set(plane.label)):
            chosen = [place for place, each in enumerate(plane.label) if each == label]
            axes.scatter(
                [plane.x[frame][place] for place in chosen],
                [plane.y[frame][place] for place in chosen],
                s=22,
                marker=f"$\\mathrm{{{plane.labels[label][0]}}}$",
                color=COLOURS[label % len(COLOURS)],
                linewidths=0.15,
            )
        known = plane.silhouette[frame]
        apart = "" if known is None else f", silhouette {round(known, 2) + 0.0:.2f}"
        axes.set_title(
            f"{plane.tap}, step {step:,}\n{plane.variance[frame]:.0%} of the variance{apart}", fontsize=8
        )
        axes.set(xticks=[], yticks=[], xlim=(-reach, reach), ylim=(-reach, reach))
        axes.set_aspect("equal")
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color("#cccccc")
    for axes in cells[len(steps) :]:
        axes.set_axis_off()
