"""What a sweep proposes, in which order, and until when; killed at any time, it goes on as if not."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from attnlab.presets import preset
from attnlab.specs import to_json, with_settings
from attnlab.studies.sweeps.file import read_sweep, read_sweep_file
from attnlab.studies.sweeps.search import PATIENCE, Sweep
from made_up_sweeps import (
    LR,
    MANY,
    PRUNE,
    SWEEPS,
    WIDE,
    by_rate,
    in_memory,
    jobs,
    opened,
    played,
    short,
    specs_of,
    tell,
    tell_epoch,
    work,
)
from tiny import TINY


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as place:
        yield place


def test_another_seed_gives_another_search(folder: Path) -> None:
    found = [played(short(MANY), folder / str(seed), seed=seed, count=4)[0] for seed in (5, 6)]
    assert len(set(specs_of(found[0]) + specs_of(found[1]))) == 8
    rates = [trial["parameters"]["training.lr"] for trial in found[0]["trials"] + found[1]["trials"]]
    assert all(1e-4 <= rate <= 1e-1 for rate in rates)
    assert min(rates) < 1e-3 < 1e-2 < max(rates)


class Killed(BaseException):
    """The process is no more."""


@pytest.fixture
def kill_every(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make every n-th write to Optuna's storage the last thing that a process does."""
    commit, every, writes = Session.commit, 0, 0
    rows: dict[Any, int] = {}  # changed so far, by connection

    def dying(session: Session) -> None:
        nonlocal writes
        session.flush()
        connection: Any = session.connection().connection.dbapi_connection
        wrote = rows.get(connection, 0) != connection.total_changes
        rows[connection] = connection.total_changes
        writes += wrote
        commit(session)
        if wrote and every and writes % every == 0:
            raise Killed

    def choose(number: int) -> None:
        nonlocal every
        every = number

    monkeypatch.setattr(Session, "commit", dying)
    return choose


