"""Runs that lag are given up, once and for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from attnlab.errors import SpecError
from attnlab.specs import with_settings
from attnlab.studies.sweeps.file import read_sweep
from attnlab.studies.sweeps.parts import SweepFile
from attnlab.studies.sweeps.proposing import chooses
from made_up_sweeps import (
    LR,
    PRUNE,
    by_rate,
    in_memory,
    jobs,
    line,
    make_run,
    opened,
    outcome_of,
    played,
    short,
    tell,
    tell_epoch,
)
from tiny import TINY


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as place:
        yield place


def test_a_trial_that_lags_is_given_up(folder: Path) -> None:
    file, pool = short(LR, prune={}, set={"training.epochs": 2}, goal="minimize val_loss"), folder / "pool"
    with opened(file, folder) as sweep:
        first, lagging, better = jobs(sweep, 3)
        assert first.asks
        assert [tell_epoch(sweep, first, epoch, 0.6) for epoch in (1, 2)] == [True, True]
        assert tell_epoch(sweep, lagging, 1, 0.5) is False
        assert [tell_epoch(sweep, better, epoch, 0.7) for epoch in (1, 2)] == [True, True]
        tell(sweep, lagging, "pruned", pool)
        made = sweep.trials()[1]
        assert (made.state, made.value, made.intermediate_values) == (TrialState.PRUNED, 0.5, {1: 0.5})


def test_pruned_trials_are_told_as_far_as_they_went(folder: Path) -> None:
    file = short(LR, prune={}, set={"training.epochs": 2}, method="random")
    outcome, pool = played(file, folder, count=9)
    pruned = [trial for trial in outcome["trials"] if trial["state"] == "pruned"]
    finished = [trial for trial in outcome["trials"] if trial["state"] == "finished"]
    assert {(t["epochs"], t["stability"], t["parameter_count"]) for t in pruned} == {(1, None, None)}
    assert {trial["epochs"] for trial in finished} == {2}
    assert sorted(outcome["ranking"]) == [trial["number"] for trial in finished]
    with opened(file, folder, count=9) as sweep:  # somebody else has trained one of them to its end
        spec = sweep.spec_of(sweep.trials()[pruned[0]["number"]])
        make_run(pool, spec, [line(1, by_rate(spec, 1)), line(2, 1.0)])
        assert outcome_of(sweep, pool) == outcome


def test_an_epoch_that_is_told_twice_counts_once(folder: Path) -> None:
    file = short(LR, **PRUNE)
    with opened(file, folder) as sweep:
        (job,) = jobs(sweep, 1)
        assert [tell_epoch(sweep, job, epoch, 0.5) for epoch in (1, 2, 1, 2, 3)] == [True] * 5
    with opened(file, folder) as sweep:
        assert jobs(sweep, 1) == [job]
        assert [tell_epoch(sweep, job, epoch, 0.5) for epoch in (1, 2, 3, 4)] == [True] * 4
        assert sweep.trials()[0].intermediate_values == {1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5}


def test_without_early_terminate_no_run_asks(folder: Path) -> None:
    with opened(short(LR), folder) as sweep:
        (job,) = jobs(sweep, 1)
        assert not job.asks
        assert tell_epoch(sweep, job, 1, 0.5) is None
        assert sweep.trials()[0].intermediate_values == {}


def rungs(epochs: int, **prune: int) -> list[int]:
    spec = with_settings(TINY, {"training.epochs": epochs})
    return [epoch for epoch in range(1, 99) if chooses(short(LR, prune=prune), spec, epoch)]


def test_a_run_is_given_up_on_rungs_but_not_at_its_end() -> None:
    assert rungs(9) == [1, 3]
    assert rungs(10) == [1, 3, 9]
    assert rungs(20, min_epochs=2, factor=2) == [2, 4, 8, 16]
    assert rungs(20, min_epochs=2, factor=2, max_epochs=8) == [2, 4]
    assert rungs(1) == []
    assert not chooses(short(LR), TINY, 1)


def early(epochs: dict[str, Any], **hyperband: int) -> SweepFile:
    """A file of W&B's, in which the number of epochs is a parameter."""
    data = {
        "method": "random",
        "metric": {"name": "val_accuracy", "goal": "maximize"},
        "early_terminate": {"type": "hyperband", **hyperband},
        "parameters": {"epochs": epochs, "lr": {"min": 0.001, "max": 0.1}},
    }
    return read_sweep(data, "early")


@pytest.mark.parametrize("epochs", [{"value": 9}, {"values": [2, 9]}, {"min": 2, "max": 9}])
def test_the_longest_run_counts_for_pruning(epochs: dict[str, Any], folder: Path) -> None:
    with opened(early(epochs, min_iter=9), folder) as sweep:
        assert jobs(sweep, 1)[0].asks
    with pytest.raises(SpecError, match=r"^the sweep prunes from epoch 10 on, but a run has only 9$"):
        opened(early(epochs, min_iter=10), folder / "other")
    assert not (folder / "other").exists()


def test_no_trial_is_in_a_bracket_that_begins_after_its_end(folder: Path) -> None:
    with opened(early({"value": 2}, max_iter=81, s=4), folder) as sweep:
        first, *others = jobs(sweep, 7)
        assert tell_epoch(sweep, first, 1, 0.9)
        worse = [tell_epoch(sweep, job, 1, 0.5 - place / 10) for place, job in enumerate(others)]
        assert worse == [False] * 6
