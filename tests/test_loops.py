"""Loops of somebody's own are watched through hooks, and nothing in them is changed."""

import copy
import gc
import math
import pickle
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.errors import InputError
from attnlab.training.loop_records import EVALUATIONS, KEPT, WINDOWS, Call, LoopLog, exact_match
from attnlab.training.loops import LISTENING, Loop
from tiny import same

INPUTS, TARGETS = torch.randn(22, 5, generator=torch.Generator().manual_seed(2)), torch.arange(22) % 3


def linear() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def sgd(model: nn.Module, rate: float = 0.1) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=rate)


def backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def take(
    model: nn.Module, loss: Callable[..., Any], *optimisers: torch.optim.Optimizer, steps: int = 1
) -> float:
    """The loss of the last of some plain steps."""
    for _ in range(steps):
        model.zero_grad()
        found = loss(model(INPUTS), TARGETS)
        backward(found)
        for each in optimisers:
            each.step()
    return float(found.detach())


@pytest.mark.parametrize("as_module", [True, False])
def test_the_loss_of_each_step_is_heard(as_module: bool) -> None:
    model = linear()
    module, optimiser = nn.CrossEntropyLoss(), sgd(model)
    loop = Loop(model, module if as_module else F.cross_entropy, [optimiser])
    losses = [take(model, module if as_module else loop.loss, optimiser) for _ in range(5)]
    observed = loop.watch.observed()
    assert observed.steps == 5
    assert [each.loss for each in observed.losses] == pytest.approx(losses, rel=1e-4)
    assert [each.loss for each in loop.log.steps] == pytest.approx(losses, rel=1e-4)
    assert [each.step for each in observed.samples] == [1, 2, 4]
    assert observed.answers is not None
    assert observed.answers.seen == {"0": 24, "1": 21, "2": 21}
    assert observed.inputs is not None
    assert observed.unseen == {}
    assert loop.log.choices == 3
    assert loop.rate == 0.1


def test_watching_changes_nothing_and_leaves_nothing() -> None:
    quiet, watched = linear(), linear()
    take(quiet, F.cross_entropy, sgd(quiet), steps=9)
    optimiser = sgd(watched)
    loop = Loop(watched, F.cross_entropy, [optimiser])
    take(watched, loop.loss, optimiser, steps=9)
    assert same(quiet, watched)
    loop.close()
    assert not watched._forward_hooks
    assert not watched._forward_pre_hooks
    take(watched, F.cross_entropy, optimiser)
    assert loop.watch.step == 9


def test_gradients_that_are_summed_up_are_one_step() -> None:
    model = linear()
    optimiser, module = sgd(model), nn.CrossEntropyLoss()
    loop = Loop(model, module, [optimiser])
    losses = list[float]()
    for part in (slice(0, 11), slice(11, 22)):
        loss = module(model(INPUTS[part]), TARGETS[part])
        losses.append(float(loss.detach()))
        backward(loss / 2)
    whole = math.hypot(*(float(w.grad.norm()) for w in model.parameters() if w.grad is not None))
    optimiser.step()
    (sample,) = loop.watch.observed().samples
    assert sample.loss == pytest.approx(sum(losses) / 2, rel=1e-4)
    assert sample.gradient == pytest.approx(whole, rel=1e-4)


def test_a_loss_that_nothing_is_learned_from_belongs_to_no_step() -> None:
    model = linear()
    optimiser, module = sgd(model), nn.CrossEntropyLoss()
    loop = Loop(model, module, [optimiser])
    module(10 * model(INPUTS), TARGETS)  # it has a gradient, but nobody asks for it
    loss = take(model, module, optimiser)
    assert loop.watch.observed().samples[0].loss == pytest.approx(loss, rel=1e-4)


def test_the_rate_is_that_of_the_largest_group_as_a_schedule_has_it() -> None:
    model = linear()
    groups: list[dict[str, Any]] = [
        {"params": [*model[0].parameters()]},
        {"params": [*model[2].parameters()], "lr": 7.0},
    ]
    optimiser = torch.optim.SGD(groups, lr=0.8)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    loop = Loop(model, F.cross_entropy, [optimiser])
    for _ in range(4):
        take(model, loop.loss, optimiser)
        schedule.step()
    assert [each.lr for each in loop.log.steps] == [0.8, 0.4, 0.2, 0.1]
    assert [each.lr for each in loop.watch.observed().samples] == [0.8, 0.4, 0.1]


