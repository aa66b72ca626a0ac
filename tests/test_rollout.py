"""Rollout by value, and what must hold of it."""

import pytest
import torch
from torch import Tensor

from attnlab.analysis.rollout import rollout
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.specs import PatchAttentionModel, PatchSeq2SeqModel, Seq2SeqModel, VitModel
from attnlab.taps import record
from planted import planted_module


def uniform(*shape: int) -> Tensor:
    return torch.full(shape, 1 / shape[-1])


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape).softmax(dim=-1)


def stack(layers: int) -> Model:
    spec = VitModel(width=6, heads=3, layers=layers, hidden=5, patch=14, pooling="cls")
    return build_model(spec, vocabulary=10)


def mixed(pattern: Tensor) -> Tensor:
    """I / 2 + A / 2, with A the mean over heads."""
    return torch.eye(pattern.shape[-1]) / 2 + pattern.mean(dim=1) / 2


def test_one_layer_by_value() -> None:
    pattern = torch.tensor([[[[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]]])
    held = rollout(stack(1), {"encoder.0.self": pattern})
    assert torch.equal(held, torch.tensor([[[0.75, 0.25], [0.25, 0.75]]]))


def test_layers_are_multiplied_the_last_one_first() -> None:
    a, b = drawn(3, 2, 5, 5), drawn(3, 2, 5, 5)
    held = rollout(stack(2), {"encoder.0.self": a, "encoder.1.self": b})
    assert torch.allclose(held, mixed(b) @ mixed(a))
    assert torch.allclose(held.sum(dim=-1), torch.ones(3, 5))


def test_a_vision_transformer_is_a_stack() -> None:
    model = stack(2)
    with record(model, "*.pattern") as seen:
        model(torch.rand(3, 28, 28))
    patterns = {name.removesuffix(".pattern"): pattern for name, pattern in seen.items()}
    held = rollout(model, patterns)
    first, second = patterns.values()
    assert held.shape == (3, 5, 5)
    assert torch.allclose(held, mixed(second) @ mixed(first))


def test_without_a_residual_sum_attention_is_all() -> None:
    pattern = drawn(2, 1, 49, 49)
    model = build_model(PatchAttentionModel(width=8, hidden=7), vocabulary=10)
    assert torch.allclose(rollout(model, {"encoder.0.self": pattern}), pattern[:, 0])
    model = build_model(PatchAttentionModel(width=8, hidden=7, residual=True), vocabulary=10)
    held = rollout(model, {"encoder.0.self": pattern})
    assert torch.allclose(held, torch.eye(49) / 2 + pattern[:, 0] / 2)


def test_decoders_hold_of_the_source_what_they_looked_at() -> None:
    spec = Seq2SeqModel(width=6, heads=3, encoder_layers=1, decoder_layers=1, hidden=5)
    model = build_model(spec, vocabulary=11)
    own, cross = drawn(2, 3, 4, 4), drawn(2, 3, 4, 7)
    patterns = {"encoder.0.self": drawn(2, 3, 7, 7), "decoder.0.self": own, "decoder.0.cross": cross}
    memory = mixed(patterns["encoder.0.self"])
    held = rollout(model, patterns)
    assert torch.allclose(held, cross.mean(dim=1) @ memory / 2)
    assert torch.allclose(held.sum(dim=-1), torch.full((2, 4), 0.5))


def test_a_bridge_hands_on_the_patches_of_its_cells() -> None:
    spec = PatchSeq2SeqModel(
        width=6, heads=3, hidden=5, patch=14, rows=1, columns=3, encoder_layers=1, bridge="cells"
    )
    model = build_model(spec, vocabulary=11)
    first = torch.zeros(1, 3, 3, 3)
    first[..., 1] = 1  # all look at the cell in the middle
    patterns = {
        "encoder.0.self": torch.eye(12).expand(1, 3, 12, 12),
        "decoder.0.self": uniform(1, 3, 3, 3),
        "decoder.0.cross": first,
    }
    held = rollout(model, patterns)[0, 0].reshape(2, 3, 2)
    assert torch.allclose(held[:, 1], torch.full((2, 2), 1 / 8))
    assert held[:, (0, 2)].abs().sum() == 0


def test_a_module_of_ones_own() -> None:
    model, _ = planted_module()
    path = next(name for name, _ in model.named_modules() if name.endswith("self"))
    pattern = drawn(2, 3, 5, 5)
    assert torch.allclose(rollout(model, {path: pattern}), torch.eye(5) / 2 + pattern.mean(dim=1) / 2)
    with pytest.raises(LabError, match=r"goes from 4 to 5 tokens; only attentions between the same tokens"):
        rollout(model, {path: drawn(2, 3, 4, 5)})
    with pytest.raises(LabError, match="no pattern to roll out"):
        rollout(model, {})


def test_what_cannot_be_rolled_out_says_so() -> None:
    model = build_model(Seq2SeqModel(width=6, heads=3, encoder_layers=1, decoder_layers=1), vocabulary=11)
    with pytest.raises(LabError, match="no cross attention left"):
        rollout(model, {"encoder.0.self": drawn(1, 3, 7, 7), "decoder.0.self": drawn(1, 3, 4, 4)})
    cross = drawn(1, 3, 4, 7)  # of an encoder without attention each token holds itself
    assert torch.allclose(rollout(model, {"decoder.0.cross": cross}), cross.mean(dim=1) / 2)
    cells = build_model(PatchSeq2SeqModel(width=6, heads=3, hidden=5, bridge="cells"), vocabulary=11)
    with pytest.raises(LabError, match="the encoder has no attention left"):
        rollout(cells, {"decoder.0.cross": drawn(1, 3, 4, 4)})
