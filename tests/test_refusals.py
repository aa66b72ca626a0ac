"""What commands that look into a run refuse: one sentence, exit code 2, and before any work."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from attnlab.cli.drawing import file_name
from attnlab.errors import LabError
from attnlab.report.common import training_section
from attnlab.runs import create_run, snapshot_steps
from attnlab.specs import MLPModel
from attnlab.storage import check_out
from attnlab.training import train_run
from commands import attnlab, complaint
from tiny import tiny
from tiny_digits import VIT, squares_spec, untrained_digits

NOT_BEFORE = "attnlab.runs.weights.read_tensors"
"""Where any work on a run begins."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs called vit and adder, an ensemble, a file, a folder, and pictures that cannot be read."""
    home = tmp_path_factory.mktemp("refusals")
    untrained_digits(home, VIT)
    train_run(create_run(home / "adder", tiny(snapshots=(0, 15))))
    (home / "both").mkdir()
    (home / "both/ensemble.json").write_text(json.dumps({"runs": ["../vit"]}))
    (home / "file").write_text("no folder")
    for folder in ("folder.html", "folder.svg", "pictures"):
        (home / folder).mkdir()
    (home / "broken.png").write_text("no picture")
    Image.new("L", (40, 40), 255).save(home / "blank.png")
    for name in ("one", "two"):
        Image.fromarray(torch.eye(40).mul(255).byte().numpy()).save(home / f"pictures/{name}.png")
    return home


LOOKING = ("maps", "project", "explain", "timelapse", "report", "compare")


def words_of(command: str, run: str) -> list[str]:
    return [command, run, *{"explain": ["test:0"], "compare": [run]}.get(command, [])]


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("nowhere", "no run at 'nowhere'; 'attnlab runs' lists your runs"),
        ("pictures", "folder 'pictures' holds no run: spec.json is missing"),
        ("both", "folder 'both' is an ensemble, and this needs one run; ensemble.json names its runs"),
        ("zoo:addre", "unknown shipped run 'zoo:addre'; did you mean 'zoo:adder'?"),
    ],
)
def test_no_such_run(command: str, run: str, said: str, home: Path) -> None:
    assert complaint(*words_of(command, run), cwd=home) == said


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("file/x", "file is not a folder"),
        ("folder", "it is a folder"),
        ("x.pdf", "out is 'x.pdf"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: str, out: str, said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NOT_BEFORE, None)
    ending = "" if "." in out else ".svg" if command in ("maps", "explain") else ".html"
    words = words_of(command, "vit" if command in ("maps", "project") else "adder")
    assert said in complaint(*words, "--out", f"{out}{ending}", cwd=home)


def test_endings_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v1.2").mkdir()
    for good in ("a.svg", "new/deep/a.png", "folder", "v1.2"):
        check_out(good, ".svg", ".png", folder=True)
    for bad, said in {
        "v1.3": "'v1.3'; give a file that ends in .svg or .png, or a folder",
        "n" * 300: "file name too long",
    }.items():
        with pytest.raises(LabError, match=said):
            check_out(bad, ".svg", ".png", folder=True)
    with pytest.raises(LabError, match=r"out is 'a'; it must end in \.html$"):
        check_out("a", ".html")
    assert file_name("maps", "seven.PNG") == "maps-seven"
    assert file_name("explain", "3 5/4", "encoder.0.self.1") == "explain-3-5-4-encoder.0.self.1"


@pytest.mark.parametrize("seed", ["-1", "2147483648", "99999999999999999999"])
@pytest.mark.parametrize("command", ["ablate", "explain", "gradcheck", "lengths", "project", "show"])
def test_seeds_are_those_that_generators_take(command: str, seed: str, tmp_path: Path) -> None:
    run = [] if command == "gradcheck" else ["any"]
    assert complaint(command, *run, "--seed", seed, cwd=tmp_path) == (
        f"--seed is {seed}, but it must be from 0 to 2147483647"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("maps", "vit", "broken.png"), "'broken.png' is not a picture, despite its name"),
        (("maps", "vit", "blank.png"), "has no ink in it"),
        (("maps", "vit", "nowhere.png"), "no file 'nowhere.png'"),
        (("maps", "vit", "--patch", "1,1"), "but the view is cls; a patch sends in the view sent"),
        (("maps", "vit", "--head", "encoder.0.self.0", "--layer", "1"), "give one of the two"),
        (("maps", "vit", "--head", "encoder.0.self.9"), "did you mean 'encoder.0.self.2'?"),
        (("maps", "vit", "--view", "rollout", "--layer", "1"), "view is rollout, which goes through"),
        (("maps", "vit", "--view", "rollout", "--heads", "max"), "view is rollout, which goes through"),
        (("explain", "vit", "broken.png"), "'broken.png' is not a picture, despite its name"),
        (("explain", "vit", "pictures"), "folder 'pictures' holds 2 pictures; one at a time is explained"),
        (("explain", "zoo:sorter", "test;0"), "'test;0' is not a whole number"),
        (("timelapse", "adder", "--token", "cls"), "only runs that read images have patches"),
        (("timelapse", "adder", "--tap", "decoder_nrom"), "did you mean 'decoder_norm'?"),
        (("compare", "adder", "adder", "--samples", "0"), "samples is 0; it must be at least 1"),
    ],
)
def test_refusals(words: tuple[str, ...], said: str, home: Path) -> None:
    assert said in complaint(*words, cwd=home)


