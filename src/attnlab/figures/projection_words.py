"""What figures and pages say of a projection, from its own numbers."""

from typing import TYPE_CHECKING

from attnlab.analysis.project import Projection
from attnlab.analysis.statistics import two_places

if TYPE_CHECKING:
    from attnlab.figures.projections import DrawnProjection

_TOKENS = {"digit": "mean of patches", "all": "each patch", "cls": "token in front"}


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


def picture_words(run: "DrawnProjection") -> str:
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
    """How well clusters and digits agree."""
    among = " of the points in clusters" if run.noise > 0 else ""
    return (
        f"clusters against {label_words(run)}{among}:\n"
        f"ARI {two_places(run.ari)}, NMI {two_places(run.nmi)}, purity {two_places(run.purity)}"
    )
