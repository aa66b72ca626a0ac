"""Maps of attention over images: values, views, refusals and what is drawn."""

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest
import torch

from attnlab.analysis.maps import (
    Watched,
    default_view,
    entropy,
    maps_of,
    maps_reader,
    patch_map,
    patch_place,
)
from attnlab.analysis.samples import Sample
from attnlab.cli.drawing import drawing_folder
from attnlab.cli.main import run as run_command
from attnlab.errors import InputError, LabError
from attnlab.figures.maps import FIXED, MapsFigure, draw_maps, maps_data
from attnlab.problems.digits import Digits
from attnlab.runs import RunFolder
from attnlab.specs import MLPModel
from commands import attnlab, complaint
from tiny_digits import VIT, untrained_digits, untrained_grids
from tiny_maps import GRID, seen, untrained_readers


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("maps")
    untrained_readers(home)
    pruned = replace(GRID, decoder_layers=1)
    for name, left in {"uncrossed": (2, 1, 0), "unread": (0, 1, 2), "blind": (0, 1, 0)}.items():
        untrained_grids(home, replace(pruned, head_counts=left), test=7, name=name)
    return home


def with_patterns(watched: Watched, **patterns: torch.Tensor) -> Watched:
    """The same with other patterns; paths have underscores for dots."""
    changed = {name.replace("_", "."): pattern[None] for name, pattern in patterns.items()}
    return replace(watched, patterns={**watched.patterns, **changed})


def test_a_map_knows_how_even_it_is() -> None:
    even = patch_map("a", "received", torch.full((7,), 1 / 7), (2, 3))
    assert torch.allclose(torch.tensor(even.weights), torch.ones(2, 3))
    assert even.entropy == pytest.approx(math.log(6))
    assert even.most_entropy == math.log(6)
    one = patch_map("a", "received", torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), (2, 3))
    assert (one.entropy, one.peak, one.peak_at) == (0.0, 6.0, (0, 2))
    assert patch_map("a", "cls", torch.tensor([1.0] + [0.0] * 6), (2, 3)).entropy == 0.0


def test_received_sent_and_cls_are_columns_and_rows_of_the_pattern(home: Path) -> None:
    _, watched = seen(home / "vit")
    assert (default_view(watched), watched.front) == ("cls", 1)
    pattern = torch.rand(3, 17, 17).softmax(dim=-1)
    watched = with_patterns(watched, encoder_1_self=pattern)
    (received,) = maps_of(watched, "received", layer=1)
    assert [each.map for each in received] == [f"encoder.1.self.{head}" for head in range(3)]
    assert torch.allclose(torch.tensor(received[2].weights) / 17, pattern[2].mean(dim=0)[1:].view(4, 4))
    assert received[2].front == pytest.approx(pattern[2].mean(dim=0)[0].item())
    ((sent,),) = maps_of(watched, "sent", head="encoder.1.self.0", patch="2,3")
    assert sent.weights == (17 * pattern[0, 1 + 4 * 2 + 3, 1:].view(4, 4)).tolist()
    assert sent.query == (2, 3)
    ((front,),) = maps_of(watched, "cls", layer=1, heads="mean")
    assert torch.allclose(torch.tensor(front.weights) / 17, pattern.mean(dim=0)[0, 1:].view(4, 4))
    ((highest,),) = maps_of(watched, "cls", layer=1, heads="max")
    assert highest.weights == (17 * pattern.amax(dim=0)[0, 1:].view(4, 4)).tolist()


def test_the_patch_with_most_ink_sends(home: Path) -> None:
    sample, watched = seen(home / "vit")
    ink = sample.pixels.double().view(4, 7, 4, 7).sum(dim=(1, 3)).flatten()
    ((sent,), _) = maps_of(watched, "sent", heads="mean")
    assert sent.query == divmod(int(ink.argmax()), 4)


def test_uniform_attention_is_1_everywhere_in_every_view(home: Path) -> None:
    _, watched = seen(home / "vit")
    even = torch.full((3, 17, 17), 1 / 17)
    watched = with_patterns(watched, encoder_0_self=even, encoder_1_self=even)
    for view in ("received", "sent", "cls", "rollout"):
        for heads in ("each", "mean", "max"):
            for each in (each for row in maps_of(watched, view, heads=heads) for each in row):
                assert torch.allclose(torch.tensor(each.weights), torch.ones(4, 4))
                assert each.entropy == pytest.approx(each.most_entropy)
    ((received, *_), _) = maps_of(watched, "received")
    assert received.entropy_of_rows == pytest.approx(1)


