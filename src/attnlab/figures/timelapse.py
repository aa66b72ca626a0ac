"""How a run came to be: accuracy, heads, positions and a projection over steps, as small multiples.

Steps are drawn as log10(1 + step), so that the start has a place. Every head is a line in the colour and
dashes of its attention; the one that is highest at the end is drawn thick and named in the title.
"""

import math
import textwrap
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.analysis.timelapse import Moment, Plane, Timelapse, frames_around
from attnlab.figures.over_steps import (
    CloudFrame,
    Clouds,
    Line,
    Movement,
    Panel,
    TimelapseFigure,
    draw_clouds,
    draw_curve,
    draw_metric,
    draw_movements,
    look,
    path_of,
)
from attnlab.figures.style import GREY, new_figure, styled

CLOUDS = 6  # frames of the projection that are drawn
ACROSS = 3
_SIZE = 3.6, 2.5  # inches of a panel


def timelapse_data(found: Timelapse) -> TimelapseFigure:
    """Panels with their lines, and the frames of the projection that are drawn."""
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
        clouds=None if found.projection is None else _clouds(found, found.projection),
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


def _clouds(found: Timelapse, plane: Plane) -> Clouds:
    frames = [
        CloudFrame(found.steps[at], plane.x[at], plane.y[at], plane.variance[at], plane.silhouette[at])
        for at in chosen_frames(found.steps, found.accuracy, found.moment)
    ]
    return Clouds(plane.tap, plane.labels, plane.label, frames)


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


def draw_timelapse(data: TimelapseFigure) -> Figure:
    """Accuracy, loss, heads and positions in rows of three; below them the projection."""
    paths = list(dict.fromkeys(path_of(line.head) for panel in data.panels for line in panel.lines))
    looks = {path: look(place) for place, path in enumerate(paths)}
    plain = 2 + len(data.panels) + bool(data.positions)
    rows = math.ceil(plain / ACROSS)
    below = math.ceil(len(data.clouds.frames) / ACROSS) if data.clouds else 0
    keys = 0.25 * math.ceil((len(looks) + 1) / 4) + 0.2
    figure = new_figure(_SIZE[0] * ACROSS, _SIZE[1] * rows + 3.1 * below + keys + 0.45)
    with styled():
        heights = [*([_SIZE[1]] * rows), *([3.1] * below)]
        grid = figure.subplots(rows + below, ACROSS, squeeze=False, height_ratios=heights)
        cells = list(grid[:rows].flat)
        draw_curve(cells[0], data, "accuracy")
        draw_curve(cells[1], data, "loss")
        for axes, panel in zip(cells[2:], data.panels, strict=False):
            draw_metric(axes, data, panel, looks)
        if data.positions:
            draw_movements(cells[plain - 1], data)
        for axes in cells[plain:]:
            axes.set_axis_off()
        if data.clouds:
            draw_clouds(list(grid[rows:].flat), data.clouds)
        keys_of = [Line2D([], [], color=c, linestyle=d, label=path) for path, (c, d) in looks.items()]
        keys_of.append(Line2D([], [], color=GREY, linewidth=0.8, label="uniform attention"))
        figure.legend(handles=keys_of, loc="outside lower center", ncols=4, fontsize=8)
        figure.suptitle(
            textwrap.fill(f"{data.run}: {data.moment.sentence}", 120), fontsize=10, x=0.01, ha="left"
        )
    return figure
