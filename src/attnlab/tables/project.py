"""What ``project`` finds: the numbers that judge a projection, of one run or of two side by side."""

from collections.abc import Iterator, Sequence

from attnlab.analysis.project.projection import ProjectedRun, Projections
from attnlab.figures.projections import draw_projections, label_words, projections_data, token_words
from attnlab.results import Drawing, Part, Table

NUMBERS = {
    "points": "points",
    "dimensions": "dimensions",
    "explained_variance": "variance explained by two components",
    "trustworthiness": "trustworthiness of the picture",
    "silhouette": "silhouette of the {}",
    "silhouette_picture": "silhouette in the picture",
    "clusters": "clusters",
    "noise": "points without a cluster",
    "ari": "ARI of clusters and {}",
    "nmi": "NMI",
    "purity": "purity of clusters",
}
SHARES = ("explained_variance", "noise")


def tables(found: ProjectedRun | Projections) -> Iterator[Part]:
    runs = _runs(found)
    first, of = runs[0], label_words(runs[0])
    # the token in a second line, since columns are not broken
    headings = ("\n".join(filter(None, (f"{run.run}, {run.tap}", token_words(run)))) for run in runs)
    yield Table(
        f"{first.method}, {first.split} {of}, seed {first.seed}",
        ("", *headings),
        tuple(
            (words.format(of), *(_value(key, getattr(run, key)) for run in runs))
            for key, words in NUMBERS.items()
        ),
    )
    if any(run.noise > 0 for run in runs):
        yield "ARI, NMI and purity are of the points in clusters"


def figures(found: ProjectedRun | Projections) -> dict[str, Drawing]:
    return {"projection": Drawing(projections_data(_runs(found)), draw_projections)}


def _runs(found: ProjectedRun | Projections) -> Sequence[ProjectedRun]:
    return found.runs if isinstance(found, Projections) else [found]


def _value(key: str, value: float | int | None) -> str:
    if value is None:
        return "none"
    if key in SHARES:
        return f"{100 * value:.1f}%"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