def test_an_optimiser_that_calls_the_model_itself_takes_one_step() -> None:
    model = linear()
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=3)
    loop, losses = Loop(model, F.cross_entropy, [optimiser]), list[float]()

    def closure() -> float:
        optimiser.zero_grad()
        loss: Tensor = loop.loss(model(INPUTS), TARGETS)
        backward(loss)
        losses.append(float(loss.detach()))
        return losses[-1]

    step: Callable[..., Any] = optimiser.step
    step(closure)
    begun = len(losses)
    step(closure)
    assert begun > 1
    assert loop.watch.step == 2
    assert [each.loss for each in loop.log.steps] == pytest.approx([losses[0], losses[begun]], rel=1e-4)


def test_of_several_optimisers_a_step_needs_all() -> None:
    for given in (True, False):
        model = linear()
        optimisers = [sgd(model[0]), torch.optim.Adam(model[2].parameters(), lr=0.01)]
        loop = Loop(model, F.cross_entropy, optimisers if given else [])
        take(model, loop.loss, *optimisers, steps=4)
        loop.settle()
        assert loop.watch.step == 4
        first = loop.watch.observed().samples[0]
        assert all(layer.update for layer in first.layers.values())


def test_optimisers_of_other_models_do_not_count() -> None:
    model, other = linear(), linear()
    own, strange = sgd(model), sgd(other)
    loop = Loop(model, F.cross_entropy)
    take(other, F.cross_entropy, strange, steps=3)
    loop.settle()
    assert loop.watch.step == 0
    take(model, loop.loss, own, strange, steps=2)
    loop.settle()
    assert loop.watch.step == 2
    assert loop.optimiser is own


def test_passes_without_gradients_are_evaluations() -> None:
    model = linear()
    optimiser, module = sgd(model), nn.CrossEntropyLoss()
    loop = Loop(model, module, [optimiser])
    take(model, module, optimiser, steps=2)
    model.eval()
    with torch.no_grad():
        logits = model(INPUTS)
        wanted = module(logits, TARGETS)
        module(model(INPUTS[:8]), TARGETS[:8])
        module(model(INPUTS[8:]), TARGETS[8:])
    model.train()
    take(model, module, optimiser)
    loop.settle()
    (epoch,) = loop.log.epochs
    right = (logits.argmax(dim=1) == TARGETS).float().mean().item()
    assert (epoch.step, loop.watch.step) == (2, 3)
    assert epoch.valid_loss == pytest.approx(wanted.item(), rel=1e-4)
    assert epoch.valid_exact_match == pytest.approx(right)
    assert epoch.best
    assert loop.last is not None
    examples = loop.last.examples()
    assert examples is not None
    assert examples.inputs[0].equal(torch.cat((INPUTS, INPUTS)))
    assert examples.targets.equal(torch.cat((TARGETS, TARGETS)))


@dataclass
class Said:
    loss: Tensor | None
    logits: Tensor


