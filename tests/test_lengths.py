"""Accuracy by length, constant predictors, and which neighbours decided: on models with known answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.analysis.analyses import analyse_run
from attnlab.analysis.evaluate import evaluate
from attnlab.analysis.lengths import read_lengths
from attnlab.analysis.predict import predict
from attnlab.errors import InputError, LabError, RunError
from attnlab.model import Model
from attnlab.models import Classifier, build_model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.evaluate import MOST, SortingEvaluation, deciding_neighbours, exchanged
from attnlab.problems.sorting.figures import draw_lengths, lengths_data
from attnlab.problems.sorting.lengths import (
    LengthRow,
    Lengths,
    Trained,
    check_reach,
    constant_sentences,
    lengths_run,
    measure_length,
)
from attnlab.problems.sorting.lists import check_length
from attnlab.problems.sorting.words import LENGTHS
from attnlab.runs import RunFolder, create_run, open_run, save_weights
from attnlab.specs import Randomised, Spec, TokensModel
from oracles import constant_predictor, pooling_oracle, scoring_oracle

TASK = Sorting()
SMALL = TokensModel(width=8, heads=2, layers=1, hidden=5)


def untrained(folder: Path, model: TokensModel = SMALL) -> RunFolder:
    run = create_run(folder / "run", Spec(task=Sorting(valid=50, test=60), model=model))
    save_weights(run, "best", build_model(model, vocabulary=2, tokens=Sorting.tokens).state_dict())
    return run


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("8", [8]),
        ("16, 8,8", [8, 16]),
        ("8,12,16,32,...,256", [8, 12, 16, 32, 64, 128, 256]),
        ("8,16,...,100", [8, 16, 32, 64, 100]),
        ("4,7,...,14", [4, 7, 10, 13, 14]),
        ("2,4,...,16,20,24,...,32", [2, 4, 8, 16, 20, 24, 28, 32]),
        ("8,12,16,32,...,4096", [8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]),
    ],
)
def test_lengths_are_read(text: str, lengths: list[int]) -> None:
    assert read_lengths(text, check_length, LENGTHS) == lengths


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "lengths is ''; write whole numbers such as 8,12,16,32,...,4096"),
        ("8;9", "lengths is '8;9'; write whole numbers such as 8,12,16,32,...,4096"),
        ("-8", "lengths is '-8'; write whole numbers such as 8,12,16,32,...,4096"),
        ("8,...,32", "lengths is '8,...,32'; dots need two numbers before and one behind them"),
        ("8,16,...", "lengths is '8,16,...'; dots need two numbers before and one behind them"),
        ("16,8,...,32", "lengths goes on after 16,8; before dots they must rise"),
        ("1,2", "a list of length 1 is outside 2 to 16,384, the lengths of this task"),
        ("0,8,...,32", "a list of length 0 is outside 2 to 16,384, the lengths of this task"),
        ("8,20000", "a list of length 20,000 is outside 2 to 16,384, the lengths of this task"),
    ],
)
def test_lengths_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_lengths(text, check_length, LENGTHS)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("oracle", [scoring_oracle, pooling_oracle])
@pytest.mark.parametrize("negatives", ["swap", "reference", "shuffle", "swap=0.5,shuffle=0.5"])
def test_who_is_always_right_is_right_at_every_length(oracle: Any, negatives: str) -> None:
    for length, examples in ((2, 101), (257, 101), (16_384, 4)):
        found = measure_length(TASK, oracle(), length, negatives, examples)
        assert (found.length, found.examples, found.accuracy) == (length, examples, 1.0)
        assert found.balanced_accuracy == 1
        assert found.right_of == {"unsorted": 1.0, "sorted": 1.0}
        assert found.answers["sorted"] == examples // 2 / examples
        assert found.constant is None


@pytest.mark.parametrize("answer", [0, 1])
def test_a_constant_predictor_is_told(answer: int) -> None:
    name = ("unsorted", "sorted")[answer]
    rows = [
        measure_length(TASK, constant_predictor(answer), length, way, 100)
        for way in ("swap", "shuffle")
        for length in (8, 1024)
    ]
    for row in rows:
        assert row.accuracy == row.balanced_accuracy == 0.5
        assert row.accuracy_interval[0] < 0.5 < row.accuracy_interval[1]
        assert row.constant == name
        assert row.answers[name] == 1
    assert constant_sentences(rows) == [
        f"{way}: at length 8, 1,024 the model is a constant predictor: it says '{name}' to all lists, "
        "so its accuracy is the share of such lists and no skill"
        for way in ("swap", "shuffle")
    ]


def test_the_same_lists_for_everybody_whatever_fits_at_once() -> None:
    def drawn(seed: int, length: int, negatives: str, most: int = 6) -> list[list[int]]:
        parts = TASK.draws(20, length, negatives, seed=seed, most=most)
        return [row for part in parts for row in part.inputs[0].tolist()]

    assert drawn(0, 9, "swap") == drawn(0, 9, "swap")
    assert len({str(drawn(*each)) for each in ((0, 9, "swap"), (1, 9, "swap"), (0, 9, "shuffle"))}) == 3
    assert [len(part) for part in TASK.draws(20, 9, "swap", seed=0, most=6)] == [6, 6, 6, 2]


def test_nearly_always_the_same_answer_is_constant_too() -> None:
    row = replace(measure_length(TASK, constant_predictor(1), 64, "swap", 2), answers={"sorted": 0.995})
    (sentence,) = constant_sentences([row, replace(row, length=32, constant=None)])
    assert (
        "at length 64 the model is a constant predictor: it says 'sorted' to at least 99.50% of" in sentence
    )


def test_a_run_is_measured_and_keeps_what_was_found(tmp_path: Path) -> None:
    run = untrained(tmp_path)
    told: list[tuple[int, int]] = []
    found = lengths_run(
        run, lengths="8,20", negatives=["swap"], examples=30, progress=lambda *each: told.append(each)
    )
    assert told == [(8, 28), (28, 28)]
    assert [row.length for row in found.rows] == [8, 20]
    assert found.trained == Trained(8, 16, "reference")
    analyse_run(run, "lengths")
    assert run.kept("lengths", Lengths) == found


def test_other_lengths_and_ways_stay(tmp_path: Path) -> None:
    run = untrained(tmp_path)
    lengths_run(run, lengths="8,20", negatives=["swap"], examples=30)
    lengths_run(run, lengths="9", negatives=["shuffle"], examples=4)
    found = lengths_run(run, lengths="5,20", negatives=["swap"], examples=6, seed=3)
    assert [(row.length, row.examples) for row in found.rows] == [(5, 6), (20, 6)]
    kept = run.kept("lengths", Lengths)
    assert kept is not None
    cells = [(row.negatives, row.length, row.examples, row.seed) for row in kept.rows]
    assert cells == [("swap", 5, 6, 3), ("swap", 8, 30, 0), ("swap", 20, 6, 3), ("shuffle", 9, 4, 0)]
    assert kept.constant == constant_sentences(kept.rows)
    save_weights(run, "best", build_model(SMALL, vocabulary=2, tokens=Sorting.tokens).state_dict())
    lengths_run(run, lengths="3", negatives=["swap"], examples=2)
    kept = run.kept("lengths", Lengths)
    assert kept is not None
    assert len(kept.rows) == 1, "other weights, other measurements"


def test_what_cannot_be_measured(tmp_path: Path) -> None:
    run = untrained(tmp_path)
    with pytest.raises(InputError, match="examples is 1; it must be at least 2"):
        lengths_run(run, examples=1)
    with pytest.raises(LabError, match="unknown way 'swp'; did you mean 'swap'"):
        lengths_run(run, negatives=["swp"])
    with pytest.raises(RunError, match="does the task 'addition'; this needs a run that does 'sorting'"):
        lengths_run(open_run("zoo:adder"))


def test_positions_that_cannot_reach_a_length_say_so_first(tmp_path: Path) -> None:
    model = build_model(replace(SMALL, positions=Randomised(limit=31)), vocabulary=2, tokens=Sorting.tokens)
    check_reach(model, 31)
    with pytest.raises(LabError, match="31"):
        check_reach(model, 32)
    fronted = build_model(
        replace(SMALL, positions=Randomised(limit=31), pooling="cls"), vocabulary=2, tokens=Sorting.tokens
    )
    with pytest.raises(LabError, match="31"):
        check_reach(fronted, 31)
    run = untrained(tmp_path, replace(SMALL, positions=Randomised(limit=31)))
    with pytest.raises(LabError, match="31"):
        lengths_run(run, lengths="8,32", examples=2)
    assert run.analysis("lengths") is None


def test_evaluation_by_length_and_class() -> None:
    task = Sorting(low=3, high=6, test=101)
    found = evaluate(task, scoring_oracle(), task.splits(2).test)
    assert isinstance(found, SortingEvaluation)
    assert (found.exact_match, found.examples) == (1.0, 101)
    assert [row.length for row in found.by_length] == [3, 4, 5, 6]
    assert sum(row.examples for row in found.by_length) == 101
    never = evaluate(task, constant_predictor(0), task.splits(2).valid, split="valid")
    assert isinstance(never, SortingEvaluation)
    assert never.exact_match == 0.5
    assert never.right_of == {"unsorted": 1.0, "sorted": 0.0}
    assert never.answers == {"unsorted": 1.0, "sorted": 0.0}


def predicted(model: Model, lists: list[str]) -> list[Any]:
    return list(predict(TASK, model, [TASK.parse(each) for each in lists]))


@pytest.mark.parametrize("oracle", [scoring_oracle, pooling_oracle])
def test_predictions_name_the_neighbours_that_decided(oracle: Any) -> None:
    first, second, third = predicted(oracle(), ["3 5 5 9 8", "50 2 3 4", "1,2 2 3"])
    assert (first.input, first.output, first.correct) == ("3 5 5 9 8", "unsorted", True)
    assert first.probability > 0.7
    assert first.neighbours.places == [4, 5]
    assert first.neighbours.numbers == [9, 8]
    assert first.neighbours.against
    assert second.neighbours.places == [1, 2]
    assert (third.output, third.truth) == ("sorted", "sorted")
    if oracle is scoring_oracle:
        assert third.neighbours.numbers == [2, 2]
        assert not third.neighbours.against
    else:
        assert third.neighbours is None


def test_a_wrong_answer_is_called_wrong() -> None:
    (answer,) = predicted(constant_predictor(1), ["2 1"])
    assert (answer.output, answer.truth, answer.correct) == ("sorted", "unsorted", False)


def test_long_lists_are_asked_by_scores_only() -> None:
    numbers = torch.full((16_384,), 7)
    numbers[9000] = 3
    found = deciding_neighbours(scoring_oracle(), numbers, against=True)
    assert found is not None
    assert found.places == [9000, 9001]
    assert deciding_neighbours(pooling_oracle(), numbers, against=True) is None
    edge = torch.arange(MOST) % 100
    assert deciding_neighbours(pooling_oracle(), edge, against=True) is not None


def test_scores_are_those_of_the_numbers_behind_the_front() -> None:
    torch.manual_seed(0)
    spec = TokensModel(width=8, heads=2, layers=1, hidden=5, pooling="lowest")
    model = build_model(spec, vocabulary=2, tokens=Sorting.tokens).eval()
    assert isinstance(model, Classifier)
    found = deciding_neighbours(model, torch.tensor([4, 3]), against=True)
    assert found is not None
    assert found.places == [1, 2]


def test_every_pair_is_exchanged_once() -> None:
    assert exchanged(torch.tensor([1, 2, 3, 4])).tolist() == [[2, 1, 3, 4], [1, 3, 2, 4], [1, 2, 4, 3]]


def test_the_curve_by_value() -> None:
    rows = [
        LengthRow(
            way,
            0,
            length,
            10,
            share,
            (share - 0.1, share),
            {},
            share,
            {},
            "sorted" if share == 0.5 else None,
        )
        for way, length, share in (("swap", 8, 1.0), ("swap", 32, 0.5), ("shuffle", 8, 0.75))
    ]
    data = lengths_data(Lengths(run="r", trained=Trained(8, 16, "swap"), rows=rows, constant=[]))
    assert data["trained"] == [8, 16]
    assert data["curves"] == [
        {
            "negatives": "swap",
            "length": [8, 32],
            "percent": [100.0, 50.0],
            "interval": [[90.0, 100.0], [40.0, 50.0]],
            "constant": [None, "sorted"],
        },
        {
            "negatives": "shuffle",
            "length": [8],
            "percent": [75.0],
            "interval": [[65.0, 75.0]],
            "constant": [None],
        },
    ]
    drawn = draw_lengths(data)
    (axes,) = drawn.axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["swap", "shuffle"]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [np.asarray(line.get_xydata()).tolist() for line in hollow] == [[[32.0, 50.0]], []]
