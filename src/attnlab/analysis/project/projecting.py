"""From vectors to points in a plane, and to clusters, with a seed.

    tsne          t-SNE (van der Maaten and Hinton, 2008) of the first 50 principal components, from a start
                  on the first two
    pca-kmeans    the first two principal components
    pca-hdbscan   the same
    umap          UMAP (McInnes, Healy and Melville, 2018); the extra ``umap``

Clusters never come from the picture, but from the first 20 principal components: as many as there are
classes, by K-means (MacQueen, 1967), or, with pca-hdbscan, by density (HDBSCAN: Campello, Moulavi and
Sander, 2013), which leaves points without a cluster, marked -1. Of its tree of clusters the leaves are
taken; those that last longest would join all digits that touch. There are two threads at most: the sum of
two parts does not depend on which of them is ready first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab.analysis.choices import ProjectionMethod
from attnlab.errors import InputError, LabError

METHODS: tuple[ProjectionMethod, ...] = get_args(ProjectionMethod)

NEIGHBOURS = 50  # components that t-SNE and UMAP work on
CLUSTERED = 20  # components that clusters are found in
STEPS = 750  # of t-SNE; a third of them with neighbours pulled together more strongly
FEWEST = 10
"""Points that can be projected."""
NOISE = -1

Vectors = Float[ndarray, "N D"]


@dataclass(frozen=True)
class Projected:
    """Points ``xy``, the cluster of each, and the share of variance of every principal component."""

    xy: Float[ndarray, "N 2"]
    clusters: Int[ndarray, "N"]
    variance: list[float]


def project(vectors: Vectors, method: ProjectionMethod, *, classes: int, seed: int = 0) -> Projected:
    """Points and clusters of ``vectors``; the same twice for the same seed."""
    if len(vectors) < FEWEST:
        raise InputError(f"there are {len(vectors)} points; a projection needs at least {FEWEST}")
    if not np.isfinite(vectors).all():
        raise LabError("the values at this tap are not all finite, so they cannot be projected")
    with _two_threads():
        components, variance = _principal(vectors.astype(np.float64), seed)
        clusters = _clusters(components[:, :CLUSTERED], method, classes, seed)
        xy = _plane(components, method, seed)
    own = clusters != NOISE
    clusters[own] = np.unique(clusters[own], return_inverse=True)[1]  # numbers without a gap
    return Projected(np.asarray(xy, dtype=np.float64), clusters.astype(np.int64), variance)


@contextmanager
def _two_threads() -> Iterator[None]:
    """At most two threads in scikit-learn, and no more than whoever calls has left it."""
    import sklearn.manifold  # noqa: F401  # here: it takes a second to import, and must be there to be limited
    from threadpoolctl import threadpool_info, threadpool_limits

    own = {library["filepath"]: min(2, library["num_threads"]) for library in threadpool_info()}
    with threadpool_limits(limits=own):
        yield


def _principal(vectors: Vectors, seed: int) -> tuple[Float[ndarray, "N E"], list[float]]:
    """The first components, at least two, and the share of variance of each."""
    from sklearn.decomposition import PCA

    count = min(NEIGHBOURS, *vectors.shape)
    if np.ptp(vectors, axis=0).max() == 0:  # nothing varies: every point is the same
        return np.zeros((len(vectors), max(2, count))), [0.0] * count
    model = PCA(n_components=count, svd_solver="auto", random_state=seed)
    components = model.fit_transform(vectors)
    if count == 1:
        components = np.concatenate((components, np.zeros_like(components)), axis=1)
    return components, model.explained_variance_ratio_.tolist()


def _clusters(components: Vectors, method: ProjectionMethod, classes: int, seed: int) -> Any:
    from sklearn.cluster import HDBSCAN, KMeans

    if method == "pca-hdbscan":
        fewest = max(5, len(components) // 100)
        model = HDBSCAN(min_cluster_size=fewest, min_samples=5, cluster_selection_method="leaf", copy=True)
        return model.fit_predict(components)
    different = len(np.unique(components, axis=0))
    return KMeans(n_clusters=min(classes, different), n_init=10, random_state=seed).fit_predict(components)


def _plane(components: Vectors, method: ProjectionMethod, seed: int) -> Any:
    match method:
        case "pca-hdbscan" | "pca-kmeans":
            return components[:, :2]
        case "tsne":
            from sklearn.manifold import TSNE

            near = min(30.0, (len(components) - 1) / 3)
            start = components[:, :2] / max(float(components[:, 0].std()), 1e-12) * 1e-4
            model = TSNE(perplexity=near, init=start.astype(np.float32), max_iter=STEPS, random_state=seed)
            return model.fit_transform(components.astype(np.float32))
        case "umap":
            return _umap()(
                n_neighbors=min(15, len(components) - 1), random_state=seed, n_jobs=1
            ).fit_transform(components)


def _umap() -> Any:
    try:
        from umap import UMAP
    except ImportError as error:
        raise LabError(
            "method umap needs the package umap-learn; pip install 'attnlab[umap]', or use tsne"
        ) from error
    return UMAP