class Named(nn.Module):
    """As models of Hugging Face are called, and what they give."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = linear()

    def forward(self, *, input_ids: Tensor, scale: float = 1.0, labels: Tensor | None = None) -> Said:
        logits = scale * self.inner(input_ids)
        return Said(None if labels is None else F.cross_entropy(logits, labels), logits)


def test_a_model_that_is_called_by_names_and_gives_its_own_loss() -> None:
    model = Named()
    optimiser = sgd(model)
    loop = Loop(model)
    for _ in range(2):
        loss = model(input_ids=INPUTS, labels=TARGETS).loss
        backward(loss)
        optimiser.step()
    loop.settle()
    observed = loop.watch.observed()
    assert (observed.steps, observed.unseen) == (2, {})
    assert observed.samples[1].loss == pytest.approx(loss.item(), rel=1e-4)
    assert observed.samples[1].gradient is not None
    assert observed.answers is not None
    assert loop.last is not None
    assert (loop.last.names, loop.last.rows) == (("input_ids",), 22)
    assert Call.of(({"x": INPUTS, "labels": TARGETS},), {}, ("labels",), training=True).names == ("x",)


def test_a_step_whose_loss_nobody_heard_is_still_a_step() -> None:
    model = linear()
    optimiser = sgd(model)
    loop = Loop(model, F.cross_entropy, [optimiser])
    take(model, F.cross_entropy, optimiser, steps=2)
    observed = loop.watch.observed()
    assert (observed.steps, observed.losses, observed.diverged) == (2, [], None)
    assert observed.unseen["losses"] == "the loss of step 2 is not known"
    assert observed.samples[0].gradient is not None
    assert loop.log.metrics().lines == []
    with pytest.raises(InputError, match="no loss function was given, so there is none to call"):
        Loop(linear()).loss(INPUTS, TARGETS)


def test_a_loss_that_is_not_finite_is_heard() -> None:
    model = linear()
    optimiser = sgd(model, math.inf)
    loop = Loop(model, F.cross_entropy, [optimiser])
    take(model, loop.loss, optimiser, steps=3)
    assert loop.watch.observed().diverged == 2


def test_copies_of_the_model_are_not_watched() -> None:
    model = linear()
    optimiser = sgd(model)
    loop = Loop(model, F.cross_entropy, [optimiser])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        take(other, F.cross_entropy, sgd(other))
    loop.settle()
    assert loop.watch.step == 0
    assert loop.last is None


def test_a_loop_that_nobody_holds_hears_no_optimiser() -> None:
    model = linear()
    Loop(model, F.cross_entropy)
    (loop,) = [each for each in LISTENING if each.model is model]
    gone = weakref.ref(loop)
    del model, loop
    gc.collect()
    assert gone() is None


# What is kept is bounded


def test_windows_and_evaluations_are_bounded() -> None:
    log = LoopLog()
    for step in range(1, 5001):
        log.stepped(step, 0.1, float(step))
        log.evaluated(torch.tensor(1 / step), None, None, 1)
        log.end_evaluation(step)
    assert WINDOWS <= len(log.steps) < 2 * WINDOWS
    width = log.steps[1].step - log.steps[0].step
    assert [each.step for each in log.steps] == list(range(width, 5001, width))
    assert log.steps[-1].loss == pytest.approx(log.steps[-1].step - (width - 1) / 2)
    assert EVALUATIONS / 2 <= len(log.epochs) < EVALUATIONS
    known = LoopLog(1000)
    for step in range(1, 1001):
        known.stepped(step, 0.1, 1.0)
    assert len(known.steps) == WINDOWS


def test_few_examples_are_kept() -> None:
    call = Call.of((torch.zeros(900, 3),), {}, (), training=False)
    kept = call.kept(torch.zeros(900, dtype=torch.long), training=False)
    assert kept.joined(call, torch.zeros(900, dtype=torch.long)) is kept
    assert kept.targets is not None
    assert len(kept.targets) == len(kept.inputs[0]) == KEPT
    large = Call.of((torch.zeros(5, 2**20),), {}, (), training=False)
    assert large.kept(torch.zeros(5), training=False).inputs[0].shape == (3, 2**20)
    flat = Call.of((torch.zeros(4, 6),), {}, (), training=True).kept(torch.arange(24), training=True)
    assert flat.targets is not None
    assert flat.targets.equal(torch.arange(24).view(4, 6))
    assert call.kept(torch.zeros(900), training=True).examples() is None  # numbers, not classes


def test_an_example_is_right_when_all_its_tokens_are() -> None:
    logits = torch.eye(4)[torch.tensor([[0, 1, 2], [3, 3, 3]])]
    assert exact_match(logits, torch.tensor([[0, 1, 2], [3, 3, 1]]), 2) == 0.5
    assert exact_match(logits, torch.tensor([[0, 1, -100], [3, 3, 3]]), 2) == 1.0
    assert exact_match(logits.flatten(0, 1), torch.tensor([0, 1, 2, 3, 3, 1]), 2) == 0.5
    assert exact_match(logits, torch.zeros(2), 2) is None
    assert exact_match(logits, torch.zeros(5, dtype=torch.long), 2) is None
