"""Projections: points in a plane, marked with their true class and with the cluster they were found in.

A point is drawn as its class, or as the letter of its cluster, so that nothing needs colour; colours are
Tol's muted ones (2021), the lightest made darker. A cluster has the colour of its most frequent class, so
where both sides agree they look alike.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.project.points import Points
from attnlab.analysis.project.projection import NOISE, ProjectedRun, Projection
from attnlab.analysis.statistics import two_places
from attnlab.figures.style import GREY, new_figure, styled
from attnlab.results import Result

COLOURS = (
    "#332288", "#CC6677", "#117733", "#882255", "#44AA99",
    "#AA4499", "#3C97C9", "#85852B", "#C48A12", "#555555",
)  # fmt: skip
_PANEL = 4.3  # inches
_HIGH = {1: 4.3, 2: 3.3}  # the same by rows of panels: two fit a screen
_TOKENS = {"digit": "mean of patches", "all": "each patch", "cls": "token in front"}
_MANY = 2000  # points from which SVG holds them as an image


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster with a letter, the class that most of its points are of, and how many that are of all."""

    letter: str
    digit: int
    most: int
    points: int


@dataclass(frozen=True, kw_only=True)
class DrawnProjection(Projection):
    """The points of a projection: where they are, which class, image, patch and cluster they are of."""

    x: list[float]
    y: list[float]
    label: list[int]
    image: list[int]
    patch: list[int]
    names: list[str]
    cluster: list[int]
    side: int
    found: list[Cluster]
    variance: list[float]


@dataclass(frozen=True, kw_only=True)
class ProjectionsFigure(Result):
    """Projections side by side."""

    runs: list[DrawnProjection]


def projections_data(found: Sequence[ProjectedRun]) -> ProjectionsFigure:
    """For each run its numbers and its points."""
    return ProjectionsFigure(runs=[_drawn(each) for each in found])


def _drawn(found: ProjectedRun) -> DrawnProjection:
    points, projected = found.cloud, found.plane
    labels, clusters = points.labels.tolist(), projected.clusters.tolist()
    return DrawnProjection(
        **vars(found.numbers),
        x=[round(x, 4) for x in projected.xy[:, 0].tolist()],
        y=[round(y, 4) for y in projected.xy[:, 1].tolist()],
        label=labels,
        image=points.image.tolist(),
        patch=points.patch.tolist(),
        names=points.names,
        cluster=clusters,
        side=points.side,
        found=_clusters(labels, clusters),
        variance=projected.variance,
    )


def _clusters(labels: list[int], clusters: list[int]) -> list[Cluster]:
    told = []
    for cluster in sorted(set(clusters) - {NOISE}):
        classes = Counter(label for label, own in zip(labels, clusters, strict=True) if own == cluster)
        own, most = min(classes.items(), key=lambda each: (-each[1], each[0]))
        told.append(Cluster(letter=letter(cluster), digit=own, most=most, points=classes.total()))
    return told