def test_rows_may_be_sharp_where_their_mean_is_even(home: Path) -> None:
    _, watched = seen(home / "vit")
    own = torch.eye(17).expand(3, 17, 17)
    ((received,),) = maps_of(
        with_patterns(watched, encoder_0_self=own), "received", head="encoder.0.self.1"
    )
    assert received.entropy == pytest.approx(math.log(16))
    assert received.entropy_of_rows == 0


@pytest.mark.parametrize(("name", "grid"), [("grid", (4, 12)), ("cells", (1, 3))])
def test_every_digit_that_is_said_has_its_row_of_cross_attention(
    name: str, grid: tuple[int, int], home: Path
) -> None:
    sample, watched = seen(home / name)
    assert default_view(watched) == "digits"
    pattern = torch.rand(2, 3, math.prod(grid)).softmax(dim=-1)
    watched = with_patterns(watched, decoder_1_cross=pattern)
    rows = maps_of(watched, "digits")
    assert [row[0].map for row in rows] == [
        f"decoder.{layer}.cross.{head}" for layer in (0, 1) for head in (0, 1)
    ]
    assert [each.of for each in rows[3]] == [
        f"digit {1 + place}: {said}" for place, said in enumerate(sample.answer)
    ]
    for place in range(3):
        assert rows[3][place].weights == (math.prod(grid) * pattern[1, place].view(*grid)).tolist()
    ((mean,),) = maps_of(watched, "received", head="decoder.1.cross.0")
    assert torch.allclose(torch.tensor(mean.weights) / math.prod(grid), pattern[0].mean(dim=0).view(*grid))


@pytest.mark.parametrize("name", ["grid", "cells"])
def test_rollout_follows_each_digit_back_to_patches(name: str, home: Path) -> None:
    _, watched = seen(home / name)
    (rolled,) = maps_of(watched, "rollout")
    assert [torch.tensor(each.weights).shape for each in rolled] == [(4, 12)] * 3
    assert all(torch.tensor(each.weights).mean().item() == pytest.approx(1) for each in rolled)
    keys = watched.patterns["decoder.0.cross"].shape[-1]
    first = torch.zeros(2, 3, keys)
    first[:, :, 0] = 1  # all digits look at the first patch, or cell
    own = torch.eye(48).expand(2, 48, 48)
    watched = with_patterns(watched, encoder_0_self=own, decoder_0_cross=first, decoder_1_cross=first)
    for each in maps_of(watched, "rollout")[0]:
        wanted = torch.zeros(4, 12)
        wanted[(slice(0, 1), 0) if name == "grid" else (slice(0, 4), slice(0, 4))] = 1 / (48 // keys)
        assert torch.allclose(torch.tensor(each.weights) / 48, wanted)


def test_data_are_multiples_and_drawing_keeps_one_scale(home: Path) -> None:
    sample, watched = seen(home / "vit")
    rows = maps_of(watched, "cls")
    data = maps_data("cls", [(sample, rows)])
    (image,) = data.images
    assert image.pixels == sample.pixels.tolist()
    assert image.rows[1][2].weights == rows[1][2].weights
    assert MapsFigure.from_json(json.loads(json.dumps(data.to_json()))) == data
    figure = draw_maps(data)
    meshes = [axes.collections[0] for axes in figure.axes if axes.get_title("left").startswith("encoder")]
    assert [mesh.get_clim() for mesh in meshes] == [(0, FIXED)] * 6
    assert "entropy" in figure.axes[1].get_title("left")
    own = draw_maps(maps_data("cls", [(sample, rows)], scale="map"))
    limits = [
        axes.collections[0].get_clim()[1]
        for axes in own.axes
        if axes.get_title("left").startswith("encoder")
    ]
    assert limits == [each.peak for row in rows for each in row]
    sharp = replace(rows[0][0], peak=49.0)
    far = draw_maps(maps_data("cls", [(sample, [[sharp, *rows[0][1:]], *rows[1:]])]))
    meshes = [axes.collections[0] for axes in far.axes if axes.get_title("left").startswith("encoder")]
    assert {mesh.get_clim() for mesh in meshes} == {(0, 49.0)}  # nothing is cut off
    assert [float(each.get_text()) for each in far.axes[-1].get_yticklabels()] == [0, 1, 4, 49]


@pytest.mark.parametrize("scale", ["fixed", "map"])
def test_no_title_runs_into_the_next_panel(scale: Literal["fixed", "map"]) -> None:
    widest = patch_map(
        "encoder.10.self, mean", "received", torch.tensor([1.0] + [1 / 50] * 49), (7, 7), rows=1.0
    )
    pixels = torch.zeros(28, 28, dtype=torch.uint8)
    sample = Sample(Digits(), "pictures/of/my-own-seven.png", pixels, [7], torch.ones(1, 10) / 10, [3])
    figure = draw_maps(maps_data("received", [(sample, [[widest] * 4] * 2)], scale=scale))
    figure.draw_without_rendering()
    titled = [axes for axes in figure.axes if axes.get_title("left")]
    assert "entropy of rows: 100%" in titled[1].get_title("left")
    boxes = [axes._left_title.get_window_extent() for axes in titled]  # type: ignore[attr-defined]
    assert len(boxes) == 9
    for axes, box in zip(titled, boxes, strict=True):
        assert box.x1 <= axes.get_window_extent().x1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_maps_of_one_each_stand_side_by_side(home: Path) -> None:
    sample, watched = seen(home / "vit")
    figure = draw_maps(maps_data("cls", [(sample, maps_of(watched, "cls", heads="mean"))]))
    titled = [axes for axes in figure.axes if axes.get_title("left")]
    assert len(titled) == 3
    assert {axes.get_gridspec().nrows for axes in titled} == {1}  # type: ignore[union-attr]


def test_the_command_writes_a_figure_and_tells_its_numbers(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["maps", str(home / "grid"), "test:1", "--heads", "mean", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["view"], len(told["maps"])) == ("digits", 6)
    assert {Path(file).name for file in told["files"]} == {
        f"maps-digits-mean-test-1.{ending}" for ending in ("svg", "png", "json")
    }
    assert run_command(["maps", str(home / "vit"), "--samples", "2", "--out", str(home / "o")]) == 0
    assert "encoder.1.self.2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("zoo:adder",),
            "reads text (task addition), so there is no image to draw a map over; use patterns instead",
        ),
        (("vit", "--view", "digits"), "needs a decoder"),
        (("grid", "--view", "cls"), "needs a token in front"),
        (("vit", "--layer", "5"), "layer is 5; layers with a map in the view cls: 0, 1"),
        (("vit", "--view", "sent", "--patch", "4,0"), "from 0,0 to 3,3"),
        (("grid", "--head", "decoder.0.self.1"), "so use patterns"),
        (("grid", "--head", "decoder.0.cross.1", "--view", "sent"), "use digits or received"),
        (("vit", "--samples", "0"), "samples is 0"),
        (("vit", "--samples", "17", "--heads", "each"), "this asks for 102 maps and a figure holds 96"),
        (("vit", "test:61"), "go from 0 to 60"),
        (
            ("vit", "test:1", "--samples", "0", "--split", "train"),
            "samples is 0 and split is 'train', but the images are named; give one of the two",
        ),
        (("vit", "test:1", "--split", "valid"), "split is 'valid', but the images are named"),
        (
            ("vit", "--heads", "mean", "--head", "encoder.0.self.1"),
            "head is encoder.0.self.1 and heads is mean; give one of the two",
        ),
        (
            ("uncrossed", "--view", "digits"),
            "there is no map in the view digits: the decoder's cross attention has no head left, so use "
            "view received",
        ),
        (
            ("unread", "--view", "received"),
            "there is no map in the view received: the encoder has no head left, so use view digits",
        ),
    ],
)
def test_refusals_are_one_sentence(words: tuple[str, ...], said: str, home: Path) -> None:
    assert said in complaint("maps", *words, cwd=home)


