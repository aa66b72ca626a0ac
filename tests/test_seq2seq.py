from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention import causal
from attnlab.blocks import DecoderBlock, EncoderBlock
from attnlab.models import Seq2Seq, attentions, build_model, heads
from attnlab.specs import NoPositions, PositionSpec, Seq2SeqModel
from schemes import NAMES, SPECS
from twins import PRECISIONS, decoder_twin, encoder_twin, randomise

B, S, T, V = 3, 7, 5, 11
Norm = Literal["pre", "post"]
every_norm = pytest.mark.parametrize("norm", ["pre", "post"])
every_position = pytest.mark.parametrize("positions", SPECS, ids=NAMES)


def make(positions: PositionSpec, norm: Norm) -> Seq2Seq:
    spec = Seq2SeqModel(width=12, heads=3, hidden=13, norm=norm, positions=positions, decoder_layers=3)
    return build_model(spec, vocabulary=V).double().eval()


def tokens() -> tuple[Tensor, Tensor]:
    return torch.randint(V, (B, S)), torch.randint(V, (B, T))


def torch_logits(ours: Seq2Seq, norm_first: bool, source: Tensor, target: Tensor) -> Tensor:
    """The same model composed of torch's layers."""
    x, y = (
        embed(tokens) + (0 if positions.add is None else positions.add(torch.arange(tokens.shape[1])))
        for embed, positions, tokens in (
            (ours.source_embed, ours.source_positions, source),
            (ours.target_embed, ours.target_positions, target),
        )
    )
    for block in ours.encoder:
        assert isinstance(block, EncoderBlock)
        x = encoder_twin(block, norm_first=norm_first, activation="relu")(x)
    x = ours.encoder_norm(x)
    for block in ours.decoder:
        assert isinstance(block, DecoderBlock)
        layer = decoder_twin(block, norm_first=norm_first, activation="relu")
        y = layer(y, x, tgt_mask=~causal(y.shape[1], y))
    return ours.readout(ours.decoder_norm(y))


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@every_norm
@pytest.mark.parametrize("positions", SPECS[:3], ids=NAMES[:3])
def test_parity_with_torch(
    positions: PositionSpec, norm: Norm, dtype: torch.dtype, tolerance: float
) -> None:
    ours = make(positions, norm)
    randomise(ours)
    ours = ours.to(dtype)
    source, target = tokens()
    expected = torch_logits(ours, norm == "pre", source, target)
    assert expected.shape == (B, T, V)
    torch.testing.assert_close(ours(source, target), expected, rtol=0, atol=tolerance)


@every_norm
def test_closing_norms(norm: Norm) -> None:
    model = make(NoPositions(), norm)
    kind = nn.LayerNorm if norm == "pre" else nn.Identity
    assert type(model.encoder_norm) is type(model.decoder_norm) is kind


@every_norm
@every_position
def test_causality(positions: PositionSpec, norm: Norm) -> None:
    """Another token at t changes the logits from t on, and no bit of those before."""
    model = make(positions, norm)
    source, target = tokens()
    before = model(source, target)
    for t in range(T):
        other = target.clone()
        other[:, t] = (other[:, t] + 1) % V
        after = model(source, other)
        assert torch.equal(after[:, :t], before[:, :t])
        assert (after[:, t:] != before[:, t:]).any(dim=-1).all()


@every_position
def test_source_reaches_every_logit(positions: PositionSpec) -> None:
    model = make(positions, "pre")
    source, target = tokens()
    before = model(source, target)
    for s in range(S):
        other = source.clone()
        other[:, s] = (other[:, s] + 1) % V
        assert (model(other, target) != before).any(dim=-1).all()


@pytest.mark.parametrize("order_matters", [False, True])
def test_only_positions_tell_the_order_of_the_source(order_matters: bool) -> None:
    model = make(SPECS[1] if order_matters else NoPositions(), "pre")
    source, target = torch.arange(S).expand(B, S), torch.randint(V, (B, T))
    same = torch.allclose(model(source.flip(1), target), model(source, target), atol=1e-10)
    assert same is not order_matters


@every_norm
@every_position
def test_greedy_equals_its_definition(positions: PositionSpec, norm: Norm) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        model = make(positions, norm)
        source, _ = tokens()
        cached = model.greedy(source, start=V - 1, length=T)
        assert cached.shape == (B, T)
        assert torch.equal(cached, model.greedy(source, start=V - 1, length=T, cached=False))


@every_position
def test_step_gives_the_logits_of_forward(positions: PositionSpec) -> None:
    model = make(positions, "pre")
    source, target = tokens()
    step = model.begin(source)
    steps = [step(target[:, t : t + 1]) for t in range(T)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(source, target), rtol=0, atol=1e-10)


def test_greedy_needs_no_gradient() -> None:
    model = make(NoPositions(), "pre")
    assert not model.greedy(tokens()[0], start=0, length=2).requires_grad


def test_heads_and_attentions_in_the_order_of_computation() -> None:
    model = build_model(Seq2SeqModel(width=6, heads=3, encoder_layers=2, decoder_layers=1), vocabulary=V)
    paths = ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"]
    assert list(attentions(model)) == paths
    assert [str(head) for head in heads(model)] == [f"{path}.{h}" for path in paths for h in range(3)]


def test_fresh_weights() -> None:
    """Matrices within Xavier's bound and filling it, biases zero, embeddings of variance one."""
    model = build_model(Seq2SeqModel(width=64, heads=4, hidden=101), vocabulary=103)
    bound = (6 / (64 + 101)) ** 0.5
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            assert not module.bias.any(), name
        if name.endswith("feed.up"):
            assert isinstance(module.weight, Tensor)
            assert 0.99 * bound < module.weight.abs().max().item() <= bound
    assert model.get_parameter("source_embed.weight").std().item() == pytest.approx(1, rel=0.05)


def test_same_generator_same_weights() -> None:
    torch.manual_seed(3)
    first = make(SPECS[2], "pre").state_dict()
    torch.manual_seed(3)
    again = make(SPECS[2], "pre").state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize(("activation", "kind"), [("relu", nn.ReLU), ("gelu", nn.GELU)])
def test_activation(activation: Literal["relu", "gelu"], kind: type[nn.Module]) -> None:
    model = build_model(Seq2SeqModel(width=4, heads=1, activation=activation), vocabulary=V)
    blocks = [block for block in model.modules() if isinstance(block, EncoderBlock | DecoderBlock)]
    assert [type(block.feed.activation) for block in blocks] == [kind] * 4
