"""A training on a device that is not the CPU: the same steps, saved from and restored to that device."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from attnlab.devices import device_of
from attnlab.problems.digits import Digits
from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run, load_model
from attnlab.specs import SGD, AdamW, Augment, Muon, OptimiserSpec, Randomised, Spec, TokensModel, VitModel
from attnlab.training import Trainer, train_run
from pretend import PRETENDED, MisplacedError, crossings, pretending
from tiny import TINY, tiny
from tiny_digits import squares_spec, write_squares

THERE = PRETENDED.type


@pytest.fixture(autouse=True)
def _comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernels on both devices, and a generator of the pretended one: that of the CPU."""
    monkeypatch.setattr("attnlab.training.optimisers.has_fused_steps", lambda device: False)
    draws = SimpleNamespace(
        get_rng_state=lambda device: torch.get_rng_state(),
        set_rng_state=lambda state, device: torch.set_rng_state(state),
    )
    monkeypatch.setattr(torch, THERE, draws, raising=False)


def on(device: str, spec: Spec) -> Spec:
    return replace(spec, training=replace(spec.training, device=device))


def close(mine: dict[str, Tensor], yours: dict[str, Tensor]) -> None:
    """But for biases of keys, which change no pattern, so that Adam follows mere rounding."""
    assert mine.keys() == yours.keys()
    for name, value in mine.items():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(yours[name].cpu(), value, atol=2e-4, rtol=2e-3, msg=name)


@pytest.mark.parametrize("optimiser", [AdamW(), SGD(momentum=0.9), Muon()], ids=lambda each: each.kind)
def test_steps_are_the_same(optimiser: OptimiserSpec) -> None:
    spec = tiny(optimiser=optimiser, ema=0.9, smoothing=0.1, lr=0.001)
    here = Trainer(spec)
    here.train()
    with pretending():
        there = Trainer(on(THERE, spec))
        assert device_of(there.model) == device_of(there.kept) == there.device == PRETENDED
        there.train()
        close(here.kept.state_dict(), there.kept.state_dict())
        assert there.measure(there.data.test).loss == pytest.approx(
            here.measure(here.data.test).loss, rel=1e-3
        )


def test_a_step_moves_its_batch_once() -> None:
    """Inputs and targets go there; nothing but numbers comes back."""
    with pretending():
        trainer = Trainer(on(THERE, TINY))
        batch = trainer.data.train[slice(0, 5)]
        crossings.clear()
        trainer.update(batch)
        assert crossings == [tuple(part.shape) for part in (*batch.inputs, batch.targets)]


def specs(folder: Path) -> Iterator[Spec]:
    """A decoder with dropout, a classifier with drawn places, one of altered images."""
    yield tiny(ema=0.5, snapshots=(2, 9), lr=0.001)
    lists = TokensModel(width=6, heads=3, layers=1, hidden=5, positions=Randomised(limit=9))
    sorting = Sorting(low=3, high=5, train=23, valid=7, test=5)
    yield replace(TINY, task=sorting, model=lists)
    squares = squares_spec(write_squares(folder), epochs=1, steps=4, lr=0.01)
    task = Digits(directory=str(folder), augment=Augment(shift=0.1))
    vit = VitModel(patch=14, width=6, heads=3, layers=1, hidden=5, dropout=0.1)
    yield replace(squares, engine="torch", task=task, model=vit)


@pytest.mark.parametrize("which", range(3))
def test_a_run_on_another_device(which: int, tmp_path: Path) -> None:
    """Interrupted and resumed: its files hold what a run on the CPU has, and load there."""
    spec = list(specs(tmp_path / "squares"))[which]
    here = create_run(tmp_path / "here", spec)
    train_run(here)
    with pretending():
        there, left = create_run(tmp_path / "there", on(THERE, spec)), iter(range(100))
        assert train_run(there, stopping=lambda: next(left) == 3) is None
        assert "device_generator" in load_file(there.file("state.safetensors"))
        summary = train_run(there)
        assert summary is not None
    for name in ("best", "last"):
        close(load_file(here.file(f"{name}.safetensors")), load_file(there.file(f"{name}.safetensors")))
    assert device_of(load_model(there)).type == "cpu"
    mine, yours = here.metrics(), there.metrics()
    assert len(mine.lines) == len(yours.lines)
    for a, b in zip(mine.probes, yours.probes, strict=True):
        assert b.entropy == pytest.approx(a.entropy, rel=1e-3)
    losses = [[each.valid_loss for each in one.epochs] for one in (mine, yours)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert there.environment().device == THERE
    assert "device" not in json.loads(here.file("environment.json").read_text())


def test_a_model_that_needs_the_cpu_is_found() -> None:
    """A planted fault in a part of the model stops the training."""
    with pretending():
        trainer = Trainer(on(THERE, TINY))
        readout = trainer.model.get_submodule("readout")
        plain = readout.forward
        readout.forward = lambda x: plain(x) + torch.zeros(1).to(x)
        with pytest.raises(MisplacedError, match="creates a tensor on the CPU"):
            trainer.train()
