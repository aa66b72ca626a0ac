"""explain, project and timelapse on a task made of a function: what decides is found, classes part."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from attnlab import registry, task
from attnlab.analysis.explain.runs import explain_run
from attnlab.analysis.project.projection import project_run
from attnlab.analysis.timelapse.runs import timelapse_run
from attnlab.defaults import default_spec
from attnlab.runs import RunFolder, create_run
from attnlab.specs import TokensModel
from attnlab.training import train_run


@task(symbols="abc", classes=["other", "leading"])
def leading(rng: Random, length: int = 5) -> tuple[str, str]:
    """Whether the first symbol is an a."""
    row = rng.choice("aabc") + "".join(rng.choice("abc") for _ in range(length - 1))
    return row, "leading" if row[0] == "a" else "other"


OWN = registry._tasks.pop("leading")  # other tests know it not


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that has learned it."""
    registry._tasks["leading"] = OWN
    spec = default_spec(leading(train=150, valid=40, test=40))
    training = replace(spec.training, epochs=25, batch=32, threads=1, snapshots=(4,))
    model = TokensModel(width=16, heads=2, layers=1, hidden=32, pooling="mean")
    made = create_run(
        tmp_path_factory.mktemp("own") / "leading", replace(spec, model=model, training=training)
    )
    train_run(made)
    return made


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks, "leading": OWN})


def test_the_part_that_decides_is_found(run: RunFolder) -> None:
    found = explain_run(run, "abcbc")
    (place,) = found.places
    assert (found.parts, found.output, place.answer) == (list("abcbc"), "leading", "leading")
    for method in ("occlusion", "integrated gradients"):
        scores = place.scores[method]
        assert max(range(5), key=scores.__getitem__) == 0, method


def test_classes_that_the_model_separates_are_apart(run: RunFolder, tmp_path: Path) -> None:
    found = project_run(run, samples=40, method="pca-kmeans")
    assert found.labels == ["other", "leading"]
    assert found.silhouette is not None
    assert found.silhouette > 0.5
    assert found.purity == 1.0
    assert found.cloud.pixels is None
    assert len(found.cloud.names) == 40


def test_they_come_apart_in_training(run: RunFolder) -> None:
    found = timelapse_run(run, examples=10, samples=40)
    assert found.projection is not None
    assert found.projection.labels == ["other", "leading"]
    first, last = found.projection.silhouette[0], found.projection.silhouette[-1]
    assert first is not None
    assert last is not None
    assert last > max(first, 0.5)
