"""The patch attention model against its formulas, and where its positions start."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.errors import SpecError
from attnlab.model import Model
from attnlab.models import Classifier, attentions, build_model, heads
from attnlab.models.images import cut_patches, shuffle_patches
from attnlab.positions import start_positions
from attnlab.specs import (
    CNNModel,
    GridStart,
    MLPModel,
    ModelSpec,
    PatchAttentionModel,
    SinusoidalStart,
    UniformStart,
    XavierStart,
    ZeroStart,
)


def built(spec: ModelSpec, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return build_model(spec, vocabulary=10)


def by_formula(weights: dict[str, Tensor], images: Tensor, patch: int) -> Tensor:
    """The model as it is described, with loops instead of modules."""

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    grid = 28 // patch
    answers = []
    for image in images:
        rows = [
            image[r * patch : (r + 1) * patch, c * patch : (c + 1) * patch].flatten()
            for r in range(grid)
            for c in range(grid)
        ]
        x = (linear("embed.linear", torch.stack(rows)) + weights["embed.positions"]).relu()
        q, k, v = (linear(f"encoder.0.self.{name}", x) for name in ("query", "key", "value"))
        z = (q @ k.T / math.sqrt(q.shape[1])).softmax(dim=1) @ v
        y = linear("encoder.0.feed.down", linear("encoder.0.feed.up", z).relu())
        answers.append(linear("readout", y.mean(dim=0)))
    return torch.stack(answers)


@pytest.mark.parametrize(
    ("width", "hidden", "patch", "batch"), [(16, 32, 4, 3), (5, 7, 7, 2), (13, 3, 14, 1)]
)
def test_it_is_the_model_that_was_described(width: int, hidden: int, patch: int, batch: int) -> None:
    model = built(PatchAttentionModel(width=width, hidden=hidden, patch=patch)).double()
    images = torch.rand(batch, 28, 28, dtype=torch.float64)
    expected = by_formula(model.state_dict(), images, patch)
    assert torch.allclose(model(images), expected, atol=1e-12)


def test_the_plain_model_has_no_more_weights_than_described() -> None:
    model = built(PatchAttentionModel(width=16, hidden=32))
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == (16 * 16 + 16 + 49 * 16) + 3 * (16 * 16 + 16) + (16 * 32 + 32 + 32 * 16 + 16) + 170
    assert [str(head) for head in heads(model)] == ["encoder.0.self.0"]


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"heads": 4}, 0),
        ({"projection": True}, 64 * 64 + 64),
        ({"residual": True}, 0),
        ({"norm": True}, 3 * 2 * 64),
    ],
)
def test_each_addition_changes_the_answer_and_adds_its_weights(change: dict[str, Any], more: int) -> None:
    images = torch.rand(2, 28, 28)
    plain, changed = (built(PatchAttentionModel(width=64, hidden=128, **extra)) for extra in ({}, change))
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in (plain, changed)]
    assert sizes[1] - sizes[0] == more
    changed.load_state_dict(plain.state_dict(), strict=False)
    assert not torch.allclose(plain(images), changed(images), atol=1e-4)


def test_with_even_attention_the_model_sees_a_bag_of_patches() -> None:
    """No gain, so all scores are zero: shuffled patches give the same answer if positions start at zero."""
    order = torch.randperm(49, generator=torch.Generator().manual_seed(1))
    images = torch.rand(3, 28, 28)
    blind = built(PatchAttentionModel(gain=0.0, positions=ZeroStart()))
    assert torch.allclose(blind(images), blind(shuffle_patches(images, 4, order)), atol=1e-6)
    seeing = built(PatchAttentionModel(positions=SinusoidalStart()))
    assert not torch.allclose(seeing(images), seeing(shuffle_patches(images, 4, order)), atol=1e-4)


def test_gains_multiply_their_weights_alone() -> None:
    plain, stretched = built(PatchAttentionModel()), built(PatchAttentionModel(gain=3.0, end_gain=0.5))
    for name, weight in plain.state_dict().items():
        factor = 3.0 if name.endswith(("query.weight", "key.weight")) else 1.0
        factor = 0.5 if name in ("encoder.0.feed.down.weight", "readout.weight") else factor
        assert torch.equal(stretched.state_dict()[name], factor * weight)


def test_patches_are_cut_and_put_back() -> None:
    images = torch.arange(2 * 784.0).reshape(2, 28, 28)
    patches = cut_patches(images, 4)
    assert patches.shape == (2, 49, 16)
    assert patches[0, 8].tolist() == [images[0, 4 + r, 4 + c].item() for r in range(4) for c in range(4)]
    assert torch.equal(shuffle_patches(images, 4, torch.arange(49)), images)
    turned = shuffle_patches(images, 4, torch.arange(48, -1, -1))
    assert torch.equal(cut_patches(turned, 4), patches.flip(1))


def test_starts_have_the_values_they_say() -> None:
    torch.manual_seed(3)
    uniform = start_positions(UniformStart(limit=0.5), tokens=49, width=64)
    assert 0.49 < uniform.abs().max() <= 0.5
    xavier = start_positions(XavierStart(), tokens=49, width=64)
    assert 0.225 < xavier.abs().max() <= math.sqrt(6 / (49 + 64))
    assert not start_positions(ZeroStart(), tokens=49, width=6).any()
    waves = start_positions(SinusoidalStart(scale=2.0), tokens=49, width=6)
    assert waves[5, 2].item() == pytest.approx(2 * math.sin(5 / 10_000 ** (2 / 6)))
    assert waves[5, 3].item() == pytest.approx(2 * math.cos(5 / 10_000 ** (2 / 6)))
    grid = start_positions(GridStart(), tokens=49, width=8)
    assert torch.equal(grid[0, :4], grid[6, :4])  # the same row
    assert torch.equal(grid[1, 4:], grid[8, 4:])  # the same column
    assert grid[9, 0].item() == pytest.approx(math.sin(1))
    assert grid[9, 4].item() == pytest.approx(math.sin(2))


def test_the_networks_beside_it() -> None:
    images = torch.rand(3, 28, 28)
    mlp, cnn = built(MLPModel(hidden=7)), built(CNNModel(filters=3, kernel=5))
    assert mlp(images).shape == cnn(images).shape == (3, 10)
    assert sum(p.numel() for p in mlp.parameters()) == 784 * 7 + 7 + 70 + 10
    assert sum(p.numel() for p in cnn.parameters()) == 3 * 25 + 3 + 3 * 14 * 14 * 10 + 10
    assert not attentions(mlp)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"patch": 5}, r"model.patch is 5, but it must be a divisor of 28"),
        ({"heads": 3}, r"model.heads is 3, but it must be a divisor of model.width 16"),
        ({"width": 15, "positions": SinusoidalStart()}, r"model.width is 15, but it must be even"),
        ({"width": 18, "positions": GridStart()}, r"model.width is 18, but it must be a multiple of 4"),
        ({"gain": -1.0}, r"model.gain is -1.0"),
    ],
)
def test_impossible_models_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        PatchAttentionModel(**wrong).check_image(28, 28)  # type: ignore[arg-type]


def test_taps_see_the_pattern() -> None:
    model = built(PatchAttentionModel())
    assert isinstance(model, Classifier)
    assert list(attentions(model)) == ["encoder.0.self"]
