"""Projections: points in a plane, marked with their true digit and with the cluster they were found in.

A point is drawn as its digit, or as the letter of its cluster, so that nothing needs colour; colours are
Tol's muted ones (2021), the lightest made darker. A cluster has the colour of its most frequent digit, so
where both sides agree they look alike.
"""

from collections import Counter
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.analysis.projections import Points, Projected
from attnlab.analysis.projections.projecting import NOISE
from attnlab.analysis.statistics import two_places
from attnlab.figures.style import GREY, new_figure, styled

COLOURS = (
    "#332288", "#CC6677", "#117733", "#882255", "#44AA99",
    "#AA4499", "#3C97C9", "#85852B", "#C48A12", "#555555",
)  # fmt: skip
_PANEL = 4.3  # inches
_MANY = 2000  # points from which SVG holds them as an image


def projections_data(found: list[tuple[dict[str, Any], Points, Projected]]) -> dict[str, Any]:
    """For each run its numbers and its points."""
    return {
        "runs": [
            {
                **numbers,
                "x": [round(x, 4) for x in projected.xy[:, 0].tolist()],
                "y": [round(y, 4) for y in projected.xy[:, 1].tolist()],
                "label": points.labels.tolist(),
                "cluster": projected.clusters.tolist(),
                "image": points.image.tolist(),
                "patch": points.patch.tolist(),
                "side": points.side,
                "found": _clusters(points.labels.tolist(), projected.clusters.tolist()),
                "names": points.names,
                "variance": projected.variance,
            }
            for numbers, points, projected in found
        ]
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


def draw_projections(data: dict[str, Any]) -> Figure:
    """A row for each run: true digits at the left, found clusters at the right."""
    runs = data["runs"]
    figure = new_figure(2 * _PANEL + 0.3, (_PANEL + 0.85) * len(runs))
    with styled():
        grid = figure.subplots(len(runs), 2, squeeze=False)
        for (left, right), run in zip(grid, runs, strict=True):
            many = len(run["x"]) > _MANY
            digits = {digit: (str(digit), digit) for digit in set(run["label"])}
            clusters = dict(enumerate((each["letter"], each["digit"]) for each in run["found"]))
            _scatter(left, run, run["label"], digits, rasterized=many)
            _scatter(right, run, run["cluster"], clusters, rasterized=many)
            left.set_title(f"{run['run']}, {run['tap']}: true digit")
            right.set_title(cluster_words(run))
            left.text(0, -0.02, picture_words(run), transform=left.transAxes, fontsize=8, va="top")
            right.text(0, -0.02, agreement_words(run), transform=right.transAxes, fontsize=8, va="top")
    return figure


def cluster_words(run: dict[str, Any]) -> str:
    """What was found, and how."""
    how = "HDBSCAN" if run["method"] == "pca-hdbscan" else "K-means"
    noise = f", {100 * run['noise']:.0f}% noise (×)" if run["noise"] > 0 else ""
    return f"{run['clusters']} clusters by {how}{noise}"


def picture_words(run: dict[str, Any]) -> str:
    """How far the picture can be trusted."""
    first, second = [*run["variance"], 0.0, 0.0][:2]
    told = f"{run['points']:,} points of {run['dimensions']} dimensions"
    parts = f"{100 * first:.0f}% and {100 * second:.0f}% of the variance"
    return (
        f"{method_words(run)} of {told}\n"
        f"components 1 and 2 hold {parts}\n"
        f"trustworthiness {two_places(run['trustworthiness'])}; silhouette of the digits "
        f"{two_places(run['silhouette'])}, in the picture {two_places(run['silhouette_picture'])}"
    )


def method_words(run: dict[str, Any]) -> str:
    """How points got into the plane."""
    return {"tsne": "t-SNE", "umap": "UMAP"}.get(run["method"], "principal components 1 and 2")


def agreement_words(run: dict[str, Any]) -> str:
    """How well clusters and digits agree."""
    among = " of the points in clusters" if run["noise"] > 0 else ""
    return (
        f"clusters against digits{among}:\n"
        f"ARI {two_places(run['ari'])}, NMI {two_places(run['nmi'])}, purity {two_places(run['purity'])}"
    )


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
