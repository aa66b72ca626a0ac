"""Projections: which vectors, what is made of them, how they are judged and shown."""

import base64
import io
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.project.points import collect, tap_path
from attnlab.analysis.project.projection import (
    Projected,
    ProjectedRun,
    project,
    project_run,
    purity,
    scores,
)
from attnlab.cli.main import run as run_command
from attnlab.errors import InputError, LabError
from attnlab.figures.projections import (
    ProjectionsFigure,
    draw_projections,
    letter,
    picture_words,
    projections_data,
    thinned,
)
from attnlab.images import scaled
from attnlab.report.live import projection_page, sheet
from attnlab.runs import RunFolder
from attnlab.specs import CNNModel, MLPModel, PatchSeq2SeqModel
from attnlab.taps import record
from commands import attnlab, complaint
from tiny_digits import TEST, VIT, untrained_digits, untrained_grids

GRID = PatchSeq2SeqModel(
    rows=1, columns=3, patch=14, width=12, heads=2, hidden=5, encoder_layers=1, decoder_layers=1
)
BLOBS = 3


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained runs that read digits, and grids of 1 x 3 digits."""
    home = tmp_path_factory.mktemp("projections")
    untrained_digits(home, VIT)
    untrained_grids(home, GRID, test=11)
    untrained_digits(home, CNNModel(filters=2))
    untrained_digits(home, MLPModel(hidden=3))
    return home


def blobs(count: int = 60, width: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds far from each other, with a label each."""
    chance = np.random.default_rng(5)
    labels = np.arange(count) % BLOBS
    return chance.normal(size=(count, width)) + 50 * np.eye(width)[labels], labels


def test_points_are_the_values_at_the_tap(home: Path) -> None:
    reader = image_classifier(RunFolder(home / "vit"))
    (member,) = reader.members
    points = collect(reader, "encoder.0.feed_residual.out", samples=13, seed=1)
    chosen = torch.randperm(TEST, generator=torch.Generator().manual_seed(1))[:13]
    pixels, labels = reader.task.pixels("test")
    with record(member.model, "encoder.0.feed_residual.out") as seen:
        member.model(scaled(pixels[chosen], member.scale))
    (value,) = seen.values()
    assert torch.equal(points.labels, labels[chosen].flatten())
    assert points.pixels is not None
    assert torch.equal(points.pixels, pixels[chosen])
    assert torch.allclose(points.vectors, value[:, 1:].mean(dim=1))
    assert points.names == [f"test:{place}" for place in chosen.tolist()]
    front = collect(reader, "encoder.0.feed_residual.out", token="cls", samples=13, seed=1)
    assert torch.equal(front.vectors, value[:, 0])
    one = collect(reader, "encoder.0.feed_residual.out", token="2,3", samples=13, seed=1)
    assert torch.equal(one.vectors, value[:, 1 + 4 * 2 + 3])
    every = collect(reader, "encoder.0.feed_residual.out", token="all", samples=29, seed=1)
    assert (len(every), every.side) == (29, 4)
    expected = value_of(member.model, scaled(pixels[every_image(29)], member.scale))
    assert torch.allclose(every.vectors, expected[every.image, 1 + every.patch])


def every_image(count: int) -> torch.Tensor:
    return torch.randperm(TEST, generator=torch.Generator().manual_seed(1))[:count]


