"""Transformers over patches: stems, what stands in front, places in a grid, bridges, heads that go."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.errors import SpecError
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions, build_model, heads
from attnlab.models.images import cut_patches, join_patches, patch_grid
from attnlab.models.surgery import remove_heads
from attnlab.models.vit import CellMeans, ConvStem, LinearStem, PatchEmbed, stem_strides
from attnlab.notation import Head
from attnlab.positions import build_positions
from attnlab.positions.schemes import GridRotation
from attnlab.presets import preset
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.specs import (
    Alibi,
    GridLearned,
    GridRotary,
    GridSinusoidal,
    Learned,
    NoPositions,
    PatchPositionSpec,
    PatchSeq2SeqModel,
    Pooling,
    Relative,
    Spec,
    VitModel,
    from_json,
    spec_hash,
    to_json,
    variants,
    with_settings,
)
from attnlab.specs.models import Stem
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.taps import edit
from twins import randomise

KINDS = variants(PatchPositionSpec)
POOLINGS: list[Pooling] = [pooling for pooling in get_args(Pooling) if pooling != "lowest"]
STEMS: tuple[Stem, ...] = get_args(Stem)
SMALL = VitModel(patch=7, width=24, heads=3, layers=2, hidden=11)
READER = PatchSeq2SeqModel(rows=2, columns=3, patch=14, width=24, heads=3, encoder_layers=2, hidden=11)


def fresh(spec: VitModel | PatchSeq2SeqModel) -> Model:
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=11).double().eval()
    randomise(model)
    return model


@pytest.mark.parametrize(
    ("patch", "strides"),
    [
        (1, [1]),
        (2, [2, 1, 1, 1]),
        (4, [2, 1, 1, 2, 1]),
        (7, [1, 7]),
        (14, [2, 1, 1, 1, 7]),
        (28, [2, 1, 1, 2, 1, 7]),
    ],
)
def test_strides_of_a_stem_multiply_to_the_patch(patch: int, strides: list[int]) -> None:
    assert stem_strides(patch) == strides
    assert torch.tensor(strides).prod() == patch
    for stem in (LinearStem(patch=patch, width=10), ConvStem(patch=patch, width=10)):
        assert stem(torch.rand(2, 28, 56)).shape == (2, 2 * (28 // patch) ** 2, 10)


def test_a_linear_stem_is_the_convolution_of_the_papers() -> None:
    stem, images = LinearStem(patch=7, width=5).double(), torch.rand(3, 28, 56).double()
    weight = stem.linear.weight.view(5, 1, 7, 7)
    expected = F.conv2d(images[:, None], weight, stem.linear.bias, stride=7).flatten(2).transpose(1, 2)
    assert torch.allclose(stem(images), expected)


def test_patches_of_a_wide_image_can_be_put_together_again() -> None:
    images = torch.rand(3, 28, 84)
    patches = cut_patches(images, 14)
    assert torch.equal(patches[:, 7], images[:, 14:28, 14:28].flatten(1))
    assert torch.equal(join_patches(patches, 2), images)


@pytest.mark.parametrize("front", [0, 1])
def test_the_grid_of_patches_is_told_by_their_number(front: int) -> None:
    assert patch_grid((28, 28), 49 + front) == (7, 7)
    assert patch_grid((56, 84), 6 * 16 + front) == (8, 12)
    assert patch_grid((28, 28), 1 + front) == (1, 1)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("stem", STEMS)
def test_every_combination_reads_an_image(stem: Stem, kind: type, pooling: Pooling) -> None:
    spec = replace(SMALL, positions=kind(), pooling=pooling, stem=stem)
    model = build_model(spec, vocabulary=10)
    assert model(torch.rand(5, 28, 28)).shape == (5, 10)
    assert len(heads(model)) == 6
    assert from_json(Spec, to_json(Spec(task=Digits(), model=spec))).model == spec


@pytest.mark.parametrize("spec", [GridLearned(scale=1.0), GridSinusoidal()], ids=["learned", "sinusoidal"])
def test_what_stands_in_front_is_in_no_row(spec: GridLearned | GridSinusoidal) -> None:
    torch.manual_seed(0)
    plain, led = (
        build_positions(spec, width=12, head_width=4, rows=3, columns=5, front=front) for front in (0, 1)
    )
    led.load_state_dict(plain.state_dict())
    nothing = torch.zeros(1, 16, 12)
    expected = plain.at(15, nothing).embed(nothing[:, :15])
    found = led.at(16, nothing).embed(nothing)
    assert torch.equal(found[:, 1:], expected)
    assert found[:, 0].count_nonzero() == 0


def test_grid_rotary_scores_depend_on_rows_and_columns_apart() -> None:
    turn = GridRotation(head_width=8, columns=5, front=1).double()
    q, k = torch.rand(2, 1, 1, 1, 8).double().expand(2, 1, 1, 16, 8)
    places = torch.arange(16)[None]
    scores = (turn(q, places) @ turn(k, places).transpose(-2, -1))[0, 0]
    assert torch.allclose(scores[0, 0], (q[0, 0, 0] * k[0, 0, 0]).sum())
    patches = scores[1:, 1:].reshape(3, 5, 3, 5)
    assert torch.allclose(patches[0, 1, 1, 3], patches[1, 2, 2, 4])
    assert not torch.isclose(patches[0, 1, 1, 3], patches[0, 1, 2, 3])
    assert not torch.isclose(patches[0, 1, 1, 3], patches[0, 1, 1, 2])


def test_only_the_first_token_is_read_out_with_cls() -> None:
    model = fresh(replace(SMALL, pooling="cls", positions=Learned(length=17)))
    embed = model.embed
    assert isinstance(embed, PatchEmbed)
    assert embed.front is not None
    images = torch.rand(3, 28, 28).double()
    tokens = embed(images)
    assert tokens.shape == (3, 17, 24)
    assert torch.equal(tokens[:, 0], embed.front.expand(3, -1))
    before = model(images)
    with edit(model, {"encoder.1.feed_residual.out": lambda x: torch.cat((x[:, :1], 0 * x[:, 1:]), 1)}):
        assert torch.equal(model(images), before)


def test_cells_are_means_of_their_patches() -> None:
    rows, columns, side = 2, 3, 2
    numbers = torch.arange(6.0).view(rows, columns)
    patches = numbers.repeat_interleave(side, 0).repeat_interleave(side, 1).flatten()
    memory = patches[None, :, None] + torch.tensor([-1.0, 1.0]).repeat(12)[None, :, None]
    found = CellMeans(rows=rows, columns=columns, across=side)(memory)
    assert torch.allclose(found.flatten(), torch.arange(6.0))


@pytest.mark.parametrize("bridge", ["memory", "cells"])
def test_reading_with_a_cache_says_the_same(bridge: Literal["memory", "cells"]) -> None:
    model = fresh(replace(READER, bridge=bridge, positions=GridRotary()))
    assert isinstance(model, Seq2Seq)
    images = torch.rand(7, 56, 84).double()
    memory = model.encode(images).memory
    assert memory.shape == (7, 24 if bridge == "memory" else 6, 24)
    fast = model.greedy(images, start=10, length=6)
    assert fast.dtype == torch.long
    assert torch.equal(fast, model.greedy(images, start=10, length=6, cached=False))


@pytest.mark.parametrize(
    "spec", [SMALL, replace(SMALL, pooling="cls"), READER], ids=["mean", "cls", "grid"]
)
@pytest.mark.parametrize("positions", [GridLearned(), Alibi(), Relative(), GridRotary()])
def test_removed_heads_leave_the_logits_of_masked_ones(
    spec: VitModel | PatchSeq2SeqModel, positions: PatchPositionSpec
) -> None:
    spec = replace(spec, positions=positions)
    model = fresh(spec)
    given: tuple[Tensor, ...] = (torch.rand(5, 28, 28).double(),)
    if isinstance(spec, PatchSeq2SeqModel):
        given = torch.rand(5, 56, 84).double(), torch.randint(0, 11, (5, 6))
    gone = [Head("encoder", 0, "self", 1), *(Head("encoder", 1, "self", index) for index in range(3))]
    constants = {path: torch.rand(3, 8).double() for path in attentions(model)}

    def put(path: str) -> object:
        indices = [head.index for head in gone if head.attention == path]

        def change(z: Tensor) -> Tensor:
            z = z.clone()
            z[:, indices] = constants[path][indices][None, :, None]
            return z

        return change

    with edit(model, {f"{path}.z": put(path) for path in attentions(model)}):  # type: ignore[misc]
        expected = model(*given)
    smaller, weights = remove_heads(spec, model, gone, constants)
    assert isinstance(smaller, VitModel | PatchSeq2SeqModel)
    assert smaller.head_counts[:2] == (2, 0)
    after = build_model(smaller, vocabulary=11).double().eval()
    after.load_state_dict(weights)
    assert torch.allclose(after(*given), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patch": 5}, r"model.patch is 5, but it must be a divisor of 28: \[1, 2, 4, 7, 14, 28\]"),
        ({"layers": 0}, "model.layers is 0, but it must be from 1 to 1,000"),
        ({"pooling": "lowest"}, "model.pooling is 'lowest', but it must be another than 'lowest'"),
        (
            {"positions": Learned(length=15)},
            "model.positions.length is 15, but it must be at least 16, the tokens of an image",
        ),
        (
            {"positions": Learned(length=16), "pooling": "cls"},
            "model.positions.length is 16, but it must be at least 17",
        ),
        (
            {"patch": 28, "pooling": "boundary", "positions": NoPositions()},
            "model.patch is 28, but it must be smaller, since boundary pooling takes differences",
        ),
        (
            {"positions": GridSinusoidal(), "width": 18},
            "model.width is 18, but it must be a multiple of 4 for grid-sinusoidal positions",
        ),
        (
            {"positions": GridRotary(), "width": 18},
            "model.heads is 3, but it must be such that a head's width is a multiple of 4 for grid-rotary",
        ),
    ],
)
def test_what_a_vision_transformer_cannot_be(change: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        replace(SMALL, **change).check_image(28, 28)  # type: ignore[arg-type]


def test_a_base_of_one_turns_nothing() -> None:
    with pytest.raises(SpecError, match=r"model.positions.base is 1.0, but it must be above 1"):
        GridRotary(base=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task", "base"),
    [("encoder-only", "digits", "vit-reference"), ("encoder-decoder", "grids", "reference")],
)
def test_every_corner_of_the_image_sweeps_is_a_spec(name: str, task: str, base: str) -> None:
    sweep = read_sweep_file(Path(__file__).parents[1] / "sweeps" / f"{name}.yaml")
    choices = [d.values() or (d.quantile(0.0), d.quantile(0.9999)) for d in sweep.parameters.values()]
    corners = random.Random(0).sample(list(product(*choices)), 200)
    for tried, possible in zip(zip(*corners, strict=True), choices, strict=True):
        assert set(tried) == set(possible)
    for values in corners:
        settings = dict(zip(sweep.parameters, values, strict=True))
        changed = with_settings(preset(task, base), settings)
        assert isinstance(changed.model, VitModel | PatchSeq2SeqModel)
        assert changed.model.patch == settings["model.patch"]


def test_task_and_model_agree_about_the_grid() -> None:
    with pytest.raises(SpecError, match=r"model.columns is 3, but it must be task.columns, which is 2"):
        Spec(task=Grids(), model=READER)
    with pytest.raises(SpecError, match=r"model 'vit' cannot do the task 'grids'"):
        Spec(task=Grids(), model=SMALL)
    with pytest.raises(SpecError, match=r"model.rows is 0, but it must be at least 1"):
        replace(READER, rows=0)
    spec = Spec(task=Grids(columns=3), model=READER)
    assert spec_hash(from_json(Spec, to_json(spec))) == spec_hash(spec)
