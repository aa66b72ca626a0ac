from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import NoHeads
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions, build_model, heads
from attnlab.models.surgery import remove_heads
from attnlab.notation import Head, parse_head
from attnlab.specs import MLPModel, ModelSpec, PatchAttentionModel, Rotary, Seq2SeqModel
from attnlab.taps import edit

ADDER = Seq2SeqModel(width=12, heads=3, hidden=7, encoder_layers=1, decoder_layers=2)
READER = PatchAttentionModel(width=15, hidden=7, patch=14, heads=5)


def inputs(spec: ModelSpec) -> tuple[Tensor, ...]:
    if isinstance(spec, Seq2SeqModel):
        return torch.randint(0, 11, (7, 5)), torch.randint(0, 11, (7, 3))
    return (torch.rand(7, 28, 28),)


def fresh(spec: ModelSpec) -> Model:
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=11).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)  # biases too, which start as zero
    return model


def logits(model: Model, given: tuple[Tensor, ...]) -> Tensor:
    found: Tensor = model(*(part.double() if part.is_floating_point() else part for part in given))
    return found


def masked(model: Model, removed: list[Head], constants: dict[str, Tensor]) -> dict[str, object]:
    def change(path: str) -> object:
        gone = [head.index for head in removed if head.attention == path]

        def put(z: Tensor) -> Tensor:
            z = z.clone()
            z[:, gone] = constants[path][gone][None, :, None]
            return z

        return put

    return {f"{path}.z": change(path) for path in attentions(model)}


REMOVED = {
    "one": ["decoder.1.cross.1"],
    "a whole attention": ["encoder.0.self.0", "encoder.0.self.1", "encoder.0.self.2"],
    "unequal numbers": ["encoder.0.self.1", "decoder.0.self.0", "decoder.0.self.2", "decoder.1.cross.0"],
    "all cross": [f"decoder.{layer}.cross.{index}" for layer in (0, 1) for index in (0, 1, 2)],
    "all": [str(head) for head in heads(build_model(ADDER, vocabulary=11))],
}


@pytest.mark.parametrize("names", REMOVED.values(), ids=REMOVED.keys())
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_removed_heads_leave_the_logits_of_masked_ones(
    names: list[str], norm: Literal["pre", "post"]
) -> None:
    spec = Seq2SeqModel(
        width=12, heads=3, hidden=7, encoder_layers=1, decoder_layers=2, norm=norm, positions=Rotary()
    )
    model, given = fresh(spec), inputs(spec)
    removed = [parse_head(name) for name in names]
    constants = {path: torch.randn(3, 4).double() for path in attentions(model)}
    with edit(model, masked(model, removed, constants)):  # type: ignore[arg-type]
        expected = logits(model, given)
    pruned_spec, weights = remove_heads(spec, model, removed, constants)
    pruned = build_model(pruned_spec, vocabulary=11).double().eval()
    pruned.load_state_dict(weights)
    assert torch.allclose(logits(pruned, given), expected, atol=1e-12)
    assert len(heads(pruned)) == 15 - len(removed)
    before, after = (sum(p.numel() for p in m.parameters()) for m in (model, pruned))
    # A head of width 4 has 3 x 12 x 4 + 3 x 4 weights in front of it and 4 x 12 behind.
    assert before - after == len(removed) * (4 * 12 * 4 + 3 * 4)


def test_decoding_without_heads_is_decoding() -> None:
    model = fresh(ADDER)
    constants = {path: torch.zeros(3, 4).double() for path in attentions(model)}
    for names in REMOVED.values():
        spec, weights = remove_heads(ADDER, model, [parse_head(name) for name in names], constants)
        pruned = build_model(spec, vocabulary=11).double().eval()
        assert isinstance(pruned, Seq2Seq)
        pruned.load_state_dict(weights)
        source = torch.randint(0, 11, (7, 5))
        cached = pruned.greedy(source, start=1, length=4)
        assert torch.equal(cached, pruned.greedy(source, start=1, length=4, cached=False))


def test_pruning_twice_is_pruning_at_once() -> None:
    model, given = fresh(ADDER), inputs(ADDER)
    constants = {path: torch.randn(3, 4).double() for path in attentions(model)}
    first = [parse_head(f"encoder.0.self.{index}") for index in (0, 1, 2)]
    spec, weights = remove_heads(ADDER, model, [*first, parse_head("decoder.0.cross.0")], constants)
    once = build_model(spec, vocabulary=11).double().eval()
    once.load_state_dict(weights)
    assert isinstance(once.get_submodule("encoder.0.self"), NoHeads)
    # What was head 1 is head 0 now.
    left = {**constants, "decoder.0.cross": constants["decoder.0.cross"][1:]}
    spec, weights = remove_heads(spec, once, [parse_head("decoder.0.cross.0")], left)
    twice = build_model(spec, vocabulary=11).double().eval()
    twice.load_state_dict(weights)
    removed = [*first, parse_head("decoder.0.cross.0"), parse_head("decoder.0.cross.1")]
    spec, weights = remove_heads(ADDER, model, removed, constants)
    assert spec.head_counts == (0, 3, 1, 3, 3)  # type: ignore[union-attr]
    at_once = build_model(spec, vocabulary=11).double().eval()
    at_once.load_state_dict(weights)
    assert torch.allclose(logits(twice, given), logits(at_once, given), atol=1e-12)


@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("gone", [[2], [0, 1, 4], [0, 1, 2, 3, 4]])
def test_classifiers_lose_heads_too(projection: bool, gone: list[int]) -> None:
    spec = PatchAttentionModel(width=15, hidden=7, patch=14, heads=5, projection=projection)
    model, given = fresh(spec), inputs(spec)
    removed = [Head("encoder", 0, "self", index) for index in gone]
    constants = {"encoder.0.self": torch.randn(5, 3).double()}
    with edit(model, masked(model, removed, constants)):  # type: ignore[arg-type]
        expected = logits(model, given)
    pruned_spec, weights = remove_heads(spec, model, removed, constants)
    pruned = build_model(pruned_spec, vocabulary=11).double().eval()
    pruned.load_state_dict(weights)
    assert torch.allclose(logits(pruned, given), expected, atol=1e-12)


def test_what_cannot_be_removed() -> None:
    model = fresh(READER)
    constants = {"encoder.0.self": torch.zeros(5, 3).double()}
    with pytest.raises(LabError, match=r"no head encoder\.0\.self\.5"):
        remove_heads(READER, model, [Head("encoder", 0, "self", 5)], constants)
    with pytest.raises(LabError, match="'mlp' has no heads"):
        remove_heads(MLPModel(), build_model(MLPModel(hidden=3), vocabulary=10), [], {})