def value_of(model: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    with record(model, "encoder.0.feed_residual.out") as seen:
        model(images)
    return seen["encoder.0.feed_residual.out"]


def test_modules_and_heads_are_taps_too(home: Path) -> None:
    reader = image_classifier(RunFolder(home / "vit"))
    (member,) = reader.members
    assert collect(reader, "embed", samples=11).vectors.shape == (11, 12)
    assert collect(reader, "encoder.1.self.z", samples=11).vectors.shape == (11, 12)
    assert collect(reader, "pool", samples=11).vectors.shape == (11, 12)
    assert tap_path(member.model, "") == "pool"
    assert collect(image_classifier(RunFolder(home / "cnn")), "pool", samples=11).vectors.shape == (
        11,
        2 * 14 * 14,
    )


def test_short_names_hold_for_every_model(home: Path) -> None:
    """The same values as by the path, which differs from model to model."""
    block = "encoder.0.feed_residual.out"
    for name, paths in {
        "vit": {"patches": "embed", "block:0": block, "read": "pool", "": "pool"},
        "grid": {"patches": "source_embed", "block:0": block, "read": "decoder_norm"},
        "cnn": {"read": "pool"},
        "mlp": {"read": "up"},
    }.items():
        reader = image_classifier(RunFolder(home / name))
        for short, path in paths.items():
            assert tap_path(reader.members[0].model, short) == path
            by_path = collect(reader, path, samples=11)
            assert torch.equal(collect(reader, short, samples=11).vectors, by_path.vectors)


def test_names_of_taps_can_be_listed(home: Path) -> None:
    told = json.loads(attnlab("project", "vit", "mlp", "--tap", "list", "--json", cwd=home).stdout)
    vit, mlp = told["runs"]
    assert list(vit["short"]) == ["read", "patches", "block:0", "block:1"]
    assert vit["short"]["block:1"] in vit["paths"]
    assert mlp == {"run": "mlp", "short": {"read": "up"}, "paths": ["up", "readout"]}
    lines = attnlab("project", "vit", "--tap", "list", cwd=home).stdout.splitlines()
    assert {"embed", "encoder.1.self.z", "readout"} <= set(lines)


def test_a_wrong_tap_is_refused_shortly_and_before_the_work(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.analysis.project.projection.project_run", None)
    said = complaint("project", "vit", "grid", "--tap", "embed", cwd=home)
    start = "the model Seq2Seq has no tap or module 'embed'; known: patches, read, block:0, source_embed, "
    assert said.startswith(start)
    assert said.endswith(" more, all in 'tap list'")
    assert len(said) < 250


def test_a_grid_has_a_point_for_each_digit(home: Path) -> None:
    reader = image_classifier(RunFolder(home / "grid"))
    (member,) = reader.members
    pixels, truth = reader.task.pixels("test", reader.seed)
    points = collect(reader, "encoder.0.feed_residual.out", samples=6, seed=2)
    chosen = torch.randperm(11, generator=torch.Generator().manual_seed(2))[:2]
    value = value_of_grid(member.model, scaled(pixels[chosen], member.scale), truth[chosen])
    cells = value.view(2, 2, 3, 2, 12).mean(dim=(1, 3)).flatten(0, 1)
    assert torch.allclose(points.vectors, cells, atol=1e-6)
    assert torch.equal(points.labels, truth[chosen].flatten())
    assert points.pixels is not None
    assert torch.equal(points.pixels[4], pixels[chosen[1], :, 28:56])
    assert points.names[4] == f"test:{chosen[1]}, cell 0,1"
    assert collect(reader, "decoder_norm", samples=7).vectors.shape == (7, 12)


def value_of_grid(model: torch.nn.Module, images: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    with record(model, "encoder.0.feed_residual.out") as seen:
        model(images, truth)
    return seen["encoder.0.feed_residual.out"]


@pytest.mark.parametrize("method", ["tsne", "pca-kmeans", "pca-hdbscan"])
def test_clouds_are_found_and_stay_apart(method: str) -> None:
    vectors, labels = blobs()
    found = project(vectors, method, classes=BLOBS, seed=3)  # type: ignore[arg-type]
    told = scores(vectors, labels, found)
    assert (told.ari, told.nmi, told.purity) == (1.0, 1.0, 1.0)
    assert (told.clusters, told.noise) == (BLOBS, 0.0)
    assert (told.silhouette or 0) > 0.9
    assert (told.silhouette_picture or 0) > 0.6
    assert (told.trustworthiness or 0) > 0.75
    assert told.explained_variance > 0.98
    again = project(vectors, method, classes=BLOBS, seed=3)  # type: ignore[arg-type]
    assert np.array_equal(found.xy, again.xy)
    assert np.array_equal(found.clusters, again.clusters)


def test_scores_of_hand_made_clusters() -> None:
    labels = np.array([0, 0, 0, 1, 1, 2])
    assert purity(labels, np.array([0, 0, 1, 1, 1, 1])) == pytest.approx(4 / 6)
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    nowhere = Projected(vectors[:, :2], np.full(6, -1), [0.5, 0.3, 0.2])
    told = scores(vectors, labels, nowhere)
    assert (told.noise, told.clusters, told.ari, told.purity) == (1.0, 0, None, None)
    assert told.explained_variance == pytest.approx(0.8)
    assert scores(vectors, np.zeros(6, dtype=int), nowhere).silhouette is None
    some = Projected(vectors[:, :2], np.array([0, 0, -1, 1, 1, -1]), [1.0])
    assert scores(vectors, labels, some).ari == 1.0
    assert scores(vectors, labels, some).noise == pytest.approx(2 / 6)


def test_points_that_are_all_the_same_are_no_accident() -> None:
    found = project(np.ones((12, 3)), "pca-kmeans", classes=10)
    assert np.array_equal(found.xy, np.zeros((12, 2)))
    assert set(found.clusters.tolist()) == {0}
    with pytest.raises(LabError, match="not all finite"):
        project(np.full((12, 3), math.nan), "pca-kmeans", classes=10)
    with pytest.raises(InputError, match="9 points"):
        project(np.ones((9, 3)), "pca-kmeans", classes=10)


def test_data_and_drawing(home: Path) -> None:
    kept = sorted((home / "vit").rglob("*"))
    found = project_run(RunFolder(home / "vit"), method="pca-hdbscan", samples=41)
    points, projected = found.cloud, found.plane
    assert sorted((home / "vit").rglob("*")) == kept  # what a page asks for takes the place of nothing
    labels = points.labels.numpy()
    marked = replace(projected, clusters=np.where(labels == 0, -1, (labels > 4).astype(int)))
    data = projections_data([replace(found, noise=0.1, plane=marked)])
    (run,) = data.runs
    assert run.label == points.labels.tolist()
    assert run.x == pytest.approx(projected.xy[:, 0], abs=1e-4)
    assert ProjectionsFigure.from_json(json.loads(json.dumps(data.to_json()))) == data
    figure = draw_projections(data)
    left, right = figure.axes
    assert len(left.collections) == len(set(run.label))
    assert len(right.collections) == len(set(run.cluster))
    assert [each.letter for each in run.found] == ["A", "B"]
    assert run.found[1].points == (labels > 4).sum()
    assert run.found[1].digit == np.bincount(labels[labels > 4]).argmax()
    assert (letter(25), letter(26)) == ("Z", "AA")
    assert "10% noise" in right.get_title("left")


def found_in(run: Path, **options: Any) -> ProjectedRun:
    """A projection of eleven points."""
    return project_run(RunFolder(run), method="pca-kmeans", samples=11, **options)


@pytest.mark.parametrize(
    ("token", "words"),
    [("digit", "mean of patches"), ("all", "each patch"), ("cls", "token in front"), ("2, 3", "patch 2,3")],
)
def test_a_projection_says_which_token_it_shows(token: str, words: str, home: Path) -> None:
    found = found_in(home / "vit", tap="embed", token=token)
    place = f"vit, embed, {words}:"
    assert found.plot().axes[0].get_title("left") == f"{place}\ntrue digit"
    assert f"<h2>{place} principal components 1 and 2</h2>" in projection_page(found.beside())
    options = ("--tap", "embed", "--token", token, "--method", "pca-kmeans", "--samples", "11")
    said = attnlab("project", "vit", *options, "--out", "t.svg", cwd=home).stdout.splitlines()
    assert [line.strip() for line in said[2:4]] == ["vit, embed", words]


def test_where_a_digit_has_one_token_none_is_named(home: Path) -> None:
    for run, place in {"vit": "vit, pool", "grid": "grid, decoder_norm"}.items():
        assert found_in(home / run).plot().axes[0].get_title("left") == f"{place}:\ntrue digit"


def test_two_runs_stand_side_by_side_and_fit_a_screen(home: Path) -> None:
    figure = found_in(home / "vit").beside(found_in(home / "grid")).plot()
    titles = [axes.get_title("left").partition(",")[0] for axes in figure.axes]
    assert titles == ["vit", "grid", "10 clusters by K-means", "10 clusters by K-means"]
    assert figure.get_figheight() < 900 / 96  # inches of a screen


def test_thinned_points_keep_their_digits_and_all_numbers(home: Path) -> None:
    found = found_in(home / "vit", tap="embed", token="all")
    data, points = projections_data([found]), found.cloud
    thin, (left,) = thinned(data, [points], 7)
    (before,), (after,) = data.runs, thin.runs
    places = [before.x.index(x) for x in after.x]
    assert len(places) == 7
    for key in ("y", "label", "cluster", "patch"):
        assert getattr(after, key) == [getattr(before, key)[place] for place in places]
    named = [before.names[before.image[place]] for place in places]
    assert [after.names[image] for image in after.image] == named
    assert left.pixels is not None
    assert points.pixels is not None
    assert torch.equal(left.pixels[left.image], points.pixels[points.image[places]])
    assert torch.equal(left.vectors, points.vectors[places])
    assert (after.points, after.found) == (11, before.found)
    assert "11 points of 12 dimensions, 7 drawn" in picture_words(after)
    assert thinned(data, [points], 11)[0] == data


def test_fewer_points_than_asked_for_and_points_without_a_cluster_are_told(home: Path) -> None:
    words = ("project", "vit", "--method", "pca-hdbscan", "--samples", "100", "--out", "few.svg")
    said = attnlab(*words, cwd=home)
    assert f"vit: {TEST} points instead of 100, since the test split has no more" in said.stderr
    assert "ARI, NMI and purity are of the points in clusters" in said.stdout.splitlines()
    all_clustered = attnlab(*words[:2], "--method", "pca-kmeans", "--samples", "11", *words[-2:], cwd=home)
    assert "of the points in clusters" not in all_clustered.stdout
    assert "instead of" not in all_clustered.stderr


def test_digits_stand_in_one_sheet() -> None:
    pixels = torch.randint(0, 2, (5, 28, 28), dtype=torch.uint8) * 255
    found = sheet(pixels)
    assert (found["across"], found["down"]) == (3, 2)
    image = Image.open(io.BytesIO(base64.b64decode(found["sheet"].partition(",")[2]))).convert("L")
    assert np.array_equal(np.asarray(image)[28:56, 28:56], 255 - pixels[4].numpy())
    assert (np.asarray(image)[28:, 56:] == 255).all()


def test_the_command_puts_two_runs_side_by_side_in_one_page(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["project", str(home / "vit"), str(home / "grid"), "--method", "pca-kmeans", "--samples", "30"]
    assert run_command([*words, "--out", str(home / "both.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["tap"] for run in told["runs"]] == ["pool", "decoder_norm"]
    page = (home / "both.html").read_text()
    assert page.count("<canvas") == 4
    assert '<div class="runs pair">' in page
    assert not re.search(r"(src|href)=|https?:", page)
    assert run_command([*words, "--tap", "embed", "source_embed", "--out", str(home / "o")]) == 0
    assert "purity" in capsys.readouterr().out
    assert {path.name for path in (home / "o").iterdir()} == {
        f"projection-pca-kmeans-embed-source_embed-30-points-beside-grid.{ending}"
        for ending in ("svg", "png", "json", "html")
    }
    assert run_command([*words, "--out", str(home / "again.html")]) == 0
    assert (home / "again.html").read_text() == page
    assert run_command(["project", str(home / "vit"), "--samples=30", "--out", str(home / "t.svg")]) == 0


def test_what_is_not_as_by_default_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the figures, and of the numbers that the run keeps."""
    run = untrained_digits(tmp_path, VIT)
    untrained_grids(tmp_path, GRID, test=11)
    monkeypatch.setattr("attnlab.cli.project.write_main", lambda *_, name, page: [name])

    def named(*words: str) -> str:
        found = attnlab("project", *words, "--method", "pca-kmeans", "--json", cwd=tmp_path)
        (name,) = json.loads(found.stdout)["files"]
        return str(name)

    plain = "projection-pca-kmeans"
    assert named("vit") == plain
    assert named("vit", "grid", "--samples", "30") == f"{plain}-30-points-beside-grid"
    assert named("vit", "--tap", "embed", "--token", "2, 3") == f"{plain}-embed-2-3"
    assert named("vit", "--split", "valid", "--seed", "5") == f"{plain}-valid-seed5"
    kept = {path.stem: json.loads(path.read_text()) for path in run.file("analysis").iterdir()}
    assert {name: (each["tap"], each["seed"], each["split"]) for name, each in kept.items()} == {
        plain: ("pool", 0, "test"),
        f"{plain}-30-points": ("pool", 0, "test"),
        f"{plain}-embed-2-3": ("embed", 0, "test"),
        f"{plain}-valid-seed5": ("pool", 5, "valid"),
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("zoo:adder", "--tap", "encoder_norm"),
            "whose tokens are no answers that points",
        ),
        (("vit", "--tap", "encoder.0.feed_residual.ou"), "did you mean 'encoder.0.feed_residual.out'?"),
        (("vit", "--tap", "block:2"), "did you mean 'block:1'?"),
        (
            ("mlp", "--tap", "patches"),
            "the model MLP has no tap or module 'patches'; known: read, readout, up",
        ),
        (("vit", "--tap", "positions"), "choose"),
        (("vit", "--token", "9,9", "--tap", "embed"), "from 0,0 to 3,3"),
        (("vit", "--token", "cls"), "has one token a digit"),
        (("grid", "--token", "cls", "--tap", "bridge"), "no token in front"),
        (("vit", "--samples", "3"), "samples is 3; it must be at least 10"),
        (("vit", "grid", "vit"), "there are 3 runs"),
        (("vit", "--tap", "embed", "pool"), "there are 2 taps for 1 runs"),
        (("vit", "--out", "x.pdf", "--samples", "10", "--method", "pca-kmeans"), "ends in .html or .svg"),
        (("vit", "--method", "umap", "--samples", "10"), "pip install 'attnlab[umap]'"),
    ],
)
def test_refusals_are_one_sentence(
    words: tuple[str, ...], said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    assert said in complaint("project", *words, cwd=home)
