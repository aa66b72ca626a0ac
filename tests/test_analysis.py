from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.analysis.evaluate import evaluate
from attnlab.analysis.patterns import look_at
from attnlab.analysis.predict import answer, answer_all, predict, predict_lines, probability
from attnlab.analysis.statistics import proportion_interval
from attnlab.analysis.subjects import BATCH
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions, build_model, heads
from attnlab.problems.addition import Addition
from attnlab.problems.addition.evaluate import AdditionEvaluation, every_pair, verify
from attnlab.problems.sorting import Sorting
from attnlab.specs import Seq2SeqModel, TokensModel

SMALL = Seq2SeqModel(width=12, heads=3, hidden=17, encoder_layers=1, decoder_layers=2)


def untrained(task: Addition) -> Seq2Seq:
    return build_model(SMALL, vocabulary=task.vocabulary).eval()


def oracle(task: Addition, model: Seq2Seq, faults: dict[tuple[int, int], int]) -> Callable[..., Tensor]:
    """A ``greedy`` that adds rightly, but for the given sums."""

    def greedy(source: Tensor, *, start: int, length: int) -> Tensor:
        assert (start, length) == (task.start, task.target_length)
        power = 10 ** torch.arange(task.digits)
        if task.order == "most":
            power = power.flip(0)
        pairs = torch.stack(
            ((source[:, : task.digits] * power).sum(1), (source[:, task.digits + 1 :] * power).sum(1)),
            dim=1,
        )
        answers = pairs.clone()
        for row, (a, b) in enumerate(pairs.tolist()):
            if (a, b) in faults:
                answers[row] = torch.tensor([faults[a, b], 0])
        return task.target(answers)

    return greedy


@pytest.fixture(params=["most", "least"])
def task(request: pytest.FixtureRequest) -> Addition:
    return Addition(digits=2, order=request.param, train=1000, valid=100, test=700)


FAULTS = {(99, 1): 0, (3, 4): 8, (50, 49): 98}


@pytest.fixture
def faulty(task: Addition, monkeypatch: pytest.MonkeyPatch) -> Seq2Seq:
    model = untrained(task)
    monkeypatch.setattr(model, "greedy", oracle(task, model, FAULTS))
    monkeypatch.setattr(model, "answer_surely", partial(Model.answer_surely, model))
    return model


def test_verify_finds_exactly_the_planted_faults(task: Addition, faulty: Seq2Seq) -> None:
    told: list[tuple[int, int]] = []
    found, every_wrong = verify(
        task, faulty, seed=1, progress=lambda done, total: told.append((done, total))
    )
    assert {tuple(pair) for pair in every_wrong.tolist()} == FAULTS.keys()
    assert (found.correct, found.total) == (9_997, 10_000)
    wrong = {(row.a, row.b): row.answer for row in found.wrong}
    assert wrong == {pair: str(answer) for pair, answer in FAULTS.items()}
    by_chain = {row.chain: row for row in found.by_chain}
    assert by_chain[2].exact_match == 1 - 1 / by_chain[2].examples  # 99 + 1 carries twice
    assert by_chain[1].exact_match == 1
    assert told[-1] == (10_000, 10_000)
    assert len(told) == -(-10_000 // BATCH)


def test_seen_pairs_are_those_of_training_in_either_order(task: Addition) -> None:
    train, valid, test = task.split_pairs(1)
    pairs = every_pair(task)
    learned = task.among(pairs, train)
    equal = int((train[:, 0] == train[:, 1]).sum())
    assert int(learned.sum()) == 2 * len(train) - equal
    assert task.among(train, train).all()
    assert task.among(train.flip(1), train).all()
    assert not task.among(torch.cat((valid, test)), train).any()


def test_every_pair_is_there_once(task: Addition) -> None:
    pairs = every_pair(task)
    assert len(set(map(tuple, pairs.tolist()))) == len(pairs) == 10_000


def test_verify_refuses_more_pairs_than_anybody_can_wait_for() -> None:
    task = Addition(digits=4)
    with pytest.raises(LabError, match=r"operands of 4 digits have 10\^8; the limit is 3 digits"):
        verify(task, untrained(task), seed=0)


def test_evaluate_counts_by_stratum(task: Addition, faulty: Seq2Seq) -> None:
    pairs = torch.tensor([[99, 1], [3, 4], [20, 30], [50, 49], [5, 5]])
    found = evaluate(task, faulty, task.examples(pairs))
    assert isinstance(found, AdditionEvaluation)
    assert found.exact_match == pytest.approx(2 / 5)
    rows = [(row.chain, row.examples, row.exact_match) for row in found.by_chain]
    assert rows == [(0, 3, pytest.approx(1 / 3)), (1, 1, 1.0), (2, 1, 0.0)]
    columns = {row.column: row.accuracy for row in found.by_column}
    # 99+1: 000 for 100; 3+4: 008 for 007; 50+49: 098 for 099
    assert columns == {"10^0": pytest.approx(3 / 5), "10^1": 1.0, "10^2": pytest.approx(4 / 5), "end": 1.0}
    assert found.token_accuracy == pytest.approx(17 / 20)


def test_evaluate_measures_teacher_forcing_by_the_model_itself(task: Addition) -> None:
    model = untrained(task)
    examples = task.examples(task.split_pairs(3)[1])
    found = evaluate(task, model, examples, split="valid")
    logits = model(*examples.inputs)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), examples.targets.flatten())
    assert found.teacher_forced.loss == pytest.approx(expected.item(), rel=1e-5)
    assert (found.split, found.examples) == ("valid", 100)
    assert found.exact_match == found.teacher_forced.exact_match


