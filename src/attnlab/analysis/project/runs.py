"""The projection of a run: points, clusters and numbers, from its folder."""

from typing import Any

from attnlab.analysis.choices import ProjectionMethod
from attnlab.analysis.image_classifier import require_images
from attnlab.analysis.project.names import tap_path
from attnlab.analysis.project.points import Points, collect
from attnlab.analysis.project.projecting import FEWEST, Projected, project
from attnlab.analysis.project.scores import scores
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.runs import Run
from attnlab.spec import Split

CLASSES = 10


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
) -> tuple[dict[str, Any], Points, Projected]:
    """What was asked and all numbers, and the points themselves; nothing is kept in the folder."""
    if samples < FEWEST:
        raise InputError(f"--samples is {samples}; it must be at least {FEWEST}")
    because = "its points have no digits to be sorted by"
    reader = require_images(run, because=because, instead=["heads", "positions"])
    chosen = tap_path(reader.members[0].model, tap)
    points = collect(
        reader, chosen, token=token, samples=samples, split=split, seed=seed, progress=progress
    )
    vectors, labels = points.vectors.double().numpy(), points.labels.numpy()
    projected = project(vectors, method, classes=CLASSES, seed=seed)
    found = {
        "run": run.name,
        "tap": chosen,
        "token": token,
        "tokens": points.tokens,
        "method": method,
        "split": split,
        "seed": seed,
        "dimensions": int(vectors.shape[1]),
        **scores(vectors, labels, projected, seed=seed),
    }
    return found, points, projected
