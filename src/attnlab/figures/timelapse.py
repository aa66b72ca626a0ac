"""How a run came to be: accuracy, heads, positions and a projection over steps, as small multiples.

Steps are drawn as log10(1 + step), so that the start has a place. Every head is a line in the colour and
dashes of its attention; the one that is highest at the end is drawn thick and named in the title.
"""

import math
import textwrap
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.analysis.statistics import two_places
from attnlab.analysis.timelapse.moments import Moment, frames_around
from attnlab.analysis.timelapse.runs import Curve, Timelapse
from attnlab.figures.projections import draw_points
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, new_figure, styled
from attnlab.results import Result

CLOUDS = 6  # frames of the projection that are drawn
ACROSS = 3
_SIZE = 3.6, 2.5  # inches of a panel
Dash = Literal["-", "--", ":"]
DASHES: tuple[Dash, ...] = ("-", "--", ":")
_BAND = "#F6E3B4"


@dataclass(frozen=True)
class Line:
    """One head over snapshots."""

    head: str
    values: list[float]


@dataclass(frozen=True)
class Panel:
    """A metric over snapshots: a line a head, uniform attention, and the head that ends highest."""

    metric: str
    what: str
    lines: list[Line]
    uniform: dict[str, float]
    highest: str


@dataclass(frozen=True)
class Movement:
    """How far a table of positions is from its start."""

    name: str
    mean: list[float]
    sideways: list[float]
    start_norm: float


@dataclass(frozen=True)
class CloudFrame:
    """Points at one step."""

    step: int
    x: list[float]
    y: list[float]
    variance: float
    silhouette: float | None


@dataclass(frozen=True)
class Clouds:
    """The frames of a projection that are drawn; ``label`` counts ``labels``."""

    tap: str
    labels: list[str]
    label: list[int]
    frames: list[CloudFrame]


@dataclass(frozen=True, kw_only=True)
class TimelapseFigure(Result):
    """All that is drawn of a time-lapse; ``frames`` are accuracy and loss at snapshots."""

    run: str
    steps: list[int]
    moment: Moment
    curve: Curve
    frames: dict[str, list[float]]
    panels: list[Panel]
    positions: list[Movement]
    clouds: Clouds | None