def test_predict_tells_answer_probability_and_truth(task: Addition, faulty: Seq2Seq) -> None:
    right, wrong = predict(task, faulty, [task.parse("7 + 8"), task.parse("99+1")])
    assert (right.input, right.output, right.correct) == ("7+8", "15", True)
    assert (wrong.input, wrong.output, wrong.correct) == ("99+1", "0", False)


def test_an_answer_is_as_probable_as_its_steps_together() -> None:
    task = Addition(digits=1, train=1, valid=1, test=1)
    model = untrained(task)
    (found,) = predict(task, model, [task.parse("3+9")])
    source = task.source(torch.tensor([[3, 9]]))
    emitted, product = [task.start], 1.0
    for _ in range(task.target_length):
        probabilities = model(source, torch.tensor([emitted]))[0, -1].softmax(dim=-1)
        emitted.append(int(probabilities.argmax()))
        product *= probabilities.max().item()
    assert found.probability == pytest.approx(product, rel=1e-5)


def test_lines_are_read_a_few_batches_ahead_of_the_answers(task: Addition, faulty: Seq2Seq) -> None:
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield f"{taken % 10}+1"

    answers = predict_lines(task, faulty, lines(), task.parse)
    for number in (1, 2, 3):
        assert next(answers).input == f"{number}+1"
    assert taken <= (torch.get_num_threads() + 2) * BATCH


SIZES: dict[str, Any] = {"width": 6, "heads": 3, "hidden": 5}


@pytest.mark.parametrize("spec", [Seq2SeqModel(**SIZES), TokensModel(**SIZES)])
def test_an_answer_and_how_sure_it_is_come_in_one_pass(spec: Seq2SeqModel | TokensModel) -> None:
    """As the answer alone, and then the probability of it given the true inputs."""
    task = Addition(digits=1) if isinstance(spec, Seq2SeqModel) else Sorting()
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=task.vocabulary, tokens=task.tokens).eval()
    examples = task.splits(0).valid[slice(0, 17)]
    said, sure = model.answer_surely(examples.inputs[0], start=task.start, length=task.target_length)
    assert torch.equal(said, answer(task, model, examples))
    torch.testing.assert_close(sure, probability(task, model, examples, said))
    if task.start is not None:
        plain = Model.answer_surely(model, examples.inputs[0], start=task.start, length=task.target_length)
        assert torch.equal(plain[0], said)
        torch.testing.assert_close(plain[1], sure)


def test_inputs_of_several_lengths_are_answered_in_their_order() -> None:
    """Together they are answered as each is alone, and those of one length in one pass."""
    task = Sorting(low=3, high=5, train=10, valid=5, test=7)
    torch.manual_seed(0)
    model = build_model(TokensModel(width=6, heads=3, hidden=5), vocabulary=2, tokens=Sorting.tokens).eval()
    lists = [" ".join(str((7 * n + k * k) % 100) for k in range(2 + n % 3)) for n in range(BATCH + 7)]
    asked: list[int] = []
    tall = model.register_forward_pre_hook(lambda _, inputs: asked.append(len(inputs[0])))
    found = list(predict(task, model, [task.parse(each) for each in lists]))
    tall.remove()
    assert max(asked) > BATCH // 4
    assert [each.input for each in found] == lists
    for place in (0, 1, 2, BATCH - 1, BATCH, BATCH + 6):
        (alone,) = predict(task, model, [task.parse(lists[place])])
        assert (alone.output, alone.correct) == (found[place].output, found[place].correct)
        assert alone.probability == pytest.approx(found[place].probability, rel=1e-5)


def test_decoding_in_batches_is_decoding_at_once(task: Addition) -> None:
    model = untrained(task)
    pairs = every_pair(task)[::7]
    assert len(pairs) > 2 * BATCH
    whole = model.greedy(task.source(pairs), start=task.start, length=task.target_length)
    assert torch.equal(answer_all(task, model, task.examples(pairs)), whole)


def test_patterns_cover_every_head_and_carry_its_labels(task: Addition) -> None:
    model = untrained(task)
    found = look_at(task, model, task.parse("37+8")).patterns
    assert [each.attention for each in found] == list(attentions(model))
    assert sum(len(each.pattern) for each in found) == len(heads(model)) == 15
    digits = ["3", "7", "+", "0", "8"] if task.order == "most" else ["7", "3", "+", "8", "0"]
    for each in found:
        assert each.pattern.shape == (3, len(each.queries), len(each.keys))
        torch.testing.assert_close(each.pattern.sum(-1), torch.ones(3, len(each.queries)))
        if each.attention.endswith("cross") or each.attention.startswith("encoder"):
            assert each.keys == digits
        else:
            assert each.keys == each.queries
            assert each.keys[0] == "⊢"
            assert each.pattern.triu(1).abs().max() == 0


def test_wilson_interval_by_hand() -> None:
    """z = 1.96, 8 of 10: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)."""
    low, high = proportion_interval(8, 10)
    assert low == pytest.approx(0.4902, abs=1e-3)
    assert high == pytest.approx(0.9433, abs=1e-3)
    assert proportion_interval(0, 0) == (0.0, 1.0)
    assert proportion_interval(10, 10)[1] == 1.0
