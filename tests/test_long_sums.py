"""Sums of up to 200 digits: tokens, carries, splits and what is measured of them."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnlab.errors import InputError, LabError, SpecError
from attnlab.model import Model
from attnlab.models import build_for
from attnlab.problems.addition import Addition
from attnlab.problems.addition.draws import carrying_sums
from attnlab.problems.addition.key_sets import addition_sets
from attnlab.problems.addition.lengths import AdditionLengths, check_length, lengths_run, measure_length
from attnlab.problems.addition.operands import codes, spelt
from attnlab.problems.addition.task import END, PAD, PLUS, START, verifiable
from attnlab.problems.addition.words import CARRYING, Carrying
from attnlab.runs import create_run, save_weights
from attnlab.sets import Examples
from attnlab.specs import Coupled, Seq2SeqModel, Spec, from_json, spec_hash, to_json

SMALL = Addition(digits=5, shortest=1, order="least", sampling="balanced", train=211, valid=53, test=59)


def varying(order: str = "least") -> Addition:
    return Addition(
        digits=7,
        shortest=2,
        order="least" if order == "least" else "most",
        train=1,
        valid=1,
        test=1,
    )


@settings(max_examples=40)
@given(st.sampled_from(["least", "most"]), st.integers(0, 10**200 - 1), st.integers(0, 10**200 - 1))
def test_numbers_of_any_length_are_added_as_python_does(order: str, a: int, b: int) -> None:
    task = varying(order)
    example = task.parse(f"{a}+{b}")
    shown = task.show(example)
    assert shown.name == f"{a}+{b}"
    assert shown.truth == task.answer(example.targets[0]) == str(a + b)
    n = max(len(str(a)), len(str(b)))
    assert example.inputs[0].shape == (1, 2 * n + 1)
    assert example.targets.shape == (1, n + 2)
    digits = [int(digit) for digit in str(a).zfill(n)]
    assert example.inputs[0][0, :n].tolist() == (digits[::-1] if order == "least" else digits)


@pytest.mark.parametrize("order", ["least", "most"])
def test_shorter_sums_are_filled_up(order: str) -> None:
    task = varying(order)
    operands, lengths = torch.tensor([[[3, 0, 0], [9, 0, 0]], [[9, 9, 1], [1, 0, 0]]]), torch.tensor([1, 3])
    examples = task.examples(operands, lengths)
    source, fed = examples.inputs
    assert source[0].tolist() == [3, PLUS, 9, PAD, PAD, PAD, PAD]
    least, most = [2, 1, END, END, END], [1, 2, END, END, END]
    assert examples.targets[0].tolist() == (least if order == "least" else most)
    assert fed[0].tolist() == [START, *examples.targets[0, :-1].tolist()]
    back, places = task.read_back(source)
    assert torch.equal(back, operands)
    assert torch.equal(places, lengths)
    assert [shown.truth for shown in task.show_all(examples)] == ["12", "200"]


def test_of_one_length_tokens_are_those_of_numbers() -> None:
    pairs = torch.tensor([[374, 814], [0, 7]])
    one = Addition(digits=3, train=1, valid=1, test=1)
    same = one.examples(torch.tensor([[[4, 7, 3], [4, 1, 8]], [[0, 0, 0], [7, 0, 0]]]))
    assert torch.equal(one.source(pairs), same.inputs[0])
    assert torch.equal(one.target(pairs), same.targets)


def test_what_cannot_be_read() -> None:
    with pytest.raises(InputError, match="has 201 digits; an operand may have up to 200"):
        varying().parse(f"1+{'7' * 201}")
    with pytest.raises(InputError, match="an operand of 201 digits is outside 1 to 200"):
        check_length(201)
    with pytest.raises(LabError, match="verify decodes sums of one length, and lengths vary here"):
        verifiable(varying())
    with pytest.raises(SpecError, match=r"task\.operands is 'reference', but it must be full"):
        Addition(digits=13, operands="reference")


def test_a_spec_without_lengths_is_what_it_was() -> None:
    assert "shortest" not in to_json(Addition())
    assert Addition().tokens is None
    assert from_json(Addition, to_json(SMALL)) == SMALL
    assert spec_hash(Spec(task=SMALL)) != spec_hash(Spec(task=Addition(digits=5)))
    assert "lengths" not in Addition().analyses()


def numbers(examples: Examples) -> list[tuple[int, int]]:
    operands, _ = SMALL.read_back(examples.inputs[0])
    return [tuple(sorted((int(spelt(a)), int(spelt(b))))) for a, b in operands.tolist()]  # type: ignore[misc]


def test_splits_are_disjoint_and_every_epoch_is_drawn_anew() -> None:
    splits = SMALL.splits(3)
    test, valid = numbers(splits.test), numbers(splits.valid)
    assert (len(set(test)), len(set(valid))) == (59, 53)
    assert not set(test) & set(valid)
    assert splits.resample is not None
    for epoch in (0, 1, 2):
        train = numbers(splits.resample(epoch))
        assert len(train) == 211
        assert not set(train) & {*test, *valid}
    assert torch.equal(splits.resample(0).inputs[0], splits.train.inputs[0])
    assert torch.equal(splits.resample(2).inputs[0], SMALL.splits(3).resample(2).inputs[0])  # type: ignore[misc]
    assert not torch.equal(splits.resample(1).inputs[0], splits.train.inputs[0])
    assert not torch.equal(SMALL.splits(4).test.inputs[0], splits.test.inputs[0])


def test_lengths_are_as_likely_but_short_sums_are_left_for_training() -> None:
    task = Addition(digits=5, shortest=1, train=5003, valid=499, test=499)
    splits = task.splits(0)
    _, lengths = task.read_back(splits.train.inputs[0])
    counts = torch.bincount(lengths, minlength=6)
    assert (counts[2:] > 800).all()
    assert counts[1] > 700
    held = [int((task.read_back(each.inputs[0])[1] == 1).sum()) for each in (splits.test, splits.valid)]
    assert all(0 < count <= 5 for count in held)  # of 55 pairs


@pytest.mark.parametrize("length", [1, 2, 50, 200])
def test_every_column_of_a_full_carry_sends_one(length: int) -> None:
    examples = carrying_sums(SMALL, 31, length, "full-carry", seed=5)
    operands, lengths = SMALL.read_back(examples.inputs[0])
    assert (lengths == length).all()
    assert SMALL.carries(operands).all()
    assert (SMALL.chains(operands) == length).all()
    names = [shown.name for shown in SMALL.show_all(examples)]
    assert names[0] == f"{'9' * length}+1"
    assert names[3] == f"1+{'9' * length}"
    assert torch.equal(examples.targets, carrying_sums(SMALL, 31, length, "full-carry", seed=5).targets)


def test_uniform_sums_are_uniform() -> None:
    operands, _ = SMALL.read_back(carrying_sums(SMALL, 499, 97, "uniform", seed=5).inputs[0])
    share = torch.bincount(operands.flatten(), minlength=10) / operands.numel()
    assert (share - 0.1).abs().max() < 0.005


def test_a_pair_has_one_code_in_either_order_and_with_leading_zeros() -> None:
    operands = torch.randint(0, 10, (211, 2, 7))
    longer = torch.nn.functional.pad(operands, (0, 4))
    assert torch.equal(codes(operands), codes(operands.flip(1)))
    assert len(set(codes(operands).tolist())) == 211
    assert torch.equal(codes(longer[:, :, :7]), codes(operands))


class Adder(Model):
    """Adds rightly, but says ``wrong`` in place of the digit of one column."""

    def __init__(self, task: Addition, column: int | None = None) -> None:
        super().__init__()
        self.task, self.column = task, column
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def answer(self, source: Tensor, *, start: int | None = None, length: int = 1) -> Tensor:
        said = self.task.target(*self.task.read_back(source))
        if self.column is not None and self.column < length - 2:
            said[:, self.column] = (said[:, self.column] + 1) % 10
        return said[:, :length]


@pytest.mark.parametrize("sums", CARRYING)
def test_what_is_measured_of_a_length(sums: Carrying) -> None:
    right = measure_length(SMALL, Adder(SMALL), 19, sums, 31, seed=2)
    assert (right.exact_match, right.digits, right.ended, right.examples) == (1, 1, 1, 31)
    wrong = measure_length(SMALL, Adder(SMALL, column=3), 19, sums, 31, seed=2)
    assert (wrong.exact_match, wrong.ended) == (0, 1)
    assert wrong.digits == pytest.approx(19 / 20)


MODEL = Seq2SeqModel(
    width=8,
    heads=2,
    hidden=5,
    encoder_layers=1,
    decoder_layers=1,
    positions=Coupled(inner="rotary", window=1),
)


def test_lengths_of_a_run_are_kept_and_merged(tmp_path: Path) -> None:
    spec = Spec(task=SMALL, model=MODEL)
    run = create_run(tmp_path / "run", spec)
    save_weights(run, "best", build_for(spec).state_dict())
    first = lengths_run(SMALL, run, lengths="3,11", examples=5)
    assert [(row.sums, row.length) for row in first.rows] == [
        ("uniform", 3), ("uniform", 11), ("full-carry", 3), ("full-carry", 11),
    ]  # fmt: skip
    lengths_run(SMALL, run, lengths="7", sums="uniform", examples=5)
    kept = run.kept("lengths", AdditionLengths)
    assert kept is not None
    assert [row.length for row in kept.rows] == [3, 7, 11, 3, 11]
    assert kept.trained == (1, 5)
    with pytest.raises(InputError, match=r"sums is .unifrom., which is unknown; did you mean"):
        lengths_run(SMALL, run, sums="unifrom")
    with pytest.raises(InputError, match="examples is 0; it must be at least 1"):
        lengths_run(SMALL, run, examples=0)


def test_sets_of_keys_go_by_each_sums_own_length() -> None:
    task = varying("least")
    operands, lengths = torch.tensor([[[3, 0, 0], [9, 0, 0]], [[9, 9, 1], [1, 0, 0]]]), torch.tensor([1, 3])
    sets = addition_sets(task, operands, lengths)
    cross = sets["decoder", "cross"]
    assert cross["column"][0].nonzero().tolist() == [[0, 0], [0, 2]]
    assert cross["column"][1].nonzero().tolist() == [[0, 0], [0, 4], [1, 1], [1, 5], [2, 2], [2, 6]]
    assert cross["operator"][:, 0].tolist() == [[c == 1 for c in range(7)], [c == 3 for c in range(7)]]
    assert cross["carry"][0].nonzero().tolist() == [[1, 0], [1, 2]]
