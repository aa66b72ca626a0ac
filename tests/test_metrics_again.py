"""After a kill metrics are those of an unbroken run, but for seconds."""

import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnlab.models import build_for
from attnlab.runs import RunFolder, create_run, create_run_from, weights_fingerprint
from attnlab.specs import Spec
from attnlab.training import Listener, train_run
from killed import Killed
from tiny_digits import VIT, squares_spec, write_squares


class Killer(Listener):
    """Hears as the last of all, and ends it with the event of this number."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.died = False
        for name in ("started", "stepping", "stepped", "logged", "epoch_ended", "stopped"):
            setattr(self, name, self._hear)

    def _hear(self, *_: Any) -> None:
        self.left -= 1
        if not self.left:
            self.died = True
            raise Killed


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    squares = write_squares(tmp_path_factory.mktemp("squares"), train=60)
    found = squares_spec(squares, epochs=1, batch=30)
    return replace(found, model=replace(VIT, layers=1), engine="torch")


def lines(run: RunFolder) -> list[dict[str, Any]]:
    """All lines without their seconds."""
    found = [dict(vars(line), event=line.event) for line in run.metrics().lines]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in found]


def killed_at(run: RunFolder, at: int, **options: Any) -> bool:
    """Train until the event of this number; whether it came."""
    killer = Killer(at)
    with suppress(Killed):
        train_run(run, listeners=[killer], **options)
    return killer.died


@pytest.mark.parametrize("stride", [1, 3], ids=["nothing saved", "each step saved"])
def test_metrics_of_a_killed_run_are_those_of_a_whole_one(
    stride: int, spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    whole = create_run(tmp_path / "whole", spec)
    train_run(whole)
    wanted = lines(whole)
    assert [(line["event"], line["step"]) for line in wanted].count(("probe", 0)) == 1
    at = 1
    while True:
        run = create_run(tmp_path / "run", spec)
        if not killed_at(run, at, checkpoint_seconds=1000.0 if stride == 1 else 0.0):
            break
        train_run(run)
        assert lines(run) == wanted
        assert run.file("last.safetensors").read_bytes() == whole.file("last.safetensors").read_bytes()
        shutil.rmtree(run.path)
        at += stride
    assert at > 8


def test_a_run_that_is_stopped_before_its_first_step_probes_once(spec: Spec, tmp_path: Path) -> None:
    """Its state is saved at step 0."""
    whole, run = (create_run(tmp_path / name, spec) for name in ("whole", "run"))
    train_run(whole)
    assert train_run(run, stopping=lambda: True) is None
    assert run.file("state.safetensors").exists()
    train_run(run)
    assert lines(run) == lines(whole)


def test_a_run_without_steps_is_killed_at_its_end(spec: Spec, tmp_path: Path) -> None:
    """As a pruned one that is not trained."""
    weights = build_for(spec).state_dict()
    training = replace(spec.training, epochs=0, steps=0)
    spec = replace(spec, start=weights_fingerprint(weights), training=training)
    whole, run = (create_run_from(tmp_path / name, spec, weights) for name in ("whole", "run"))
    train_run(whole)
    assert killed_at(run, 3)  # it began, an epoch ended, and it stopped
    assert run.file("state.safetensors").exists()
    train_run(run)
    assert lines(run) == lines(whole)
