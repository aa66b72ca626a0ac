"""Tasks made of a function: what follows from it, and what is refused before any training."""

import random
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
import torch

from attnlab import Task, registry, task
from attnlab.analysis.evaluate import evaluate
from attnlab.analysis.heads import measure_heads
from attnlab.analysis.predict import answer, probability
from attnlab.analysis.subjects import subject_of
from attnlab.defaults import default_spec
from attnlab.drawn import DrawnTask
from attnlab.errors import InputError, SpecError
from attnlab.models import Seq2Seq, build_for
from attnlab.sets import Examples
from attnlab.specs import Seq2SeqModel, Spec, TokensModel, from_json, spec_hash, to_json

DIGITS = "0123456789"


@task(symbols=DIGITS, answer="sequence")
def rotate(rng: Random, length: int = 5, shorter: bool = False) -> tuple[str, str]:
    """Moving the first digit to the end."""
    count = rng.randint(2, length) if shorter else length
    row = "".join(rng.choice(DIGITS) for _ in range(count))
    return row, row[1:] + row[0]


@task(symbols=["red", "blue"], classes=["few", "many"])
def reds(rng: Random, length: int = 7) -> tuple[list[str], str]:
    """Whether more than half are red."""
    row = [rng.choice(["red", "blue"]) for _ in range(rng.randint(1, length))]
    return row, "many" if row.count("red") > len(row) / 2 else "few"


OWN = {each.kind: registry._tasks.pop(each.kind) for each in (rotate, reds)}  # other tests know them not


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks, **OWN})
    monkeypatch.setattr(registry, "_sources", dict(registry._sources))


def test_a_function_is_a_task_with_its_parameters_as_fields() -> None:
    assert issubclass(rotate, Task)
    assert (rotate.kind, rotate.__doc__) == ("rotate", "Moving the first digit to the end.")
    made = rotate(length=7, train=50)  # type: ignore[call-arg]
    assert (made.vocabulary, made.target_length, made.input_length) == (12, 8, 7)
    assert to_json(made) == {
        "kind": "rotate",
        **{"train": 50, "valid": 2000, "test": 2000, "length": 7, "shorter": False},
    }
    assert registry.find_task("rotate") is rotate


def test_splits_share_no_input_and_are_a_function_of_the_seed() -> None:
    made = rotate(train=101, valid=23, test=31)
    splits, again, other = made.splits(3), made.splits(3), made.splits(4)
    rows = [
        tuple(row) for part in (splits.train, splits.valid, splits.test) for row in part.inputs[0].tolist()
    ]
    assert len(rows) == len(set(rows)) == 101 + 23 + 31
    assert torch.equal(splits.train.targets, again.train.targets)
    assert not torch.equal(splits.train.targets, other.train.targets)


def test_inputs_that_are_drawn_often_are_in_all_splits() -> None:
    made = reds(length=11, train=1000, valid=100, test=100)  # type: ignore[call-arg]
    splits = made.splits(0)
    short = [
        int((splits[name].inputs[0] != 2).sum(dim=1).lt(6).sum()) for name in ("train", "valid", "test")
    ]
    assert sum(short) == 2 + 4 + 8 + 16 + 32
    assert short[0] > short[1] + short[2] > 0


def test_a_sequence_is_fed_shifted_and_ends() -> None:
    example = rotate().splits(0).test[slice(0, 1)]
    source, fed = example.inputs
    end, start = 10, 11
    (row,) = source.tolist()
    assert example.targets.tolist() == [[*row[1:], row[0], end]]
    assert fed.tolist() == [[start, *row[1:], row[0]]]
    assert rotate().places() == ["1", "2", "3", "4", "5", "end"]


def test_shorter_inputs_are_filled_up() -> None:
    examples = rotate(shorter=True, train=300, valid=9, test=9).splits(0).train  # type: ignore[call-arg]
    lengths = examples.inputs[0].ne(10).sum(dim=1)
    assert set(lengths.tolist()) == {2, 3, 4, 5}
    assert (examples.targets == 10).sum(dim=1).tolist() == (6 - lengths).tolist()


def test_few_inputs_are_shared_out_in_proportion() -> None:
    splits = reds(length=3, train=80, valid=10, test=10).splits(0)  # type: ignore[call-arg]
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [12, 1, 1]