def letter(cluster: int) -> str:
    """A to Z, then AA to ZZ."""
    sign = chr(ord("A") + cluster % 26)
    return sign * (1 + cluster // 26)


def short_sign(name: str, number: int) -> str:
    """A class as a mark: its name if it is short and plain, else a letter of its own."""
    sign = name[:2]
    return sign if sign.isascii() and sign.isalnum() else letter(number)


def thinned(
    data: ProjectionsFigure, points: list[Points], most: int
) -> tuple[ProjectionsFigure, list[Points]]:
    """The same with at most ``most`` points to draw of each run; numbers and clusters stay those of all."""
    thin = [_thin(run, each, most) for run, each in zip(data.runs, points, strict=True)]
    return ProjectionsFigure(runs=[run for run, _ in thin]), [each for _, each in thin]


def _thin(run: DrawnProjection, points: Points, most: int) -> tuple[DrawnProjection, Points]:
    if len(points) <= most:
        return run, points
    order = np.sort(np.random.default_rng(0).permutation(len(points))[:most])
    left, chosen = points.part(torch.from_numpy(order)), order.tolist()
    thin = replace(
        run,
        x=[run.x[place] for place in chosen],
        y=[run.y[place] for place in chosen],
        cluster=[run.cluster[place] for place in chosen],
        label=left.labels.tolist(),
        image=left.image.tolist(),
        patch=left.patch.tolist(),
        names=left.names,
    )
    return thin, left


@styled()
def draw_projections(data: ProjectionsFigure) -> Figure:
    """True classes and found clusters: side by side, or of two runs above each other, a column for each."""
    runs, one = data.runs, len(data.runs) == 1
    wide, high = (2, 1) if one else (len(runs), 2)
    figure = new_figure(wide * _PANEL + 0.3, high * (_HIGH[high] + 0.85))
    grid = figure.subplots(high, wide, squeeze=False)
    for panels, run in zip(grid if one else grid.T, runs, strict=True):
        _draw_run(panels, run)
    return figure


def _draw_run(panels: Iterable[Axes], run: DrawnProjection) -> None:
    """Its classes on the first panel, its clusters on the second."""
    first, second = panels
    size, many = 26 if len(run.x) <= 1200 else 14, len(run.x) > _MANY
    classes = {label: (short_sign(run.labels[label], label), label) for label in set(run.label)}
    clusters = dict(enumerate((each.letter, each.digit) for each in run.found))
    draw_points(first, run.x, run.y, run.label, classes, size=size, rasterized=many)
    draw_points(second, run.x, run.y, run.cluster, clusters, size=size, rasterized=many)
    first.set_title(f"{place_words(run)}:\ntrue {label_word(run)}")
    second.set_title(cluster_words(run))
    for axes, words in ((first, picture_words(run)), (second, agreement_words(run))):
        axes.set_aspect("equal", adjustable="datalim")
        axes.text(0, -0.02, words, transform=axes.transAxes, fontsize=8, va="top")


def draw_points(
    axes: Axes,
    x: list[float],
    y: list[float],
    keys: list[int],
    signs: dict[int, tuple[str, int]],
    *,
    size: float = 22,
    rasterized: bool = False,
) -> None:
    """Points drawn as signs; ``signs`` has the sign and the class that gives the colour, by key."""
    for key in sorted(set(keys)):
        chosen = np.equal(keys, key)
        sign, label = signs.get(key, ("", 0))
        axes.scatter(
            np.asarray(x)[chosen],
            np.asarray(y)[chosen],
            s=size * max(0.4, len(sign)),
            marker=f"$\\mathrm{{{sign}}}$" if sign.isalnum() else "x",
            color=COLOURS[label % len(COLOURS)] if sign else GREY,
            linewidths=0.15 if sign else 0.6,
            rasterized=rasterized,
        )
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color="#cccccc")


def label_word(run: Projection) -> str:
    """What a label of points is called."""
    return "digit" if run.labels == list(map(str, range(10))) else "class"


def label_words(run: Projection) -> str:
    """The same of several."""
    return "digits" if label_word(run) == "digit" else "classes"


def place_words(run: Projection) -> str:
    """The run, the tap, and where the tap has several tokens, which."""
    return ", ".join(filter(None, (run.run, run.tap, token_words(run))))


def token_words(run: Projection) -> str:
    """Which tokens points are; nothing where there is one a digit."""
    if run.tokens == 1:
        return ""
    token = "".join(run.token.split())
    return _TOKENS.get(token, f"patch {token}")


def cluster_words(run: Projection) -> str:
    """What was found, and how."""
    how = "HDBSCAN" if run.method == "pca-hdbscan" else "K-means"
    noise = f", {100 * run.noise:.0f}% noise (×)" if run.noise > 0 else ""
    return f"{run.clusters} clusters by {how}{noise}"


def picture_words(run: DrawnProjection) -> str:
    """How far the picture can be trusted."""
    first, second = [*run.variance, 0.0, 0.0][:2]
    drawn = f", {len(run.x):,} drawn" if len(run.x) < run.points else ""
    told = f"{run.points:,} points of {run.dimensions} dimensions{drawn}"
    parts = f"{100 * first:.0f}% and {100 * second:.0f}% of the variance"
    return (
        f"{method_words(run)} of {told}\n"
        f"components 1 and 2 hold {parts}\n"
        f"trustworthiness {two_places(run.trustworthiness)}; silhouette of the {label_words(run)} "
        f"{two_places(run.silhouette)}, in the picture {two_places(run.silhouette_picture)}"
    )


def method_words(run: Projection) -> str:
    """How points got into the plane."""
    return {"tsne": "t-SNE", "umap": "UMAP"}.get(run.method, "principal components 1 and 2")


def agreement_words(run: Projection) -> str:
    """How well clusters and classes agree."""
    among = " of the points in clusters" if run.noise > 0 else ""
    return (
        f"clusters against {label_words(run)}{among}:\n"
        f"ARI {two_places(run.ari)}, NMI {two_places(run.nmi)}, purity {two_places(run.purity)}"
    )