def test_a_model_without_heads_has_no_maps(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path, MLPModel(hidden=3))
    with pytest.raises(LabError) as refused:
        maps_reader(run)
    assert str(refused.value) == (
        "the model MLP has no attention, so it has no heads to look at; use show or project instead"
    )
    assert len(attnlab("show", run.path, "--samples", "1", cwd=tmp_path).stdout) > 0
    project = ("project", run.path, "--samples", "10", "--method", "pca-kmeans", "--json")
    assert json.loads(attnlab(*project, cwd=tmp_path).stdout)["runs"][0]["points"] == 10


def test_a_view_for_which_no_head_is_left_names_one_that_has_maps(home: Path) -> None:
    _, uncrossed = seen(home / "uncrossed")
    assert default_view(uncrossed) == "received"
    ((one, two),) = maps_of(uncrossed, "received")
    assert (one.map, two.map) == ("encoder.0.self.0", "encoder.0.self.1")
    _, unread = seen(home / "unread")
    assert default_view(unread) == "digits"
    for view in ("received", "sent", "cls"):
        with pytest.raises(InputError, match=r"so use view digits$"):
            maps_of(unread, view)
    with pytest.raises(InputError, match=r"so use view digits$"):
        maps_of(unread, "received", layer=0)
    ((mean,),) = maps_of(unread, "received", head="decoder.0.cross.1")
    assert torch.tensor(mean.weights).shape == (4, 12)
    _, blind = seen(home / "blind")
    with pytest.raises(InputError, match="use patterns: no head that is left looks at the image"):
        maps_of(blind, "digits")


