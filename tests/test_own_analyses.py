"""What only one task can be asked: methods of its runs, found by name."""

import inspect
from pathlib import Path

import pytest

import attnlab as al
from attnlab.errors import AnalysisError, RunError
from attnlab.problems.addition.evaluate import Verification
from attnlab.problems.sorting.lengths import Lengths
from planted import ALIGN, planted_run


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> al.Run:
    return al.load(planted_run(tmp_path_factory.mktemp("own") / "planted"))


def test_a_run_says_what_its_task_offers() -> None:
    assert al.load("zoo:adder").analyses() == ["verify", "behaviour"]
    assert al.load("zoo:sorter").analyses() == ["lengths", "margins", "falls"]
    assert al.load("zoo:digit").analyses() == []
    assert {"lengths", "evaluate"} <= set(dir(al.load("zoo:sorter")))


def test_help_shows_the_options() -> None:
    lengths = al.load("zoo:sorter").lengths
    assert list(inspect.signature(lengths).parameters) == ["lengths", "negatives", "examples", "seed"]
    assert (lengths.__doc__ or "").startswith("Measure a run at each of the ``lengths``")
    assert list(inspect.signature(al.load("zoo:adder").verify).parameters) == []


def test_what_a_task_does_not_offer_is_no_attribute() -> None:
    run = al.load("zoo:adder")
    assert not hasattr(run, "lengths")
    with pytest.raises(AnalysisError, match="zoo:adder does the task 'addition', which has no 'lengths'"):
        run.lengths()
    with pytest.raises(AttributeError, match="which has no 'verfy'; did you mean 'verify'"):
        run.verfy()
    with pytest.raises(AttributeError, match="'Run' has no attribute '_verify'"):
        run._verify()


def test_a_damaged_run_can_still_be_listed(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{")
    run = al.Run(tmp_path)
    assert "evaluate" in dir(run)
    with pytest.raises(RunError, match="is damaged"):
        run.verify()


def test_verify_finds_what_is_planted(planted: al.Run) -> None:
    """The planted model is right where no column sends a carry, and without ALIGN about 0 + 0 alone."""
    found = planted.verify()
    assert isinstance(found, Verification)
    assert (found.correct, found.total) == (55 * 55, 10_000)
    assert planted.kept("verify", Verification) == found
    assert len(planted.file("analysis/verify-wrong.csv").read_text().splitlines()) == 10_000 - 55 * 55 + 1
    frame = found.frame()
    assert frame.chain.tolist() == [0, 1, 2]
    assert frame.exact_match.tolist() == [1, 0, 0]
    assert any("; the run folder keeps all of them" in part for part in found.tables() if type(part) is str)
    with planted.without(ALIGN):
        less = planted.verify()
    assert isinstance(less, Verification)
    assert less.correct == 1
    assert len(planted.file("analysis/verify-wrong.csv").read_text().splitlines()) == 10_000 - 55 * 55 + 1


def test_lengths_are_given_as_the_command_takes_them() -> None:
    run = al.load("zoo:sorter")
    found = run.lengths(lengths="9,11", negatives="swap,shuffle", examples=6)
    assert isinstance(found, Lengths)
    assert [(row.negatives, row.length) for row in found.rows] == [
        (way, length) for way in ("swap", "shuffle") for length in (9, 11)
    ]
    frame = found.frame()
    assert (frame.says_sorted + frame.says_unsorted == 1).all()
    mixed = run.lengths(lengths="9", negatives="swap=.5,shuffle=.5", examples=6)
    assert mixed.records()[0]["negatives"] == "swap=.5,shuffle=.5"
    with pytest.raises(al.InputError, match="examples is 1; it must be at least 2"):
        run.lengths(examples=1)


def test_an_option_of_another_tasks_analysis_is_refused() -> None:
    with pytest.raises(AnalysisError, match="lengths of the task 'addition' has no 'negatives'"):
        al.load("zoo:long-adder").lengths(negatives="swap")