def test_texts_are_read_and_shown() -> None:
    example = rotate(train=50).parse("31415")
    assert rotate().show(example).labels == list("31415")
    assert rotate().answer(torch.tensor([3, 1, 4, 10, 10, 10])) == "314"
    words = reds().parse("red blue red")
    assert example.inputs[0].tolist() == [[3, 1, 4, 1, 5]]
    assert words.inputs[0].tolist() == [[0, 1, 0]]
    assert reds().show(words).name == "red blue red"
    assert reds().show(words).truth in ("many", None)
    assert reds().answer(torch.tensor([0])) == "few"


def test_the_truth_is_known_of_what_was_drawn_only() -> None:
    drawn = rotate(train=20, valid=2, test=2)
    known = drawn.show(drawn.splits(0).test[slice(0, 1)])
    assert drawn.show(drawn.parse(known.name)).truth == known.truth == known.name[1:] + known.name[0]
    unknown = [text for text in ("00000", "12345", "99999") if drawn.show(drawn.parse(text)).truth is None]
    assert unknown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("12a45", "'a' is not one of the symbols 0 1 2 3 4 5 6 7 8 9"),
        ("", "the input has 0 symbols; this task has inputs of 1 to 5"),
        ("123456", "the input has 6 symbols; this task has inputs of 1 to 5"),
    ],
)
def test_texts_that_are_no_input(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=f"^{complaint}$"):
        rotate().parse(text)


def counting(rng: Random) -> tuple[str, str]:
    return str(rng.randint(0, 9)) * 3, "1"


def short(rng: Random) -> tuple[str, str]:
    return "".join(rng.choice(DIGITS) for _ in range(4)), "1"