def test_a_map_in_the_file_that_is_named(home: Path) -> None:
    words = ("maps", "vit", "test:0", "--head", "encoder.1.self.2", "--json")
    told = json.loads(attnlab(*words, "--out", "new/one.png", cwd=home).stdout)
    assert told["files"] == ["new/one.png", "new/one.json"]
    assert (home / "new/one.png").read_bytes().startswith(b"\x89PNG")


def test_projections_of_other_taps_do_not_replace_each_other(home: Path) -> None:
    words = ("project", "vit", "--method", "pca-kmeans", "--samples", "10", "--json")
    for extra in ((), ("--tap", "embed"), ("--tap", "embed", "--token", "2,3")):
        attnlab(*words, *extra, cwd=home)
    assert {path.stem for path in (home / "vit/figures").iterdir() if "projection" in path.stem} == {
        "projection-pca-kmeans-10-points",
        "projection-pca-kmeans-embed-10-points",
        "projection-pca-kmeans-embed-2-3-10-points",
    }


def test_no_time_lapse_is_offered_where_there_are_no_heads(home: Path) -> None:
    spec = replace(squares_spec(home / "squares", snapshots=(3,), epochs=1), model=MLPModel(hidden=3))
    run = create_run(home / "mlp", spec)
    train_run(run)
    assert len(snapshot_steps(run)) == 3
    assert training_section(run).words == []
    assert complaint("timelapse", "mlp", cwd=home) == (
        "the model MLP has no attention, so it has no heads to look at"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "sorting", "--training.epoch", "3"],
            "unrecognized options: --training.epoch, 3; did you mean --training.epochs? "
            "(attnlab train sorting --help lists the options)",
        ),
        (
            ["train", "sorting", "--training.epochs", "three"],
            "--training.epochs is 'three'; it must be a whole number "
            "(attnlab train sorting --help lists the options)",
        ),
        (
            ["train", "sorting", "--task.sampling", "wide"],
            "invalid choice 'wide' for argument '--task.sampling'. Expected one of "
            "('uniform', 'ranges', 'bands') (attnlab train sorting --help lists the options)",
        ),
        (
            ["train", "sorting", "--training.lr", "high"],
            "--training.lr is 'high'; it must be a number (attnlab train sorting --help lists the options)",
        ),
        (
            ["maps", "vit", "--layer", "x"],
            "--layer is 'x'; it must be a whole number (attnlab maps --help lists the options)",
        ),
        (
            ["prune", "zoo:adder", "--loss", "little"],
            "--loss is 'little'; it must be a number (attnlab prune --help lists the options)",
        ),
        (
            ["predict"],
            "missing: A run folder, or a shipped run such as zoo:adder "
            "(attnlab predict --help lists the options)",
        ),
        (
            ["heads", "zoo:adder", "--foo"],
            "unrecognized options: --foo (attnlab heads --help lists the options)",
        ),
    ],
)
def test_words_that_no_command_has(words: list[str], said: str, home: Path) -> None:
    """One sentence, where tyro would draw a box."""
    assert complaint(*words, cwd=home) == said


@pytest.mark.parametrize(
    "words",
    [
        ["heads", "zoo:adder", f"--{'x' * 3000}"],
        ["train", "sorting", "--training.epochs", "y" * 3000],
        ["train", "sorting", "--task.sampling", "z" * 3000],
        ["train", "sorting", "--training.optimiser", f"adamw:{'u' * 3000}=1"],
    ],
)
def test_what_was_given_is_repeated_in_part(words: list[str], home: Path) -> None:
    """Rules and names of options stand beside it."""
    said = complaint(*words, cwd=home)
    assert 150 < len(said) < 400
    assert max(map(said.count, "xyzu")) <= 210
