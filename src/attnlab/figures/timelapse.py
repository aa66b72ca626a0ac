"""How a run came to be: accuracy, heads, positions and a projection over steps, as small multiples.

Steps are drawn as log10(1 + step), so that the start has a place. Every head is a line in the colour and
dashes of its attention; the one that is highest at the end is drawn thick and named in the title.
"""

import math
import textwrap
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnlab.analysis.timelapse import frames_around
from attnlab.figures.over_steps import draw_clouds, draw_curve, draw_metric, draw_movements, look, path_of
from attnlab.figures.style import GREY, new_figure, styled

CLOUDS = 6  # frames of the projection that are drawn
ACROSS = 3
_SIZE = 3.6, 2.5  # inches of a panel


def timelapse_data(found: dict[str, Any]) -> dict[str, Any]:
    """Panels with their lines, and the frames of the projection that are drawn."""
    steps, projection = found["steps"], found["projection"]
    return {
        "run": found["run"],
        "steps": steps,
        "moment": found["moment"],
        "curve": found["curve"],
        "frames": {"accuracy": found["accuracy"], "loss": found["loss"]},
        "panels": [_metric_panel(found, name) for name in found["metrics"] if name != "sparsity"],
        "positions": [
            {
                "name": f"{table['stack']}, {table['table']}",
                "mean": table["mean"],
                "sideways": table["sideways"],
                "start_norm": table["start_norm"],
            }
            for table in found["positions"]
        ],
        "clouds": _clouds(projection, found) if projection else None,
    }


def _metric_panel(found: dict[str, Any], name: str) -> dict[str, Any]:
    """A metric of all heads that have it; attention by attention, since they see different keys."""
    heads = [head for head in found["heads"] if name in head["metrics"]]
    uniform: dict[str, list[float]] = {}
    for head in heads:
        uniform.setdefault(head["head"].rpartition(".")[0], []).append(head["uniform"][name])
    return {
        "metric": name,
        "what": found["metrics"][name],
        "lines": [{"head": head["head"], "values": head["metrics"][name]} for head in heads],
        "uniform": {path: sum(values) / len(values) for path, values in uniform.items()},
        "highest": max(heads, key=lambda head: float(head["metrics"][name][-1]))["head"],
    }


def _clouds(projection: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    steps = found["steps"]
    chosen = chosen_frames(steps, found["accuracy"], found["moment"])
    return {
        "tap": projection["tap"],
        "labels": projection["labels"],
        "label": projection["label"],
        "frames": [
            {
                "step": steps[place],
                **{key: projection[key][place] for key in ("x", "y", "variance", "silhouette")},
            }
            for place in chosen
        ],
    }


def chosen_frames(steps: list[int], accuracy: list[float], moment: dict[str, Any]) -> list[int]:
    """At most ``CLOUDS`` places: first, last, around a sudden moment, then always the one that is farthest
    from all others in log steps (as a share of all) and accuracy together."""
    must = {0, len(steps) - 1}
    if moment["sudden"]:
        must.update(frames_around(steps, moment["start"], moment["end"]))
    xs = [math.log10(1 + step) / math.log10(2 + steps[-1]) for step in steps]

    def away(place: int) -> float:
        return min(abs(xs[place] - xs[o]) + abs(accuracy[place] - accuracy[o]) for o in must)

    while len(must) < min(CLOUDS, len(steps)):
        must.add(max((place for place in range(len(steps)) if place not in must), key=away))
    return sorted(must)


def draw_timelapse(data: dict[str, Any]) -> Figure:
    """Accuracy, loss, heads and positions in rows of three; below them the projection."""
    paths = list(
        dict.fromkeys(path_of(line["head"]) for panel in data["panels"] for line in panel["lines"])
    )
    looks = {path: look(place) for place, path in enumerate(paths)}
    plain = 2 + len(data["panels"]) + bool(data["positions"])
    rows = math.ceil(plain / ACROSS)
    below = math.ceil(len(data["clouds"]["frames"]) / ACROSS) if data["clouds"] else 0
    keys = 0.25 * math.ceil((len(looks) + 1) / 4) + 0.2
    figure = new_figure(_SIZE[0] * ACROSS, _SIZE[1] * rows + 3.1 * below + keys + 0.45)
    with styled():
        heights = [*([_SIZE[1]] * rows), *([3.1] * below)]
        grid = figure.subplots(rows + below, ACROSS, squeeze=False, height_ratios=heights)
        cells = list(grid[:rows].flat)
        draw_curve(cells[0], data, "accuracy")
        draw_curve(cells[1], data, "loss")
        for axes, panel in zip(cells[2:], data["panels"], strict=False):
            draw_metric(axes, data, panel, looks)
        if data["positions"]:
            draw_movements(cells[plain - 1], data)
        for axes in cells[plain:]:
            axes.set_axis_off()
        if data["clouds"]:
            draw_clouds(list(grid[rows:].flat), data["clouds"])
        keys_of = [Line2D([], [], color=c, linestyle=d, label=path) for path, (c, d) in looks.items()]
        keys_of.append(Line2D([], [], color=GREY, linewidth=0.8, label="uniform attention"))
        figure.legend(handles=keys_of, loc="outside lower center", ncols=4, fontsize=8)
        figure.suptitle(
            textwrap.fill(f"{data['run']}: {data['moment']['sentence']}", 120),
            fontsize=10,
            x=0.01,
            ha="left",
        )
    return figure
