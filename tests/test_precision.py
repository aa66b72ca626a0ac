"""Products in bfloat16: a step is nearly the same, and nothing that is kept has fewer bits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlab.errors import SpecError
from attnlab.models import build_model
from attnlab.presets import preset
from attnlab.problems.digits import Digits
from attnlab.runs import create_run
from attnlab.sets import Examples
from attnlab.specs import (
    Alibi,
    GridRotary,
    NoPositions,
    PatchPositionSpec,
    Training,
    VitModel,
    spec_hash,
    to_json,
)
from attnlab.training import train_run
from attnlab.training.engines import TorchEngine
from tiny_digits import squares_spec, write_squares

SMALL = VitModel(patch=7, width=24, heads=3, layers=2, hidden=11)
HALF = Training(precision="bfloat16")


def batch() -> Examples:
    torch.manual_seed(1)
    return Examples((torch.rand(13, 28, 28),), torch.randint(10, (13,)))


def gradients(spec: VitModel, training: Training) -> tuple[float, torch.Tensor]:
    """The loss of a batch before a step, and all gradients of it in one row."""
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=10)
    engine, seen = TorchEngine(model, replace(training, clip=0.0)), []
    step = engine.optimisers.step

    def look(factor: float) -> None:
        seen.append(
            torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
        )
        step(factor)

    engine.optimisers.step = look  # type: ignore[method-assign]
    loss, _ = engine.step(batch(), 1.0)
    assert all(weight.dtype == torch.float32 for weight in model.state_dict().values())
    assert all(value.dtype == torch.float32 for value in engine.tensors().values())
    return loss, seen[0]


@pytest.mark.parametrize("positions", [NoPositions(), GridRotary(), Alibi()], ids=lambda where: where.kind)
def test_a_step_is_nearly_the_same(positions: PatchPositionSpec) -> None:
    spec = replace(SMALL, positions=positions)
    loss, whole = gradients(spec, Training())
    half_loss, half = gradients(spec, HALF)
    assert half_loss == pytest.approx(loss, rel=0.02)
    assert half_loss != loss
    assert torch.cosine_similarity(whole, half, dim=0) > 0.99
    assert half.norm() == pytest.approx(whole.norm().item(), rel=0.05)


def test_runs_are_exact_in_either_precision(tmp_path: Path) -> None:
    folder = write_squares(tmp_path / "squares")
    base = squares_spec(folder)
    spec = replace(base, model=SMALL, training=replace(HALF, epochs=1, threads=1))
    one, other = (create_run(tmp_path / name, spec) for name in ("one", "other"))
    train_run(one)
    asked = iter([False] * 1 + [True])
    assert train_run(other, stopping=lambda: next(asked)) is None
    train_run(other)
    assert one.file("last.safetensors").read_bytes() == other.file("last.safetensors").read_bytes()


def test_specs_without_it_are_what_they_were() -> None:
    spec = preset("digits", "vit-reference")
    assert "precision" not in to_json(spec)["training"]
    assert spec_hash(spec) != spec_hash(
        replace(spec, training=replace(spec.training, precision="bfloat16"))
    )


def test_kernels_written_by_hand_have_one_precision() -> None:
    spec = replace(preset("digits", "small"), task=Digits())
    with pytest.raises(SpecError, match="engine explicit computes in float32 only; use engine torch"):
        replace(spec, training=replace(spec.training, precision="bfloat16"))


@pytest.mark.parametrize("fast", [True, False])
def test_auto_multiplies_in_bfloat16_where_that_is_fast(
    fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: fast)
    other = HALF if fast else Training()
    (loss, auto), (same_loss, same) = (
        gradients(SMALL, each) for each in (replace(other, precision="auto"), other)
    )
    assert loss == same_loss
    assert torch.equal(auto, same)
    spec = squares_spec(write_squares(tmp_path / "squares"))
    run = create_run(
        tmp_path / "run",
        replace(spec, model=SMALL, training=Training(precision="auto", epochs=1, threads=1)),
    )
    train_run(run)
    assert run.environment().precision == ("bfloat16" if fast else "float32")