BROKEN: dict[str, tuple[Callable[..., object], str]] = {
    "another symbol": (lambda rng: ("12x", "1"), "drew an input with 'x', which is not one of its symbols"),
    "answer": (lambda rng: ("12", "y"), "drew an answer with 'y', which is not one of its symbols"),
    "no input": (lambda rng: ("", "1"), "drew an input without any symbol"),
    "no pair": (lambda rng: "12", "returned '12'; it must return an input and its answer"),
    "chance": (lambda rng: (random.choice(DIGITS) * 2, "1"), "uses randomness other than its rng"),
    "raises": (lambda rng: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "few": (lambda rng: ("12", "1"), "has 1 different inputs; it needs at least 10"),
    "contradiction": (
        lambda rng: ("1" * rng.randint(1, 20), rng.choice("12")),
        "an input must have one answer",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_functions_that_break_a_rule(name: str) -> None:
    draw, complaint = BROKEN[name]
    made = task(symbols=DIGITS, answer="sequence")(draw)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=complaint) as caught:
        made().splits(0)
    assert str(caught.value).startswith(f"{__file__}: ")


def test_a_class_that_is_none() -> None:
    made = task(symbols=DIGITS, classes=["a", "b"])(counting)
    with pytest.raises(SpecError, match=r"gave the class '1'; known: a, b$"):
        made().splits(0)


def test_rows_that_turn_out_longer_say_what_to_write() -> None:
    made = task(symbols=DIGITS, classes=["0", "1"])(short)()
    assert isinstance(made, DrawnTask)
    with pytest.raises(SpecError, match=r"say how long rows get: @task\(\.\.\., longest=10\)$"):
        made.examples([(tuple(DIGITS), ("1",))])
    assert task(symbols=DIGITS, classes=["0", "1"], longest=10)(short)().input_length == 10


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"symbols": "01"}, 'needs answer="sequence" or classes'),
        ({"symbols": "01", "answer": "sequence", "classes": ["a"]}, "one of the two"),
        ({"symbols": "0 0", "answer": "sequence"}, "different from each other"),
        ({"symbols": "", "answer": "sequence"}, "they must be at least 1"),
        ({"symbols": "01", "classes": ["a"]}, "classes are .* at least 2"),
        ({"symbols": "01", "classes": ["a b", "c"]}, "strings without spaces"),
    ],
)
def test_what_the_decorator_refuses(words: dict[str, object], complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        task(**words)  # type: ignore[arg-type]


def test_a_parameter_needs_a_type_and_a_default() -> None:
    def bare(rng: Random, length) -> tuple[str, str]:  # type: ignore[no-untyped-def]
        return "1", "1"

    with pytest.raises(SpecError, match="parameter 'length' needs a type"):
        task(symbols="1", answer="sequence")(bare)


def test_a_parameter_does_not_replace_a_part_of_the_task() -> None:
    def hidden(rng: Random, start: int = 3) -> tuple[str, str]:
        return "1", "1"

    with pytest.raises(SpecError, match="parameter 'start' is the name of something every task has"):
        task(symbols="1", answer="sequence")(hidden)


def test_inputs_that_repeat_are_counted_whatever_their_answer() -> None:
    made = task(symbols=DIGITS, answer="sequence")(lambda rng: (rng.choice(DIGITS) * 2, ()))
    splits = made(train=80, valid=10, test=10).splits(0)
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [8, 1, 1]


def test_a_small_request_is_no_small_task() -> None:
    splits = rotate(train=5, valid=1, test=1).splits(0)
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [5, 1, 1]


@pytest.mark.parametrize("made", [rotate(), reds()], ids=["sequence", "class"])
def test_the_default_is_a_spec_that_can_be_built(made: DrawnTask) -> None:
    spec = default_spec(made)
    assert from_json(Spec, to_json(spec)) == spec
    model = build_for(spec)
    examples = made.splits(0).test[slice(0, 5)]
    assert model(*examples.inputs).shape == (*examples.targets.shape, made.vocabulary)
    assert spec_hash(spec) != spec_hash(default_spec(replace(made, train=300)))


def test_padding_changes_no_answer() -> None:
    made = rotate(shorter=True)  # type: ignore[call-arg]
    spec = Spec(task=made, model=Seq2SeqModel(width=12, heads=3, hidden=7))
    torch.manual_seed(0)
    model = build_for(spec).double().eval()
    assert isinstance(model, Seq2Seq)
    source, fed = made.parse("314").inputs
    padded = torch.nn.functional.pad(source, (0, 4), value=made.padding)
    alone, behind = model(source, fed), model(padded, fed)
    assert torch.allclose(alone, behind, atol=1e-12)
    assert not torch.allclose(alone, model(torch.nn.functional.pad(source, (0, 4), value=0), fed))
    start, length = made.start, made.target_length
    assert start is not None
    assert torch.equal(
        model.greedy(padded, start=start, length=length),
        model.greedy(padded, start=start, length=length, cached=False),
    )


def test_evaluation_counts_by_class_and_place() -> None:
    made = reds(train=40, valid=10, test=60)
    model = build_for(Spec(task=made, model=TokensModel(width=12, heads=3, layers=1, hidden=7))).eval()
    test = made.splits(0).test
    found = evaluate(made, model, test)
    said = answer(made, model, test)[:, 0]
    assert found.exact_match == pytest.approx((said == test.targets).double().mean().item())
    assert sum(row.examples for row in found.by_stratum) == found.examples == len(test)
    assert {row.stratum for row in found.by_stratum} == {"few", "many"}
    assert found.exact_match == found.teacher_forced.exact_match
    sure = probability(made, model, test, said[:, None])
    assert torch.allclose(sure, model(*test.inputs).softmax(dim=1).amax(dim=1))


def test_padding_is_no_query_of_the_encoder() -> None:
    made = rotate(shorter=True, train=300, valid=9, test=9)  # type: ignore[call-arg]
    torch.manual_seed(0)
    model = build_for(Spec(task=made, model=Seq2SeqModel(width=12, heads=3, hidden=7))).double().eval()
    examples = made.splits(0).train[slice(0, 31)]
    source, fed = examples.inputs
    more = Examples((torch.nn.functional.pad(source, (0, 6), value=10), fed), examples.targets)
    plain, padded = (measure_heads(subject_of(made, model, each), {}) for each in (examples, more))
    for path, metrics in plain.items():
        for name in ("entropy", "sparsity"):
            assert torch.allclose(metrics[name].heads, padded[path][name].heads, atol=1e-9), (path, name)
            assert torch.equal(metrics[name].rows, padded[path][name].rows)