def look(place: int) -> tuple[str, Dash]:
    """Colour and dashes of the attention at ``place``."""
    return MARKED[place % len(MARKED)][0], DASHES[place // len(MARKED) % len(DASHES)]


def path_of(head: str) -> str:
    """The attention that a head belongs to."""
    return head.rpartition(".")[0]


def _x(steps: list[int]) -> list[float]:
    return [math.log10(1 + step) for step in steps]


def _axis(axes: Axes, data: TimelapseFigure) -> None:
    """Steps along the bottom, and the moment as a band."""
    end = max(data.steps[-1], data.curve.step[-1])
    ticks = [0, *(10**power for power in range(1 + int(math.log10(max(1, end)))))]
    axes.set_xticks(_x(ticks), [f"{tick:,}" for tick in ticks])
    axes.set(xlim=(-0.03, math.log10(1 + end) + 0.03), xlabel="step")
    moment = data.moment
    if moment.sudden and moment.start is not None and moment.end is not None:
        axes.axvspan(*_x([moment.start, moment.end]), color=_BAND, zorder=0)


def _draw_curve(axes: Axes, data: TimelapseFigure, key: Literal["accuracy", "loss"]) -> None:
    """A line through all measurements, a dot for each snapshot."""
    scale = 100 if key == "accuracy" else 1
    measured = data.curve.accuracy if key == "accuracy" else data.curve.loss
    curve, frames = ([scale * value for value in values] for values in (measured, data.frames[key]))
    axes.plot(_x(data.curve.step), curve, color=BLUE, linewidth=1.2)
    axes.plot(_x(data.steps), frames, "o", color=BLUE, markersize=4, label="snapshots")
    if key == "accuracy":
        axes.set_ylim(-2, 102)
    elif max(curve) > 10 * min(curve):
        axes.set_yscale("log")
    words = "% of validation examples right" if key == "accuracy" else "loss on validation examples"
    axes.set_title(words, fontsize=8)
    axes.legend(fontsize=7)


def _draw_metric(axes: Axes, x: list[float], panel: Panel, looks: dict[str, tuple[str, Dash]]) -> None:
    """A line for each head, and a grey one for uniform attention of each attention."""
    for level in panel.uniform.values():
        axes.axhline(level, color=GREY, linewidth=0.8, zorder=1)
    for line in panel.lines:
        colour, dashes = looks[path_of(line.head)]
        width, above = (2.4, 3) if line.head == panel.highest else (0.9, 2)
        axes.plot(x, line.values, dashes, color=colour, linewidth=width, zorder=above)
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(f"{panel.what}\nhighest at the end: {panel.highest}", fontsize=8)


def _draw_movements(axes: Axes, x: list[float], tables: list[Movement]) -> None:
    """Every trained table of positions: distance from the start, and the part of it that is sideways."""
    for place, table in enumerate(tables):
        colour = (BLUE, ORANGE, MARKED[2][0])[place % 3]
        axes.plot(x, table.mean, color=colour, label=f"{table.name}: distance")
        axes.plot(x, table.sideways, color=colour, linestyle="--", label="of it sideways")
    axes.set_title("how far position vectors are from their start\n(mean over places)", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)


def _draw_clouds(cells: list[Axes], clouds: Clouds) -> None:
    """A panel for each chosen frame, all on one scale."""
    every = [abs(each) for frame in clouds.frames for each in (*frame.x, *frame.y)]
    reach = 1.05 * max(every, default=1.0) or 1.0
    signs = {label: (clouds.labels[label][0], label) for label in set(clouds.label)}
    for axes, frame in zip(cells, clouds.frames, strict=False):
        draw_points(axes, frame.x, frame.y, clouds.label, signs)
        apart = "" if frame.silhouette is None else f", silhouette {two_places(frame.silhouette)}"
        words = f"{clouds.tap}, step {frame.step:,}\n{frame.variance:.0%} of the variance{apart}"
        axes.set_title(words, fontsize=8)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    for axes in cells[len(clouds.frames) :]:
        axes.set_axis_off()


def timelapse_data(found: Timelapse) -> TimelapseFigure:
    """Panels with their lines, and the frames of the projection that are drawn."""
    plane, clouds = found.projection, None
    if plane is not None:
        chosen = chosen_frames(found.steps, found.accuracy, found.moment)
        columns = zip(found.steps, plane.x, plane.y, plane.variance, plane.silhouette, strict=True)
        frames = [CloudFrame(*each) for place, each in enumerate(columns) if place in chosen]
        clouds = Clouds(plane.tap, plane.labels, plane.label, frames)
    return TimelapseFigure(
        run=found.run,
        steps=found.steps,
        moment=found.moment,
        curve=found.curve,
        frames={"accuracy": found.accuracy, "loss": found.loss},
        panels=[_metric_panel(found, name) for name in found.metrics if name != "sparsity"],
        positions=[
            Movement(f"{each.stack}, {each.table}", each.mean, each.sideways, each.start_norm)
            for each in found.positions
        ],
        clouds=clouds,
    )


def _metric_panel(found: Timelapse, name: str) -> Panel:
    """A metric of all heads that have it; attention by attention, since they see different keys."""
    lines = [Line(head.head, head.metrics[name]) for head in found.heads if name in head.metrics]
    uniform: dict[str, list[float]] = {}
    for head in found.heads:
        if name in head.uniform:
            uniform.setdefault(path_of(head.head), []).append(head.uniform[name])
    means = {path: fmean(values) for path, values in uniform.items()}
    highest = max(lines, key=lambda line: line.values[-1]).head
    return Panel(name, found.metrics[name], lines, means, highest)


def chosen_frames(steps: list[int], accuracy: list[float], moment: Moment) -> list[int]:
    """At most ``CLOUDS`` places: first, last, around a sudden moment, then always the one that is farthest
    from all others in log steps (as a share of all) and accuracy together."""
    must = {0, len(steps) - 1}
    if moment.sudden and moment.start is not None and moment.end is not None:
        must.update(frames_around(steps, moment.start, moment.end))
    xs = [math.log10(1 + step) / math.log10(2 + steps[-1]) for step in steps]

    def away(place: int) -> float:
        return min(abs(xs[place] - xs[o]) + abs(accuracy[place] - accuracy[o]) for o in must)

    while len(must) < min(CLOUDS, len(steps)):
        must.add(max((place for place in range(len(steps)) if place not in must), key=away))
    return sorted(must)


@styled()
def draw_timelapse(data: TimelapseFigure) -> Figure:
    """Accuracy, loss, heads and positions in rows of three; below them the projection."""
    paths = list(dict.fromkeys(path_of(line.head) for panel in data.panels for line in panel.lines))
    looks = {path: look(place) for place, path in enumerate(paths)}
    plain = 2 + len(data.panels) + bool(data.positions)
    rows = math.ceil(plain / ACROSS)
    below = math.ceil(len(data.clouds.frames) / ACROSS) if data.clouds else 0
    keys = 0.25 * math.ceil((len(looks) + 1) / 4) + 0.2
    figure = new_figure(_SIZE[0] * ACROSS, _SIZE[1] * rows + 3.1 * below + keys + 0.45)
    heights = [*([_SIZE[1]] * rows), *([3.1] * below)]
    grid = figure.subplots(rows + below, ACROSS, squeeze=False, height_ratios=heights)
    cells, x = list(grid[:rows].flat), _x(data.steps)
    _draw_curve(cells[0], data, "accuracy")
    _draw_curve(cells[1], data, "loss")
    for axes, panel in zip(cells[2:], data.panels, strict=False):
        _draw_metric(axes, x, panel, looks)
    if data.positions:
        _draw_movements(cells[plain - 1], x, data.positions)
    for axes in cells[:plain]:
        _axis(axes, data)
    for axes in cells[plain:]:
        axes.set_axis_off()
    if data.clouds:
        _draw_clouds(list(grid[rows:].flat), data.clouds)
    keys_of = [Line2D([], [], color=c, linestyle=d, label=path) for path, (c, d) in looks.items()]
    keys_of.append(Line2D([], [], color=GREY, linewidth=0.8, label="uniform attention"))
    figure.legend(handles=keys_of, loc="outside lower center", ncols=4, fontsize=8)
    title = textwrap.fill(f"{data.run}: {data.moment.sentence}", 120)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure
