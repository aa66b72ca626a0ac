"""The classifier of lists: padding changes nothing, heads can go, every part is where it should be."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.errors import SpecError
from attnlab.models import Classifier, attentions, build_model, heads
from attnlab.models.surgery import remove_heads
from attnlab.notation import Head
from attnlab.pooling import LowestPool
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.words import CLS, PAD
from attnlab.specs import (
    Alibi,
    NoPositions,
    Pooling,
    PositionSpec,
    Relative,
    Sinusoidal,
    Spec,
    TokensModel,
    variants,
)
from twins import randomise

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
POSITIONS = list(variants(PositionSpec).values())
SMALL = TokensModel(width=12, heads=3, layers=2, hidden=7)


def fresh(spec: TokensModel) -> Classifier:
    model = build_model(spec, vocabulary=2, tokens=Sorting.tokens).double().eval()
    assert isinstance(model, Classifier)
    randomise(model)
    return model


def lists() -> Tensor:
    """Seven lists of 3 to 11 numbers."""
    return Sorting(low=3, high=11, train=7).splits(0).train.inputs[0]


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("positions", POSITIONS, ids=lambda where: where.kind)
def test_padding_changes_no_logit(positions: type, pooling: Pooling) -> None:
    model, tokens = fresh(replace(SMALL, positions=positions(), pooling=pooling)), lists()
    expected = torch.stack([model(row[row != PAD][None])[0] for row in tokens])
    assert torch.allclose(model(tokens), expected, atol=1e-9)
    assert torch.allclose(model(F.pad(tokens, (0, 5), value=PAD)), expected, atol=1e-9)
    single = model.float()
    alone = torch.stack([single(row[row != PAD][None])[0] for row in tokens])
    padded = single(F.pad(tokens, (0, 29), value=PAD))
    assert alone.abs().max() < 5
    assert torch.allclose(padded, alone, rtol=0, atol=1e-6), "logits of order 1, both in single precision"


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("settings", [{"window": 2}, {"log_scale": 5}, {"window": 1, "log_scale": 3}])
def test_nor_with_a_window_or_scaled_scores(settings: dict[str, int], norm: str) -> None:
    spec = replace(SMALL, pooling="lowest", norm=norm, **settings)  # type: ignore[arg-type]
    model, tokens = fresh(spec), lists()
    expected = torch.stack([model(row[row != PAD][None])[0] for row in tokens])
    assert torch.allclose(model(F.pad(tokens, (0, 3), value=PAD)), expected, atol=1e-9)
    assert not torch.allclose(fresh_as(model, SMALL)(tokens), expected, atol=1e-3)


def fresh_as(model: Classifier, spec: TokensModel) -> Classifier:
    """The same weights without window and scale."""
    other = fresh(replace(spec, pooling="lowest", norm="pre"))
    other.load_state_dict(model.state_dict(), strict=False)
    return other


def test_padding_changes_no_gradient() -> None:
    model, tokens = fresh(SMALL), lists()
    found = []
    for more in (0, 4):
        model.zero_grad()
        model(F.pad(tokens, (0, more), value=PAD)).pow(2).sum().backward()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(*found, strict=True))
    table = model.embed.get_parameter("table.weight")
    assert table.grad is not None
    assert (table.grad[PAD] == 0).all()


def test_the_token_in_front() -> None:
    spec = replace(SMALL, pooling="cls")
    model, tokens = fresh(spec), lists()
    with torch.no_grad():
        before = model(tokens)
        model.embed.get_parameter("table.weight")[CLS] *= -3
        assert not torch.allclose(model(tokens), before)
    mask = model.input_mask(tokens)
    assert mask is not None
    assert mask.shape == (7, 12)
    assert torch.equal(mask.sum(dim=1), (tokens != PAD).sum(dim=1) + 1)
    assert model.input_mask(tokens[:, :2]) is None


def test_lowest_pooling_is_the_worst_token() -> None:
    model, tokens = fresh(replace(SMALL, pooling="lowest", readout="mlp")), lists()
    pool = model.pool
    assert isinstance(pool, LowestPool)
    own = []
    pool.score.register_forward_hook(lambda _, __, out: own.append(out))
    logits = model(tokens)
    worst = own[0][..., 0].masked_fill(tokens == PAD, torch.inf).amin(dim=1)
    assert torch.equal(logits, torch.stack((-worst, worst), dim=1))


def test_without_positions_order_does_not_matter() -> None:
    model, tokens = fresh(replace(SMALL, positions=NoPositions(), pooling="mean")), lists()[:, :3]
    assert torch.allclose(model(tokens), model(tokens.flip(1)), atol=1e-9)
    told = fresh(replace(SMALL, pooling="mean"))
    assert not torch.allclose(told(tokens), told(tokens.flip(1)), atol=1e-3)


@pytest.mark.parametrize("positions", [Sinusoidal(), Alibi(), Relative()], ids=lambda where: where.kind)
@pytest.mark.parametrize("gone", [[(0, 1)], [(0, 0), (0, 1), (0, 2), (1, 1)]])
def test_heads_are_removed(gone: list[tuple[int, int]], positions: PositionSpec) -> None:
    spec = replace(SMALL, pooling="lowest", positions=positions, window=3)
    model, tokens = fresh(spec), lists()
    removed = [Head("encoder", layer, "self", index) for layer, index in gone]
    constants = {path: torch.zeros(3, 4).double() for path in attentions(model)}
    pruned_spec, weights = remove_heads(spec, model, removed, constants)
    assert isinstance(pruned_spec, TokensModel)
    pruned = build_model(pruned_spec, vocabulary=2, tokens=Sorting.tokens).double().eval()
    pruned.load_state_dict(weights)
    assert len(heads(pruned)) == 6 - len(gone)
    with torch.no_grad():
        for head in removed:
            output = model.get_submodule(head.attention).get_parameter("output.weight")
            output[:, 4 * head.index : 4 * head.index + 4] = 0
        assert torch.allclose(pruned(tokens), model(tokens), atol=1e-9)


def test_heads_keep_their_bias_when_others_go_twice() -> None:
    spec = replace(SMALL, positions=Alibi())
    model = fresh(spec)
    zeros = {path: torch.zeros(3, 4).double() for path in attentions(model)}
    once, weights = remove_heads(spec, model, [Head("encoder", 0, "self", 0)], zeros)
    assert isinstance(once, TokensModel)
    assert (once.head_counts, once.head_indices) == ((2, 3), (1, 2, 0, 1, 2))
    pruned = build_model(once, vocabulary=2, tokens=Sorting.tokens).double()
    pruned.load_state_dict(weights)
    left = {"encoder.0.self": torch.zeros(2, 4).double(), "encoder.1.self": zeros["encoder.1.self"]}
    twice, _ = remove_heads(
        once, pruned, [Head("encoder", 0, "self", 0), Head("encoder", 1, "self", 1)], left
    )
    assert isinstance(twice, TokensModel)
    assert (twice.head_counts, twice.head_indices) == ((1, 2), (2, 0, 2))
    plain, _ = remove_heads(SMALL, fresh(SMALL), [Head("encoder", 0, "self", 0)], zeros)
    assert isinstance(plain, TokensModel)
    assert plain.head_indices == ()


def test_tasks_and_models_that_do_not_go_together() -> None:
    for task in (Addition(), Digits()):
        with pytest.raises(SpecError, match=f"model 'tokens' cannot do the task '{task.kind}'"):
            Spec(task=task, model=TokensModel())
    with pytest.raises(SpecError, match="model 'seq2seq' cannot do the task 'sorting'"):
        Spec(task=Sorting())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layers": 0}, "model.layers is 0, but it must be from 1 to 1,000"),
        ({"window": -1}, "model.window is -1, but it must be at least 0"),
        ({"log_scale": 1}, "model.log_scale is 1, but it must be at least 2, or 0 for none"),
        ({"heads": 5}, "model.heads is 5, but it must be a divisor of model.width 128"),
        ({"head_counts": (1, 2)}, "model.head_counts is (1, 2), but it must be 4 numbers from 0 to 4"),
        ({"head_indices": (1,)}, "model.head_indices is (1,), but it must be empty"),
        (
            {"head_counts": (1, 0, 0, 1), "positions": Alibi()},
            "model.head_indices is (), but it must be 2 numbers from 0 to 3, one a head that pruning left",
        ),
        ({"dropout": 1.0}, "model.dropout is 1.0, but it must be at least 0 and below 1"),
    ],
)
def test_specs_that_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        TokensModel(**settings)  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)