def test_one_patch_has_no_entropy_to_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [str(entropy(torch.tensor([share])).item()) for share in (1.0, 1.0000001)] == ["0.0", "0.0"]
    only = patch_map("a", "received", torch.ones(1), (1, 1))
    assert (str(only.entropy), only.most_entropy, only.evenness) == ("0.0", 0.0, None)
    assert patch_map("a", "received", torch.ones(2) / 2, (1, 2)).evenness == 1.0
    run = untrained_digits(tmp_path, replace(VIT, patch=28, pooling="mean", layers=1))
    _, watched = seen(run.path)
    assert [each.entropy_of_rows for row in maps_of(watched, "received") for each in row] == [None] * 3
    assert run_command(["maps", str(run.path), "--head", "encoder.0.self.1"]) == 0
    told = capsys.readouterr().out
    assert "-0" not in told.replace("test-0", "")
    assert "none" in told
    assert "a map of one patch is as even as it is sharp: its entropy is 0 and has no share" in told
    ((drawn,),) = json.loads(run.file("figures/maps-received-encoder.0.self.1-test-0.json").read_text())[
        "images"
    ][0]["rows"]
    assert (str(drawn["entropy"]), drawn["evenness"], drawn["peak"]) == ("0.0", None, 1.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("test:3",), "maps-cls-test-3"),
        (("--view", "sent"), "maps-sent-test-0"),
        (("--view", "sent", "--patch", "2,3"), "maps-sent-patch2-3-test-0"),
        (("--scale", "map", "--layer", "1"), "maps-cls-layer1-own-scale-test-0"),
        (("--heads", "max", "--samples", "2"), "maps-cls-max-test-0-test-1"),
        (("test:5", "train:6"), "maps-cls-test-5-train-6"),
    ],
)
def test_what_is_not_as_by_default_is_in_the_name(
    words: tuple[str, ...], name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written(home, monkeypatch, *words) == name


def test_many_images_have_a_name_of_their_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four = [written(home, monkeypatch, *(f"{split}:{n}" for n in range(4))) for split in ("test", "train")]
    assert [name.rpartition("-")[0] for name in four] == ["maps-cls-4-images"] * 2
    assert four[0] != four[1]
    assert written(home, monkeypatch, "--samples", "4") == four[0]


def written(home: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """The name of the figure, which is not drawn."""
    monkeypatch.setattr("attnlab.figures.maps.draw_maps", lambda data: None)
    monkeypatch.setattr(
        "attnlab.figures.style.write_figure", lambda folder, name, data, drawn: [folder / name]
    )
    (file,) = json.loads(attnlab("maps", "vit", *words, "--json", cwd=home).stdout)["files"]
    assert Path(file).parent == Path("vit/figures")
    return Path(file).name


def test_figures_of_a_shipped_run_never_go_into_the_package(tmp_path: Path) -> None:
    assert drawing_folder(RunFolder(tmp_path), "") == tmp_path / "figures"
    assert drawing_folder(RunFolder(tmp_path, shipped=True), "") == Path("figures")
    assert drawing_folder(RunFolder(tmp_path, shipped=True), "there") == Path("there")


def test_a_patch_by_its_place() -> None:
    assert patch_place(" 3 , 2", 4, 3) == (3, 2)
    for wrong in ("4,0", "0,3", "1", "-1,0", "", "9" * 5000 + ",0"):
        assert patch_place(wrong, 4, 3) is None


@pytest.mark.parametrize(("side", "lines", "across"), [(2, 1, 4), (4, 3, 6)])
def test_digits_of_a_grid_are_wrapped(side: int, lines: int, across: int, tmp_path: Path) -> None:
    """Lines of a head; its digits stay in their order."""
    model = replace(GRID, rows=side, columns=side, patch=14, decoder_layers=1)
    sample, watched = seen(untrained_grids(tmp_path, model, test=3).path)
    figure = draw_maps(maps_data("digits", [(sample, maps_of(watched, "digits"))]))
    titled = [axes for axes in figure.axes if axes.get_title("left").startswith("decoder")]
    (shape,) = {axes.get_gridspec().get_geometry() for axes in titled}  # type: ignore[union-attr]
    assert shape == (2 * lines, 1 + across)
    assert figure.get_size_inches()[0] < 13
    image = figure.axes[0].get_title("left").splitlines()
    assert max(map(len, image)) <= 22  # it would lie over the first map
    assert "".join(map(str, sample.answer)) in "".join(image)
    digits = [f"digit {1 + place}: {said}" for place, said in enumerate(sample.answer)]
    assert [axes.get_title("left").splitlines()[:2] for axes in titled] == [
        [f"decoder.0.cross.{head}", digit] for head in range(2) for digit in digits
    ]
