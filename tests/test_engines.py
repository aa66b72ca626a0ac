"""Both engines train the same model: the same weights up to rounding, the same events, the same resume."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import SpecError
from attnlab.explicit import Network
from attnlab.problems.addition import Addition
from attnlab.runs import as_line, create_run
from attnlab.specs import SGD, AdamW, Constant, PatchAttentionModel, Spec, Training, from_json, to_json
from attnlab.training import Trainer, train_run
from tiny_digits import squares_spec, write_squares


def explicit(spec: Spec) -> Spec:
    return replace(spec, engine="explicit")


def trained(spec: Spec) -> Trainer:
    trainer = Trainer(spec)
    trainer.train()
    return trainer


def test_the_same_steps(tmp_path: Path) -> None:
    spec = squares_spec(write_squares(tmp_path), epochs=2)
    torch_way, by_hand = trained(spec), trained(explicit(spec))
    for name, weight in torch_way.model.state_dict().items():
        assert torch.allclose(by_hand.model.state_dict()[name], weight, atol=2e-5), name
    assert by_hand.step == torch_way.step == 12
    assert by_hand.valid_losses == pytest.approx(torch_way.valid_losses, rel=1e-4)


def test_it_learns(tmp_path: Path) -> None:
    """At a rate where it is done well before the last epoch whatever the seed: the loss ends 200 to 2,000
    times lower. Three times that rate makes the outcome a matter of rounding.
    """
    spec = explicit(squares_spec(write_squares(tmp_path), epochs=80, batch=16, lr=0.1))
    fresh, done = Trainer(spec), trained(spec)
    assert done.measure(done.data.test).loss < 0.1 * fresh.measure(fresh.data.test).loss


@pytest.mark.parametrize("engine", ["torch", "explicit"])
def test_stopped_anywhere_it_ends_with_the_same_bytes(engine: Any, tmp_path: Path) -> None:
    spec = replace(squares_spec(write_squares(tmp_path / "set")), engine=engine)
    whole, pieces = (create_run(tmp_path / name, spec) for name in ("whole", "pieces"))
    train_run(whole)
    taken = iter(range(1000))
    while train_run(pieces, stopping=lambda: next(taken) % 6 == 5) is None:
        pass
    for name in ("best.safetensors", "last.safetensors"):
        assert pieces.file(name).read_bytes() == whole.file(name).read_bytes()

    def told(run: Any) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in line.items() if k != "seconds"} for line in map(as_line, run.metrics().lines)
        ]

    assert told(pieces) == told(whole)


@pytest.mark.parametrize("engine", ["torch", "explicit"])
def test_runs_tell_the_same_things(engine: Any, tmp_path: Path) -> None:
    spec = replace(squares_spec(write_squares(tmp_path / "set")), engine=engine)
    run = create_run(tmp_path / "run", spec)
    summary = train_run(run)
    assert summary is not None
    assert summary["parameters"] == 3114
    lines = list(map(as_line, run.metrics().lines))
    epochs = [line for line in lines if line["event"] == "epoch"]
    assert all(0 <= line["test_exact_match"] <= 1 for line in epochs)
    probes = [line for line in lines if line["event"] == "probe"]
    assert [line["step"] for line in probes] == [0, *(line["step"] for line in epochs)]
    assert all(0 < line["entropy"] <= 1 and 0 <= line["moved"] <= 1 for line in probes)
    data = run.environment().data
    assert data is not None
    assert data.sample is False


def test_threads_are_taken_from_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of them repeats itself bit for bit, and one is near the other."""
    asked: list[int] = []

    def network(arrays: dict[str, Any], *, threads: int) -> Network:
        asked.append(threads)
        return Network(arrays, threads=threads)

    monkeypatch.setattr("attnlab.explicit.Network", network)
    spec = explicit(squares_spec(write_squares(tmp_path), epochs=1))
    weights = []
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        weights.append(trained(spec).model.state_dict())
    assert asked == [1, 2, 2]
    assert all(torch.equal(weights[1][name], weights[2][name]) for name in weights[1])
    assert all(torch.allclose(weights[0][name], weights[1][name], atol=1e-5) for name in weights[1])


@pytest.mark.parametrize(
    ("model", "training", "words"),
    [
        ({"residual": True}, {}, "plain patch attention only"),
        ({"heads": 4}, {}, "plain patch attention only"),
        ({}, {"optimiser": AdamW()}, "plain SGD steps only"),
        ({}, {"optimiser": SGD(momentum=0.9)}, "plain SGD steps only"),
        ({}, {"clip": 1.0}, "training.clip is 1.0, but it must be 0 for engine explicit"),
        ({}, {"smoothing": 0.1}, "training.smoothing is 0.1"),
    ],
)
def test_what_it_cannot_do_is_refused(
    model: dict[str, Any], training: dict[str, Any], words: str, tmp_path: Path
) -> None:
    plain = squares_spec(tmp_path)
    with pytest.raises(SpecError, match=words):
        replace(
            plain,
            model=PatchAttentionModel(**model),
            training=replace(plain.training, **training),
            engine="explicit",
        )


def test_a_spec_without_new_keys_is_written_as_before() -> None:
    spec = Spec(task=Addition())
    assert "engine" not in to_json(spec)
    assert "watch" not in to_json(spec)["training"]
    changed = squares_spec(Path("x"))
    data = to_json(replace(changed, engine="explicit"))
    assert data["engine"] == "explicit"
    assert data["training"]["watch"] == "test"
    assert from_json(Spec, data) == replace(changed, engine="explicit")
    assert to_json(Training(schedule=Constant()))["schedule"] == {"kind": "constant", "warmup": 0.0}
