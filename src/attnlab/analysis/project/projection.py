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

How far a picture can be trusted, and how well clusters and classes agree.

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

The projection of a run: points, clusters and numbers, from its folder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab.analysis.choices import SAMPLES, ProjectionMethod
from attnlab.analysis.project.points import Points, collect_points, tap_path
from attnlab.errors import InputError, LabError
from attnlab.progress import Progress, silent
from attnlab.results import Result, Row
from attnlab.runs import RunFolder
from attnlab.specs import Split
from attnlab.specs.codec import unwritten
from attnlab.storage import safe_name

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

            wide = min(30.0, (len(components) - 1) / 3)
            start = components[:, :2] / max(float(components[:, 0].std()), 1e-12) * 1e-4
            model = TSNE(perplexity=wide, init=start.astype(np.float32), max_iter=STEPS, random_state=seed)
            return model.fit_transform(components.astype(np.float32))
        case "umap":
            try:
                from umap import UMAP
            except ImportError as error:
                raise LabError(
                    "method umap needs the package umap-learn; pip install 'attnlab[umap]', or use tsne"
                ) from error
            near = min(15, len(components) - 1)
            return UMAP(n_neighbors=near, random_state=seed, n_jobs=1).fit_transform(components)


PAIRED = 2000
"""Points of which all pairs are compared."""
NEAR = 5


@dataclass(frozen=True, kw_only=True)
class Scores(Result):
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
    from sklearn.manifold import trustworthiness
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    own = found.clusters != NOISE
    classes, clusters = labels[own], found.clusters[own]
    chosen = np.sort(np.random.default_rng(seed).permutation(len(labels))[:PAIRED])
    near = min(NEAR, (len(chosen) - 1) // 2)
    return Scores(
        points=len(labels),
        compared=len(chosen),
        explained_variance=sum(found.variance[:2]),
        explained_variance_clustered=sum(found.variance[:CLUSTERED]),
        trustworthiness=float(trustworthiness(vectors[chosen], found.xy[chosen], n_neighbors=near)),
        silhouette=silhouette(vectors[chosen], labels[chosen]),
        silhouette_picture=silhouette(found.xy[chosen], labels[chosen]),
        clusters=len(np.unique(clusters)),
        noise=float(1 - own.mean()),
        ari=float(adjusted_rand_score(classes, clusters)) if own.any() else None,
        nmi=float(normalized_mutual_info_score(classes, clusters)) if own.any() else None,
        purity=purity(classes, clusters) if own.any() else None,
    )


def purity(labels: Int[ndarray, "N"], clusters: Int[ndarray, "N"]) -> float:
    """Share of points that are of the most frequent class of their cluster."""
    best = [np.bincount(labels[clusters == cluster]).max() for cluster in np.unique(clusters)]
    return float(sum(best) / len(labels))


def silhouette(vectors: Float[ndarray, "N D"], labels: Int[ndarray, "N"]) -> float | None:
    """Of the classes ``labels``; None where there is one class, or every point is a class of its own."""
    from sklearn.metrics import silhouette_score  # here: it takes a second to import

    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(vectors, labels))


@dataclass(frozen=True, kw_only=True)
class Place(Result):
    run: str
    tap: str
    token: str
    tokens: int
    method: ProjectionMethod
    split: Split
    seed: int
    dimensions: int


@dataclass(frozen=True, kw_only=True)
class Projection(Scores, Place):
    """What was asked, and all numbers; ``labels`` are what the classes of points are called."""

    labels: list[str]


@final
@dataclass(frozen=True, kw_only=True)
class ProjectedRun(Projection):
    """The same with its points: what they are of, and where they lie. These are in no JSON, but in
    ``records`` and in the numbers of the figure.
    """

    shown_by: ClassVar[str] = "attnlab.tables.project"

    cloud: Points = unwritten()
    plane: Projected = unwritten()

    @property
    def numbers(self) -> Projection:
        """Without the points."""
        return Projection(**{each.name: getattr(self, each.name) for each in fields(Projection)})

    def records(self) -> list[Row]:
        """A row for each point; ``patch`` is None where a point is not a single patch, ``cluster`` where it
        is in no cluster.
        """
        cloud, columns = self.cloud, (self.plane.xy.tolist(), self.plane.clusters.tolist())
        places = zip(
            cloud.image.tolist(), cloud.labels.tolist(), cloud.patch.tolist(), *columns, strict=True
        )
        return [
            {
                "run": self.run,
                "name": cloud.names[image],
                "label": self.labels[label],
                "patch": None if patch < 0 else patch,
                "x": x,
                "y": y,
                "cluster": None if cluster == NOISE else cluster,
            }
            for image, label, patch, (x, y), cluster in places
        ]

    def beside(self, *others: "ProjectedRun") -> "Projections":
        """This one and others side by side."""
        return Projections(runs=[self, *others])


@final
@dataclass(frozen=True, kw_only=True)
class Projections(Result):
    """Projections side by side."""

    shown_by: ClassVar[str] = "attnlab.tables.project"

    runs: list[ProjectedRun]

    def records(self) -> list[Row]:
        """A row for each point of each run."""
        return [row for run in self.runs for row in run.records()]


def kept_name(
    *taps: str, method: ProjectionMethod, token: str, samples: int, split: Split, seed: int
) -> str:
    """What projections at ``taps`` go by: with what is not as by default, so that none takes the place of
    another.
    """
    words = ["projection", method, *filter(None, taps)]
    words += [] if token == "digit" else ["".join(token.split())]
    words += [] if split == "test" else [split]
    words += [] if samples == SAMPLES else [f"{samples}-points"]
    words += [] if seed == 0 else [f"seed{seed}"]
    return safe_name("-".join(words))


def project_run(
    run: RunFolder,
    *,
    tap: str = "",
    token: str = "digit",
    method: ProjectionMethod = "tsne",
    samples: int = SAMPLES,
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> ProjectedRun:
    """What was asked and all numbers, and the points themselves; nothing is kept in the folder."""
    if samples < FEWEST:
        raise InputError(f"samples is {samples}; it must be at least {FEWEST}")
    model, names = run.model, run.spec().task.labels()
    chosen = tap_path(model, tap)
    points = collect_points(
        run, model, chosen, token=token, samples=samples, split=split, seed=seed, progress=progress
    )
    vectors, labels = points.vectors.double().numpy(), points.labels.numpy()
    projected = project(vectors, method, classes=len(names), seed=seed)
    return ProjectedRun(
        run=run.name,
        tap=chosen,
        token=token,
        tokens=points.tokens,
        method=method,
        split=split,
        seed=seed,
        dimensions=int(vectors.shape[1]),
        labels=names,
        **vars(scores(vectors, labels, projected, seed=seed)),
        cloud=points,
        plane=projected,
    )
