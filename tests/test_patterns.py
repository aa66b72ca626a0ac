"""Attention patterns as figures: one example, one head, sums and images."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.analysis.patterns import Looked, run_patterns
from attnlab.cli.main import run as run_command
from attnlab.errors import InputError, LabError
from attnlab.figures.patterns import (
    draw_head_examples,
    draw_head_images,
    draw_patch_patterns,
    head_examples_data,
    head_images_data,
    patch_patterns_data,
)
from attnlab.runs import RunFolder, open_run
from attnlab.specs import MLPModel
from planted import ALIGN, COPY, SPEC, planted, planted_run
from tiny_digits import untrained_digits

COLUMNS = [[0.5, 0.0, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.0, 0.5], *[[0.0, 0.0, 1.0, 0.0, 0.0]] * 2]


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return planted_run(tmp_path_factory.mktemp("adder") / "planted")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return untrained_digits(tmp_path_factory.mktemp("digits"))


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence with which the command refuses."""
    assert run_command(["patterns", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_one_example_has_the_patterns_of_every_head(adder: RunFolder) -> None:
    (looked,) = run_patterns(adder, example="21+34").looked
    assert (looked.example, looked.answer) == ("21+34", "55")
    holder, pattern = looked.of(ALIGN)
    assert holder.queries == ["⊢", "5", "5", "0"]
    assert holder.keys == ["1", "2", "+", "4", "3"]
    torch.testing.assert_close(pattern, torch.tensor(COLUMNS), atol=1e-3, rtol=0)
    holder, pattern = looked.of(COPY)
    assert holder.queries == holder.keys == ["1", "2", "+", "4", "3"]
    torch.testing.assert_close(pattern, torch.eye(5), atol=1e-3, rtol=0)


def test_rows_end_with_the_answer() -> None:
    run = open_run("zoo:long-adder")
    (looked,) = run_patterns(run, example="6+6").looked
    found = {each.attention: each for each in looked.patterns}
    own, cross = found["decoder.0.self"], found["decoder.0.cross"]
    assert own.says == cross.says == ["2", "1", "⊣"]
    assert own.queries == own.keys == ["⊢", "2", "1"]
    assert own.pattern.shape[1:] == (3, 3)
    assert cross.pattern.shape[1:] == (3, 3)
    assert looked.note == "The ones are said first."


def test_one_head_over_examples_of_a_split(adder: RunFolder) -> None:
    looked = run_patterns(adder, head=ALIGN, split="test", examples=5).looked
    task, _ = planted()
    pairs = task.split_pairs(SPEC.seed)[2][:5].tolist()
    assert [each.example for each in looked] == [f"{a}+{b}" for a, b in pairs]
    data = head_examples_data(ALIGN, looked)
    assert data.head == ALIGN
    assert np.allclose([panel.pattern for panel in data.examples], [COLUMNS] * 5, atol=1e-3)
    drawn = [axes for axes in draw_head_examples(data).axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in drawn] == [
        f"{each.example} = {each.answer}" for each in looked
    ]
    for axes, panel in zip(drawn, data.examples, strict=True):
        assert [label.get_text() for label in axes.get_xticklabels()] == panel.keys
        assert panel.says == [*panel.queries[1:], "⊣"]
        assert [label.get_text() for label in axes.get_yticklabels()] == [f"→{each}" for each in panel.says]
        (mesh,) = axes.collections
        assert np.ma.asarray(mesh.get_array()).filled(0).tolist() == panel.pattern
        assert mesh.get_clim() == (0, 1)


def test_an_image_has_its_patches_as_multiples_of_uniform_attention(digits: RunFolder) -> None:
    (looked,) = run_patterns(digits, example="test:3").looked
    assert looked.example == "test:3"
    data = patch_patterns_data(looked)
    (head,) = data.heads
    assert head.head == "encoder.0.self.0"
    assert head.keys[:8] == ["0,0", "0,1", "0,2", "0,3", "0,4", "0,5", "0,6", "1,0"]
    pattern, received = np.asarray(head.pattern), np.asarray(head.received)
    assert pattern.shape == (49, 49)
    assert received.shape == (7, 7)
    assert np.allclose(pattern.sum(axis=1), 49)
    assert np.allclose(received.ravel(), pattern.mean(axis=0))
    image, *maps = draw_patch_patterns(data).axes[:3]
    assert np.asarray(image.images[0].get_array()).tolist() == data.image
    assert np.allclose([np.asarray(axes.images[0].get_array()).mean() for axes in maps], 1)


def test_one_head_over_images_fills_further_rows(digits: RunFolder) -> None:
    looked = run_patterns(digits, head="encoder.0.self.0", split="test", examples=11).looked
    data = head_images_data("encoder.0.self.0", looked)
    assert len(data.images) == len(data.received) == 11
    assert data.answers[2].startswith("test:2 → ")
    pattern = looked[2].of("encoder.0.self.0")[1]
    assert np.allclose(np.asarray(data.received[2]).ravel(), pattern.mean(dim=0).numpy() * 49)
    shown = [axes for axes in draw_head_images(data).axes if axes.images]
    assert len(shown) == 22


def test_a_sum_has_no_patches() -> None:
    with pytest.raises(LabError, match=r"1\+2 is not an image, so it has no patches to draw"):
        patch_patterns_data(Looked("1+2", "3", []))


@pytest.mark.parametrize(
    ("words", "name", "key"),
    [
        (["--example", "21+34"], "patterns-21+34", "layers"),
        (["--head", ALIGN, "--examples", "3"], f"patterns-{ALIGN}", "examples"),
        (["--head", ALIGN, "--example", "7+1"], f"patterns-{ALIGN}-7+1", "examples"),
    ],
)
def test_the_command_writes_a_figure_with_its_numbers(
    adder: RunFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    name: str,
    key: str,
) -> None:
    assert run_command(["patterns", str(adder.path), *words, "--out", str(tmp_path / "new/there")]) == 0
    files = [tmp_path / "new/there" / f"{name}.{ending}" for ending in ("svg", "png", "json")]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in files]
    assert files[0].read_text().startswith("<svg")
    assert files[1].read_bytes().startswith(b"\x89PNG")
    data: dict[str, Any] = json.loads(files[2].read_text())
    assert key in data


def test_figures_go_into_the_run_folder_by_default(
    digits: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["patterns", str(digits.path), "--example", "valid:2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["examples"] == ["valid:2"]
    assert told["files"][0] == str(digits.file("figures/patterns-valid-2.svg"))
    assert Path(told["files"][0]).exists()


def test_refusals_are_one_sentence(
    adder: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(adder.path)
    near = complaint(capsys, path, "--head", "decoder.0.cross.7")
    assert near == "attnlab: the model has no head 'decoder.0.cross.7'; did you mean 'decoder.0.cross.2'?"
    assert complaint(capsys, path, "--head", ALIGN, "--examples", "0").endswith(
        "examples is 0; a figure shows from 1 to 64"
    )
    assert "'12' is not a sum of two numbers" in complaint(capsys, path, "--example", "12")
    bare = untrained_digits(tmp_path, MLPModel())
    assert complaint(capsys, str(bare.path)).endswith("MLP has no attention, so it has no heads to look at")
    with pytest.raises(InputError, match="a figure shows from 1 to 64"):
        run_patterns(adder, examples=65)
