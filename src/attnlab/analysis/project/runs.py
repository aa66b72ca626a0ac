"""The projection of a run: points, clusters and numbers, from its folder."""

from dataclasses import dataclass

from attnlab.analysis.choices import ProjectionMethod
from attnlab.analysis.project.names import tap_path
from attnlab.analysis.project.points import Points, collect_points
from attnlab.analysis.project.projecting import FEWEST, Projected, project
from attnlab.analysis.project.scores import Scores, scores
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run, load_model
from attnlab.spec import Split


@dataclass(frozen=True, kw_only=True)
class Place(Result):
    """What is projected."""

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


def project_run(
    run: Run,
    *,
    tap: str = "",
    token: str = "digit",
    method: ProjectionMethod = "tsne",
    samples: int = 1000,
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Projection, Points, Projected]:
    """What was asked and all numbers, and the points themselves; nothing is kept in the folder."""
    if samples < FEWEST:
        raise InputError(f"--samples is {samples}; it must be at least {FEWEST}")
    model, names = load_model(run), run.spec().task.labels()
    chosen = tap_path(model, tap)
    points = collect_points(
        run, model, chosen, token=token, samples=samples, split=split, seed=seed, progress=progress
    )
    vectors, labels = points.vectors.double().numpy(), points.labels.numpy()
    projected = project(vectors, method, classes=len(names), seed=seed)
    found = Projection(
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
    )
    return found, points, projected
