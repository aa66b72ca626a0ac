"""How far a picture can be trusted, and how well clusters and classes agree.

    explained variance   share of the vectors' variance in the first two principal components, and in those
                         that clusters were found in
    trustworthiness      1 if the five nearest of each point in the picture were near before, less for
                         each that was not (Venna and Kaski, 2001); about 0.5 for points at random
    silhouette           mean over points of (b - a) / max(a, b), a the mean distance to points of its
                         class and b to those of the nearest other class (Rousseeuw, 1987): from -1 to 1,
                         of the vectors themselves and of the picture
    ARI                  agreement of clusters and classes (Hubert and Arabie, 1985): 0 by chance, 1 at best
    NMI                  their mutual information over the mean of their entropies: from 0 to 1
    purity               share of points whose cluster's most frequent class is their own

ARI, NMI and purity are of the points that have a cluster; ``noise`` is the share of those that have none.
Trustworthiness and silhouette compare all pairs, so they are of at most 2,000 points, drawn with the seed.
A number that cannot be had (one class, no cluster) is None.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab.analysis.project.projecting import CLUSTERED, NOISE, Projected
from attnlab.results import Result

PAIRED = 2000
"""Points of which all pairs are compared."""
NEAR = 5


@dataclass(frozen=True, kw_only=True)
class Scores(Result):
    """All numbers of a projection."""

    points: int
    compared: int
    explained_variance: float
    explained_variance_clustered: float
    trustworthiness: float | None
    silhouette: float | None
    silhouette_picture: float | None
    clusters: int
    noise: float
    ari: float | None
    nmi: float | None
    purity: float | None


def scores(
    vectors: Float[ndarray, "N D"], labels: Int[ndarray, "N"], found: Projected, *, seed: int = 0
) -> Scores:
    """All numbers."""
    own = found.clusters != NOISE
    chosen = np.sort(np.random.default_rng(seed).permutation(len(labels))[:PAIRED])
    ari, nmi, pure = _agreement(labels[own], found.clusters[own])
    return Scores(
        points=len(labels),
        compared=len(chosen),
        explained_variance=sum(found.variance[:2]),
        explained_variance_clustered=sum(found.variance[:CLUSTERED]),
        trustworthiness=_trust(vectors[chosen], found.xy[chosen]),
        silhouette=silhouette(vectors[chosen], labels[chosen]),
        silhouette_picture=silhouette(found.xy[chosen], labels[chosen]),
        clusters=len(np.unique(found.clusters[own])),
        noise=float(1 - own.mean()),
        ari=ari,
        nmi=nmi,
        purity=pure,
    )


def purity(labels: Int[ndarray, "N"], clusters: Int[ndarray, "N"]) -> float:
    """Share of points that are of the most frequent class of their cluster."""
    best = [np.bincount(labels[clusters == cluster]).max() for cluster in np.unique(clusters)]
    return float(sum(best) / len(labels))


def _agreement(
    labels: Int[ndarray, "N"], clusters: Int[ndarray, "N"]
) -> tuple[float | None, float | None, float | None]:
    """ARI, NMI and purity."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    if len(labels) == 0:
        return None, None, None
    agree, shared = adjusted_rand_score(labels, clusters), normalized_mutual_info_score(labels, clusters)
    return float(agree), float(shared), purity(labels, clusters)


def _trust(vectors: Float[ndarray, "N D"], xy: Float[ndarray, "N 2"]) -> float | None:
    from sklearn.manifold import trustworthiness

    near = min(NEAR, (len(vectors) - 1) // 2)
    return float(trustworthiness(vectors, xy, n_neighbors=near))


def silhouette(vectors: Float[ndarray, "N D"], labels: Int[ndarray, "N"]) -> float | None:
    """Of the classes ``labels``; None where there is one class, or every point is a class of its own."""
    from sklearn.metrics import silhouette_score  # here: it takes a second to import

    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(vectors, labels))
