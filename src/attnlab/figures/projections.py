"""Projections: points in a plane, marked with their true digit and with the cluster they were found in.

A point is drawn as its digit, or as the letter of its cluster, so that nothing needs colour; colours are
Tol's muted ones (2021), the lightest made darker. A cluster has the colour of its most frequent digit, so
where both sides agree they look alike.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.project import Points, Projected
from attnlab.analysis.project.projecting import NOISE
from attnlab.figures.projection_words import agreement_words, cluster_words, picture_words, place_words
from attnlab.figures.style import GREY, new_figure, styled

COLOURS = (
    "#332288", "#CC6677", "#117733", "#882255", "#44AA99",
    "#AA4499", "#3C97C9", "#85852B", "#C48A12", "#555555",
)  # fmt: skip
_PANEL = 4.3  # inches
_HIGH = {1: 4.3, 2: 3.3}  # the same by rows of panels: two fit a screen
_MANY = 2000  # points from which SVG holds them as an image


def projections_data(found: list[tuple[dict[str, Any], Points, Projected]]) -> dict[str, Any]:
    """For each run its numbers and its points."""
    return {
        "runs": [
            {
                **numbers,
                "x": [round(x, 4) for x in projected.xy[:, 0].tolist()],
                "y": [round(y, 4) for y in projected.xy[:, 1].tolist()],
                **_digits(points),
                "cluster": projected.clusters.tolist(),
                "side": points.side,
                "found": _clusters(points.labels.tolist(), projected.clusters.tolist()),
                "variance": projected.variance,
            }
            for numbers, points, projected in found
        ]
    }


def _digits(points: Points) -> dict[str, Any]:
    """Which digit each point is of, and what the digits are called."""
    return {
        "label": points.labels.tolist(),
        "image": points.image.tolist(),
        "patch": points.patch.tolist(),
        "names": points.names,
    }


def _clusters(labels: list[int], clusters: list[int]) -> list[dict[str, Any]]:
    """Clusters with a letter, the digit that most of their points are of, and how many that are of all."""
    told = []
    for cluster in sorted(set(clusters) - {NOISE}):
        digits = Counter(label for label, own in zip(labels, clusters, strict=True) if own == cluster)
        digit, most = min(digits.items(), key=lambda each: (-each[1], each[0]))
        told.append({"letter": letter(cluster), "digit": digit, "most": most, "points": digits.total()})
    return told


def letter(cluster: int) -> str:
    """A to Z, then AA to ZZ."""
    sign = chr(ord("A") + cluster % 26)
    return sign * (1 + cluster // 26)


def thinned(data: dict[str, Any], points: list[Points], most: int) -> tuple[dict[str, Any], list[Points]]:
    """The same with at most ``most`` points to draw of each run; numbers and clusters stay those of all."""
    thin = [_thin(run, each, most) for run, each in zip(data["runs"], points, strict=True)]
    return {"runs": [run for run, _ in thin]}, [each for _, each in thin]


def _thin(run: dict[str, Any], points: Points, most: int) -> tuple[dict[str, Any], Points]:
    if len(points) <= most:
        return run, points
    order = np.sort(np.random.default_rng(0).permutation(len(points))[:most])
    left = points.part(torch.from_numpy(order))
    kept = {key: [run[key][place] for place in order.tolist()] for key in ("x", "y", "cluster")}
    return {**run, **kept, **_digits(left)}, left


def draw_projections(data: dict[str, Any]) -> Figure:
    """True digits and found clusters: side by side, or of two runs above each other, a column for each."""
    runs = data["runs"]
    one = len(runs) == 1
    wide, high = (2, 1) if one else (len(runs), 2)
    figure = new_figure(wide * _PANEL + 0.3, high * (_HIGH[high] + 0.85))
    with styled():
        grid = figure.subplots(high, wide, squeeze=False)
        for panels, run in zip(grid if one else grid.T, runs, strict=True):
            _draw_run(panels, run)
    return figure


def _draw_run(panels: Iterable[Axes], run: dict[str, Any]) -> None:
    """Its digits on the first panel, its clusters on the second."""
    first, second = panels
    many = len(run["x"]) > _MANY
    digits = {digit: (str(digit), digit) for digit in set(run["label"])}
    clusters = dict(enumerate((each["letter"], each["digit"]) for each in run["found"]))
    _scatter(first, run, run["label"], digits, rasterized=many)
    _scatter(second, run, run["cluster"], clusters, rasterized=many)
    first.set_title(f"{place_words(run)}:\ntrue digit")
    second.set_title(cluster_words(run))
    first.text(0, -0.02, picture_words(run), transform=first.transAxes, fontsize=8, va="top")
    second.text(0, -0.02, agreement_words(run), transform=second.transAxes, fontsize=8, va="top")


def _scatter(
    axes: Axes, run: dict[str, Any], keys: list[int], signs: dict[int, tuple[str, int]], *, rasterized: bool
) -> None:
    """Points drawn as signs; ``signs`` has the sign and the digit that gives the colour, by key."""
    size = 26 if len(keys) <= 1200 else 14
    for key in sorted(set(keys)):
        chosen = [place for place, each in enumerate(keys) if each == key]
        sign, digit = signs.get(key, ("", 0))
        axes.scatter(
            [run["x"][place] for place in chosen],
            [run["y"][place] for place in chosen],
            s=size * max(0.4, len(sign)),
            marker=f"$\\mathrm{{{sign}}}$" if sign else "x",
            color=COLOURS[digit % len(COLOURS)] if sign else GREY,
            linewidths=0.15 if sign else 0.6,
            rasterized=rasterized,
        )
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#cccccc")
