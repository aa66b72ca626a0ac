"""A watch sees what is there, and nothing of the training is changed by it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.errors import LabError, RunError
from attnlab.runs import Observed, create_run
from attnlab.specs import SGD
from attnlab.storage import as_json
from attnlab.training import Trainer, train_run
from attnlab.training.counting import Counts
from attnlab.training.observer import Observer
from attnlab.training.watching import EARLY, SAMPLES, Watch, layer_of
from tiny import same, tiny


def linear() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def test_powers_of_two_are_sampled_and_then_evenly() -> None:
    watch = Watch(linear(), total=64 * 70)
    due = []
    for step in range(1, 300):
        if watch.due:
            due.append(step)
        watch.end(1.0, 0.1)
    assert due == [1, 2, 4, 8, 16, 32, 70, 140, 210, 280]


def test_a_training_of_unknown_length_is_sampled_ever_less_often() -> None:
    watch = Watch(nn.Linear(2, 3))
    for _ in range(64 * 400):
        if watch.due:
            watch.begin([])
        watch.end(1.0, 0.1)
    found = watch.observed()
    steps = [each.step for each in found.samples]
    assert SAMPLES / 2 < len(steps) <= 2 * SAMPLES
    assert steps[:6] == [1, 2, 4, 8, 16, EARLY]
    assert steps[6:] == list(range(256, 64 * 400 + 1, 256))
    assert 256 <= len(found.losses) < 512
    assert found.losses[-1].step - found.losses[-2].step == 64


def test_a_sample_is_what_the_step_did() -> None:
    model, data, wanted = linear(), torch.randn(11, 5), torch.arange(11) % 3
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    watch = Watch(model)
    before = [weight.detach().clone() for weight in model.parameters()]
    watch.begin((data,))
    logits = model(data)
    watch.answered(logits, wanted)
    loss = nn.functional.cross_entropy(logits, wanted)
    loss.backward()  # type: ignore[no-untyped-call]
    slopes = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimiser.step()
    sample = watch.end(loss.item(), 0.5)
    assert sample is not None
    assert sample.step == 1
    assert sample.nonfinite == 0
    assert sample.loss == pytest.approx(loss.item(), rel=1e-4)
    assert sample.gradient == pytest.approx(math.hypot(*(s.norm().item() for s in slopes)), rel=1e-4)
    assert list(sample.layers) == ["0", "2"]
    last, old = sample.layers["2"], before[2:]
    size = math.hypot(*(w.norm().item() for w in old))
    moves = [w.detach() - b for w, b in zip(list(model.parameters())[2:], old, strict=True)]
    moved = math.hypot(*(m.norm().item() for m in moves))
    assert last.gradient == pytest.approx(math.hypot(*(s.norm().item() for s in slopes[2:])), rel=1e-4)
    assert last.weight == pytest.approx(size, rel=1e-4)
    assert last.update == pytest.approx(moved / size, rel=1e-2)
    inner = -sum((m * b).sum().item() for m, b in zip(moves, old, strict=True))
    assert last.inward == pytest.approx(inner / moved / size, rel=1e-2, abs=1e-3)
    assert not any(weight._post_accumulate_grad_hooks for weight in model.parameters())


def test_decay_alone_moves_weights_inward() -> None:
    model = nn.Linear(3, 2)
    watch = Watch(model)
    watch.begin(())
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.9)
    sample = watch.end(1.0, 0.1)
    assert sample is not None
    layer = sample.layers["weight"] if "weight" in sample.layers else next(iter(sample.layers.values()))
    assert layer.inward == pytest.approx(1, abs=1e-4)
    assert layer.update == pytest.approx(0.1, rel=1e-3)
    assert (layer.gradient, sample.gradient) == (None, None)
    assert watch.observed().unseen["gradients"] == "autograd gave no gradient"


def answers_with(targets: Tensor, ignored: int) -> Observed:
    model = nn.Linear(4, 5)
    watch = Watch(model)
    torch.manual_seed(1)
    given = torch.randn(*targets.shape, 4)
    watch.begin((given,))
    logits = model(given)
    watch.answered(logits, targets)
    loss = nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignored)
    loss.backward()  # type: ignore[no-untyped-call]
    watch.end(loss.item(), 0.1)
    return watch.observed()


def test_tokens_without_loss_are_counted_and_padding_is_told_from_them() -> None:
    targets = torch.tensor([[1, 0, 2, 0], [3, 1, 0, 0], [0, 1, 1, 2]])
    found = answers_with(targets, 0).answers
    assert found is not None
    assert found.seen == {"0": 5, "1": 4, "2": 2, "3": 1}
    assert found.silent == {"0": 5}
    assert found.between == {"0": 1}
    assert sum(found.predicted.values()) == 12
    padded = answers_with(torch.tensor([[1, 2, 0], [3, 0, 0]]), 0).answers
    assert padded is not None
    assert (padded.silent, padded.between) == ({"0": 3}, {})
    left_out = answers_with(torch.tensor([[1, 2, -100], [3, 1, -100]]), -100).answers
    assert left_out is not None
    assert (left_out.seen, left_out.silent) == ({"1": 2, "2": 1, "3": 1}, {})


def test_scores_of_classes_may_stand_second_and_targets_may_be_flat() -> None:
    watch = Watch(nn.Linear(2, 3))
    watch.begin(())
    targets = torch.tensor([[1, 0, 2, 0], [3, 1, 0, 0]])
    watch.answered(torch.randn(2, 5, 4, requires_grad=True), targets)
    watch.answered(torch.randn(8, 5, requires_grad=True), targets.flatten(), rows=2)
    found = watch.observed().answers
    assert found is not None
    assert found.seen == {"0": 8, "1": 4, "2": 2, "3": 2}


@pytest.mark.parametrize(
    ("logits", "targets", "why"),
    [
        (torch.zeros(5, 1), torch.zeros(5, 1), "the targets are numbers, not classes"),
        ({}, torch.zeros(5, 1), "predictions and targets are not tensors"),
        (
            torch.zeros(5, 3),
            torch.zeros(7, dtype=torch.long),
            "predictions of shape [5, 3] give no class for each target of shape [7]",
        ),
    ],
)
def test_what_cannot_be_observed_is_named(logits: object, targets: Tensor, why: str) -> None:
    watch = Watch(nn.Linear(2, 3))
    watch.begin(())
    watch.answered(logits, targets)
    assert watch.observed().unseen["answers"] == why
    assert watch.observed().answers is None


def test_inputs_are_described() -> None:
    watch = Watch(nn.Linear(2, 3))
    watch.begin((torch.tensor([[1.0, 3.0], [5.0, 7.0], [1.0, 3.0]]),))
    found = watch.observed().inputs
    assert found is not None
    assert found.mean == pytest.approx(20 / 6, rel=1e-4)
    assert found.std == pytest.approx(math.sqrt(94 / 6 - (20 / 6) ** 2), rel=1e-4)
    assert found.repeated == pytest.approx(1 / 3, rel=1e-4)


def test_gradients_that_are_not_finite_are_counted() -> None:
    model = linear()
    watch = Watch(model)
    watch.begin(())
    (model(torch.full((2, 5), math.inf)).sum()).backward()
    sample = watch.end(math.nan, 0.1)
    assert sample is not None
    assert sample.gradient is None
    assert sample.loss is None
    assert sample.nonfinite > 0
    assert watch.observed().diverged == 1


def test_layers_go_by_their_number_or_their_module() -> None:
    names = ["encoder.0.self.query.weight", "readout.bias", "0.weight", "cls", "net.embed.weight"]
    assert [layer_of(name) for name in names] == ["encoder.0", "readout", "0", "cls", "net.embed"]


# Runs


def test_a_run_keeps_what_was_observed(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny())
    train_run(run)
    found = Patient("run", run=run).observed
    assert found == run.observed()
    assert found == Observed.from_json(found.to_json())
    assert (found.steps, found.total, found.starts, found.diverged) == (15, 15, [0], None)
    assert [each.step for each in found.samples] == [1, 2, 4, 8]
    assert len(found.losses) == 15
    assert found.answers is not None
    assert found.unseen == {}
    assert found.layers[:1] == ["source_embed"]
    assert len(found.records()) == 4 * len(found.layers)


def test_watching_changes_nothing(tmp_path: Path) -> None:
    quiet = Trainer(tiny())
    quiet.train()
    watched = Trainer(tiny())
    watched.train([Observer(create_run(tmp_path / "run", tiny()))])
    assert same(quiet.model, watched.model)
    assert not watched.model._forward_hooks


def test_a_training_that_goes_on_is_watched_on(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny())
    trainer = Trainer(tiny())
    trainer.train([Observer(run)], lambda: trainer.step == 6)
    assert run.observed().steps == 6
    trainer.train([Observer(run)])
    found, whole = run.observed(), create_run(tmp_path / "whole", tiny())
    Trainer(tiny()).train([Observer(whole)])
    assert (found.starts, found.steps) == ([0, 6], 15)
    assert found.samples == whole.observed().samples
    told, wanted = found.answers, whole.observed().answers
    assert told is not None
    assert wanted is not None
    assert replace(told, grouped=None) == replace(wanted, grouped=None)  # the order is seen anew


def test_a_run_that_diverges_says_when(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny(optimiser=SGD(), lr=1e30, clip=0.0))
    with pytest.raises(LabError, match="the loss became"):
        train_run(run)
    found = run.observed()
    assert found.diverged == found.steps
    assert found.steps < 15


def test_a_run_that_nobody_watched_says_so(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", tiny())
    with pytest.raises(UncheckedError, match="the training was not watched"):
        _ = Patient("run", run=run).observed
    with pytest.raises(UncheckedError, match="there is no run, so its training was not watched"):
        _ = Patient("model").observed
    run.write({"observed.json": b"{}"})
    with pytest.raises(RunError, match=r"observed\.json cannot be read"):
        run.observed()
    trainer = Trainer(tiny())
    run.write({"observed.json": as_json(Watch(trainer.model).observed().to_json())})
    with pytest.raises(UncheckedError, match="no step of the training was looked at yet"):
        _ = Patient("run", run=run).observed


def grouped(batches: list[list[int]], classes: int = 5) -> float | None:
    counts = Counts()
    for each in batches:
        wanted = torch.tensor(each)
        counts.add_targets(torch.zeros(len(each), 1, classes), wanted[:, None])
    found = counts.answers()
    assert found is not None
    return found.grouped


def test_batches_of_one_answer_each_are_grouped_and_shuffled_ones_are_not() -> None:
    assert grouped([[n] * 7 for n in range(5)]) == 1
    assert grouped([[0, 1, 2, 3, 4]] * 11) == pytest.approx(-0.25, abs=0.02)  # evener than by chance
    assert grouped([[0, 0, 1], [1, 1, 0]]) == pytest.approx((1 / 3 - 4 / 9) / (5 / 9), rel=1e-4)
    assert grouped([[3] * 7] * 4) is None
    torch.manual_seed(0)
    drawn = grouped(torch.randint(5, (41, 64)).tolist())
    assert drawn is not None
    assert abs(drawn) < 0.01


def test_answers_may_differ_in_length_and_the_place_that_is_grouped_most_counts() -> None:
    counts = Counts()
    torch.manual_seed(0)
    for number, length in enumerate((3, 4, 2, 4)):
        wanted = torch.randint(5, (31, length))
        wanted[:, -1] = -100 if length == 2 else number
        counts.add_targets(torch.zeros(31, length, 5), wanted)
    found = counts.answers()
    assert found is not None
    assert found.grouped == 1
