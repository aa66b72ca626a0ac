"""Positions by column: where tokens stand, how far they see, and that length makes no difference."""

from typing import Literal

import pytest
import torch

from attnlab.models import Seq2Seq, build_model
from attnlab.positions import build_positions
from attnlab.positions.schemes import FAR, ColumnPlaces, LinearBias, WindowBias, run_starts
from attnlab.specs import Columns, Coupled, Seq2SeqModel

PLUS, PAD = 10, 11
Inner = Literal["learned", "sinusoidal", "rotary", "relative"]


def test_columns_are_counted_anew_behind_a_break() -> None:
    places = ColumnPlaces(limit=23, breaks=(PLUS,), lead=0)
    tokens = torch.tensor([[3, 7, PLUS, 5, 1, PAD, PAD], [4, 2, 1, PLUS, 3, 3, 3]])
    assert places(7, tokens, None, tokens).tolist() == [[0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3, 0, 1, 2]]
    leading = ColumnPlaces(limit=23, breaks=(PLUS,), lead=1)
    assert leading(7, tokens, None, tokens)[0].tolist() == [1, 2, 3, 1, 2, 3, 4]
    assert leading(5, tokens, None).tolist() == [[0, 1, 2, 3, 4]]  # an answer
    assert ColumnPlaces(limit=23)(7, tokens, None, tokens).tolist() == [[0, 1, 2, 3, 4, 5, 6]]


def test_runs_are_found_without_a_cumulative_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = torch.rand(7, 23) < 0.2
    usual = run_starts(ends)
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert torch.equal(run_starts(ends), usual)


def test_examples_are_moved_in_training_alone() -> None:
    places = ColumnPlaces(limit=19)
    like = torch.empty(997, 7)
    shift = places.train().shift(7, like)
    assert shift is not None
    assert sorted(set(shift[:, 0].tolist())) == list(range(13))
    assert places.eval().shift(7, like) is None
    unmoved = ColumnPlaces(limit=5).shift(7, like)
    assert unmoved is not None
    assert (unmoved == 0).all()


def test_a_window_leaves_what_is_inside() -> None:
    inner = LinearBias(heads=3)
    i, j = torch.tensor([[2]]), torch.tensor([[0, 1, 2, 3, 5]])
    seen = torch.tensor([False, True, True, True, False])
    assert WindowBias(window=1)(i, j).flatten().tolist() == [0 if near else FAR for near in seen.tolist()]
    both = WindowBias(window=1, inner=inner)(i, j)[0, :, 0]
    assert torch.equal(both, torch.where(seen, 0, FAR) + inner(i, j)[0, :, 0])


@pytest.mark.parametrize("inner", ["learned", "sinusoidal", "rotary", "relative"])
def test_slots_of_each_kind(inner: Inner) -> None:
    made = build_positions(Coupled(inner=inner, window=2), width=12, head_width=4)
    assert (made.add is not None) == (inner in ("learned", "sinusoidal"))
    assert (made.rotation is not None) == (inner == "rotary")
    assert made.bias is not None
    assert made.couples
    plain = build_positions(Coupled(inner=inner), width=12, head_width=4)
    assert (plain.bias is not None) == (inner == "relative")
    assert plain.couples == (inner in ("rotary", "relative"))


def adder(inner: Inner) -> Seq2Seq:
    torch.manual_seed(1)
    spec = Seq2SeqModel(
        width=12,
        heads=3,
        hidden=13,
        encoder_layers=1,
        decoder_layers=1,
        positions=Coupled(inner=inner, window=1, buckets=6, distance=3),
    )
    return build_model(spec, vocabulary=14, columns=Columns(breaks=(PLUS,))).double().eval()


@pytest.mark.parametrize("inner", ["learned", "sinusoidal", "rotary", "relative"])
def test_a_digit_is_said_from_the_columns_beside_it(inner: Inner) -> None:
    """With a window of 1 in an encoder's and a decoder's layer, two columns are all that is seen."""
    model, n = adder(inner), 11
    a, b, fed = (torch.randint(0, 10, (3, each)) for each in (n, n, n + 2))
    plus = torch.full((3, 1), PLUS)
    before = model(torch.cat((a, plus, b), dim=1), fed)
    a[:, 5] = (a[:, 5] + 1) % 10
    moved = (model(torch.cat((a, plus, b), dim=1), fed) - before).abs().amax(dim=(0, 2)) > 1e-9
    assert moved.nonzero()[:, 0].tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("inner", ["rotary", "relative"])
def test_a_longer_sum_changes_nothing_below(inner: Inner) -> None:
    model, n = adder(inner), 7
    a, b, fed = (torch.randint(0, 10, (3, 90)) for _ in range(3))
    plus = torch.full((3, 1), PLUS)

    def logits(length: int) -> torch.Tensor:
        source = torch.cat((a[:, :length], plus, b[:, :length]), dim=1)
        return model(source, fed[:, : length + 2])[:, : n - 2]

    torch.testing.assert_close(logits(n), logits(83), rtol=0, atol=1e-9)


def test_in_training_source_and_answer_are_moved_together() -> None:
    """A model that compares columns only says the same wherever its examples are moved to."""
    model = adder("rotary")
    source, fed = torch.randint(0, 10, (5, 9)), torch.randint(0, 10, (5, 5))
    usual = model(source, fed)
    torch.testing.assert_close(model.train()(source, fed), usual, rtol=0, atol=1e-9)
    learned = adder("learned").train()
    assert not torch.allclose(learned(source, fed), learned(source, fed))
