"""Weights that are kept on the way: the right steps, the right values, and nothing else is changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import RunError, SpecError
from attnlab.runs import RunFolder, create_run, load_model, snapshot_name, snapshot_steps
from attnlab.specs import Spec, from_json, spec_hash, to_json
from attnlab.training import Trainer, train_run
from attnlab.training.records import asked_steps, log_spaced
from commands import TINY as FLAGS
from commands import attnlab
from tiny import TINY, same, tiny
from tiny_digits import squares_spec, write_squares


def files(run: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.file("snapshots").iterdir()}


def stopped_at(spec: Spec, step: int) -> Trainer:
    """A training that ends there. ``train_run`` sets the threads itself, a trainer takes those it finds."""
    torch.set_num_threads(spec.training.threads)
    trainer = Trainer(spec)
    trainer.train(stopping=lambda: trainer.step == step)
    return trainer


def test_steps_are_evenly_spaced_in_their_logarithm() -> None:
    assert log_spaced(6, 10_000) == [0, 1, 10, 100, 1000, 10_000]
    assert log_spaced(8, 20) == [0, 1, 2, 3, 4, 7, 12, 20]
    assert log_spaced(2, 471) == [0, 471]
    assert log_spaced(9, 4) == [0, 1, 2, 3, 4]
    assert log_spaced(3, 0) == [0]


@given(st.integers(2, 200), st.integers(0, 5000))
def test_as_many_as_asked_from_the_start_to_the_end(count: int, total: int) -> None:
    steps = log_spaced(count, total)
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (0, total)
    assert len(steps) == min(count, total + 1)


def test_one_number_is_how_many_and_several_are_steps() -> None:
    assert asked_steps((), 15) == []
    assert asked_steps((3,), 15) == [0, 1, 15]
    assert asked_steps((3, 7), 15) == [3, 7]


@pytest.mark.parametrize("count", [0, 1, 1001])
def test_as_many_as_there_may_be(count: int) -> None:
    rule = f"training.snapshots is {count}, but it must be from 2 to 1000, or several steps such as"
    with pytest.raises(SpecError, match=rule):
        tiny(snapshots=(count,))


def test_a_spec_without_snapshots_is_what_it_was() -> None:
    assert "snapshots" not in to_json(TINY)["training"]
    asked = tiny(snapshots=(5,))
    assert from_json(Spec, to_json(asked)) == asked
    assert spec_hash(asked) != spec_hash(TINY)


@pytest.mark.parametrize("training", [{}, {"ema": 0.9}], ids=["plain", "average"])
def test_snapshots_are_the_weights_of_their_step(training: dict[str, Any], tmp_path: Path) -> None:
    spec = tiny(snapshots=(0, 4, 11), threads=1, **training)
    run, other = (
        create_run(tmp_path / "run", spec),
        create_run(tmp_path / "other", tiny(threads=1, **training)),
    )
    train_run(run)
    assert snapshot_steps(run) == [0, 4, 11, 15]
    for step in (0, 4, 11):
        assert same(load_model(run, snapshot_name(step)), stopped_at(spec, step).kept)
    assert same(load_model(run, snapshot_name(15)), load_model(run, "last"))
    train_run(other)
    for name in ("best.safetensors", "last.safetensors"):
        assert run.file(name).read_bytes() == other.file(name).read_bytes()
    assert not other.file("snapshots").exists()


@pytest.mark.parametrize("engine", ["torch", "explicit"])
def test_a_run_in_pieces_keeps_the_same_snapshots(engine: Any, tmp_path: Path) -> None:
    spec = replace(squares_spec(write_squares(tmp_path / "set"), snapshots=(7,)), engine=engine)
    whole, pieces = (create_run(tmp_path / name, spec) for name in ("whole", "pieces"))
    train_run(whole)
    taken = iter(range(1000))
    while train_run(pieces, stopping=lambda: next(taken) % 4 == 3) is None:
        pass
    assert snapshot_steps(whole) == [0, 1, 2, 3, 6, 10, 18]
    assert files(pieces) == files(whole)


def test_steps_taken_again_after_a_kill_give_the_same_snapshots(tmp_path: Path) -> None:
    """The saved state is behind the snapshots, as when a process dies between two saves."""
    spec = tiny(snapshots=(0, 2, 5, 8), threads=1)
    whole, killed = (create_run(tmp_path / name, spec) for name in ("whole", "killed"))
    train_run(whole)
    counts = iter(range(1000))
    train_run(killed, stopping=lambda: next(counts) == 3)
    state = killed.file("state.safetensors").read_bytes()
    train_run(killed, stopping=lambda: next(counts) > 10)
    killed.write({"state.safetensors": state})
    train_run(killed)
    assert files(killed) == files(whole)


def test_the_end_is_kept_also_where_patience_ends_it(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny(snapshots=(0, 900), threads=1, lr=0.5, patience=1, epochs=50))
    summary = train_run(run)
    assert summary is not None
    assert summary["steps"] < 250
    assert snapshot_steps(run) == [0, summary["steps"]]


def test_flags_ask_for_snapshots(tmp_path: Path) -> None:
    attnlab("train", "addition", *FLAGS, "--training.epochs=1", "--training.snapshots", "4", "--out", "run",
            cwd=tmp_path)  # fmt: skip
    assert snapshot_steps(RunFolder(tmp_path / "run")) == [0, 1, 4, 13]
    with pytest.raises(RunError, match=r"has no snapshots/step-00000007\.safetensors"):
        load_model(RunFolder(tmp_path / "run"), snapshot_name(7))