KILLS: dict[str, tuple[dict[str, Any], int]] = {
    "bayes": ({"search": MANY, "method": "bayes", **PRUNE}, 13),
    "random": ({"search": MANY, "method": "random"}, 7),
    "grid": ({"search": {"model.heads": [1, 2, 4], "model.width": [5, 6, 8]}, "method": "grid"}, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KILLS)
def test_killed_after_any_write_it_goes_on_as_if_not(
    kind: str, folder: Path, kill_every: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.sweeps.proposing.STARTUP", 3)
    data, every = KILLS[kind]
    file = short(**data)
    whole, _ = played(file, folder / "whole", count=11)
    kill_every(every)
    killed, pieces = 0, None
    while pieces is None:
        try:
            pieces, _ = played(file, folder / "pieces", count=11)
        except Killed:
            killed += 1
        assert killed < 99
    assert killed >= 6
    assert pieces == whole


@pytest.mark.slow
def test_a_higher_count_extends_the_same_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.sweeps.proposing.STARTUP", 3)
    file = short(MANY, method="bayes", **PRUNE)
    whole, _ = played(file, folder / "whole", count=11)
    for count in (7, 8, 10):
        played(file, folder / "pieces", count=count)
    assert played(file, folder / "pieces", count=11)[0] == whole


def test_a_lag_is_remembered_over_a_kill(folder: Path, kill_every: Callable[[int], None]) -> None:
    """Whichever write is the last one before the kill, the second trial is given up after epoch 1."""
    for last in range(1, 4):
        file, pool = short(LR, prune={}, set={"training.epochs": 2}), folder / str(last) / "pool"
        with opened(file, folder / str(last)) as sweep:
            work(sweep, jobs(sweep, 1)[0], pool, lambda spec, epoch: 0.9)
            (job,) = jobs(sweep, 1)
            kill_every(last)
            with suppress(Killed):
                tell_epoch(sweep, job, 1, 0.5)
            kill_every(0)
        with opened(file, folder / str(last)) as sweep:
            assert jobs(sweep, 1) == [job]
            assert [tell_epoch(sweep, job, epoch, 0.5) for epoch in (1, 2)] == [False, True]


def test_a_failure_that_a_kill_cut_short_is_tried_again(
    folder: Path, kill_every: Callable[[int], None]
) -> None:
    file, pool = short(LR), folder / "pool"
    with opened(file, folder, count=1) as sweep:
        (job,) = jobs(sweep, 1)
        kill_every(1)
        with pytest.raises(Killed):
            tell(sweep, job, "failed", pool, error="out of memory", final=False)
        kill_every(0)
    (trial,) = played(file, folder, count=1)[0]["trials"]
    assert (trial["run"], trial["state"], trial["error"]) == (job.name, "finished", None)


def test_workers_in_parallel_get_different_specs_and_no_more_than_wanted(folder: Path) -> None:
    with opened(short(MANY), folder, count=5) as sweep:
        first = jobs(sweep, 3)
        work(sweep, first[2], folder / "pool", by_rate)
        second = jobs(sweep, 9)
        assert len({job.name for job in first + second}) == len(first + second) == 5
        assert [sweep.number_of(job.name) for job in second[-1:]] == [len(sweep.trials()) - 1]


def test_what_was_under_way_comes_first_after_a_stop(folder: Path) -> None:
    pool = folder / "pool"
    with opened(short(MANY), folder, count=4) as sweep:
        first = jobs(sweep, 3)
        work(sweep, first[1], pool, by_rate)
        tell(sweep, first[0], "stopped", pool)
    with opened(short(MANY), folder, count=4) as sweep:
        second = jobs(sweep, 9)
        assert second[:2] == [first[0], first[2]]
        assert len({job.name for job in first + second}) == 4
        for job in second:
            work(sweep, job, pool, by_rate)
    with opened(short(MANY), folder, count=4) as sweep:
        assert sweep.is_over()
        assert (jobs(sweep, 1), sweep.ended) == ([], "")


def test_every_run_of_a_search_has_its_seed_and_one_thread(folder: Path) -> None:
    with opened(short(LR, set={"model.heads": 2}), folder, seed=7) as sweep:
        (job,) = jobs(sweep, 1)
    rate = job.spec.training.lr
    training = replace(TINY.training, lr=rate, threads=1)
    assert job.spec == with_settings(replace(TINY, seed=7, training=training), {"model.heads": 2})


HEADS_AND_WIDTHS = {
    "method": "grid",
    "metric": {"name": "val_accuracy", "goal": "maximize"},
    "parameters": {"n_heads": {"values": [8, 12]}, "d_model": {"values": [256, 384]}},
}


def test_what_cannot_be_is_skipped_with_its_reason_and_not_counted(folder: Path) -> None:
    outcome, _ = played(read_sweep(HEADS_AND_WIDTHS, "wide"), folder, base=WIDE, count=3)
    assert specs_of(outcome) == [(8, 256), (8, 384), (12, 384)]
    assert outcome["skipped"] == [
        {
            "number": 2,
            "reason": "model.heads is 12, but it must be a divisor of model.width 256, such as 1, 2, 4, "
            "8, 16, 32, 64",
            "parameters": {"model.heads": 12, "model.width": 256},
        }
    ]
    assert [trial["number"] for trial in outcome["trials"]] == [0, 1, 3]


def test_a_grid_is_gone_through_once_and_in_order_also_after_a_stop(folder: Path) -> None:
    search = {"model.heads": [3, 1, 2], "model.norm": ["pre", "post"], "training.batch": "5 .. 6"}
    file = short(search, method="grid")
    with opened(file, folder) as sweep:
        for job in jobs(sweep, 4):
            work(sweep, job, folder / "pool", by_rate)
        jobs(sweep, 2)
    outcome, _ = played(file, folder)
    assert specs_of(outcome) == list(product([3, 1, 2], ["pre", "post"], [5, 6]))
    assert outcome["ended"] == "all 12 combinations have been tried"
    assert outcome == played(file, folder)[0]


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_a_finite_search_ends_when_everything_was_tried(method: str, folder: Path) -> None:
    search = {"model.heads": [1, 2, 3, 4], "training.batch": "5 .. 7"}
    file = short(search, method=method)
    played(file, folder, count=5)
    outcome, _ = played(file, folder)
    assert sorted(specs_of(outcome)) == list(product([1, 2, 3], [5, 6, 7]))
    assert outcome["ended"] == "all 12 combinations have been tried"
    tried = Counter(json.dumps(each["parameters"]) for each in outcome["skipped"])
    assert list(tried.values()) == [1, 1, 1]


def test_where_the_estimator_proposes_in_vain_chance_takes_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.sweeps.proposing.STARTUP", 1)
    monkeypatch.setattr("attnlab.studies.sweeps.search.STUCK", 2)
    search = {**LR, "model.dropout": [0.1, 1.1]}  # of which one is impossible
    bayes, _ = played(short(search, method="bayes"), folder / "bayes", count=5)
    chance, _ = played(short(search, method="random"), folder / "chance", count=20)  # more trials
    skipped = {trial["number"] for trial in bayes["skipped"]}
    drawn, by_chance = proposals(bayes), proposals(chance)
    late = {number for number in drawn if {number - 2, number - 1} <= skipped}
    same = {number for number in drawn if drawn[number] == by_chance[number]}
    assert late
    assert late <= same < set(drawn)


def proposals(outcome: dict[str, Any]) -> dict[int, Any]:
    return {trial["number"]: trial["parameters"] for trial in (*outcome["trials"], *outcome["skipped"])}


def test_a_grid_does_not_lose_patience(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.studies.sweeps.search.PATIENCE", 3)
    outcome, _ = played(short({"model.heads": [4, 5, 7, 8, 3]}, method="grid"), folder)
    assert specs_of(outcome) == [(3,)]
    assert outcome["ended"] == "all 5 combinations have been tried"


def test_two_words_for_one_spec_are_one_trial(folder: Path) -> None:
    search = {"model.positions": ["rotary", "rotary:base=10000", "none"]}
    outcome, _ = played(short(search, method="random"), folder)
    assert len(outcome["trials"]) == 2
    assert outcome["ended"] == "all 3 combinations have been tried"
    assert outcome["skipped"] == []


def test_a_search_in_vain_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PATIENCE == 300
    monkeypatch.setattr("attnlab.studies.sweeps.search.PATIENCE", 23)
    for _ in range(2):
        with opened(short({"model.dropout": "1.5 .. 2.0"}), folder) as sweep:
            assert sweep.next_job() is None
            assert sweep.ended == "23 proposals in a row were impossible or known already"
            assert (len(sweep.trials()), len(sweep.skipped()), sweep.counted()) == (23, 23, [])


@pytest.mark.parametrize(("goal", "target"), [("maximize", 0.9), ("minimize", 0.1)])
def test_a_target_ends_the_search(goal: str, target: float, folder: Path) -> None:
    name = "val_accuracy" if goal == "maximize" else "val_loss"
    metric = {"name": name, "goal": goal, "target": target}
    parameters = {"batch_size": {"values": [5, 6, 7, 8]}}
    file = read_sweep({"method": "grid", "metric": metric, "parameters": parameters}, "aimed")
    outcome, _ = played(file, folder, lambda spec, epoch: 0.95 if spec.training.batch == 7 else 0.5)
    assert specs_of(outcome) == [(5,), (6,), (7,)]
    assert outcome["ended"] == f"the target {target:g} has been reached"
    assert outcome["ranking"][0] == 2


@pytest.mark.parametrize("name", ["addition", "addition-short"])
def test_shipped_files_propose_only_what_is_possible(name: str, folder: Path) -> None:
    file = read_sweep_file(SWEEPS / f"{name}.yaml")
    names = set()
    with opened(file, folder, base=preset(file.task, file.preset), count=30) as sweep:
        while (job := sweep.next_job()) is not None:
            names.add(job.name)
            tell(sweep, job, "failed", folder, error="not trained", final=True)
        assert (len(names), len(sweep.trials()), sweep.skipped(), sweep.ended) == (30, 30, [], "")


def test_a_relative_folder_of_images_is_made_absolute(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = read_sweep({"search": LR, "set": {"task.directory": "squares"}}, "digits")
    with Sweep(file, preset("digits", "default"), folder / "sweep", seed=0, count=1) as sweep:
        job = sweep.next_job()
    assert job is not None
    assert to_json(job.spec)["task"]["directory"] == str(tmp_path / "squares")
