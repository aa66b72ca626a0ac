"""Any training loop of torch, watched through hooks: of the model, of the loss, and of all optimisers.

A step begins with a forward pass that keeps gradients and ends when the optimisers have moved the weights;
its loss is what ``backward`` was called on, the mean of several where gradients are summed up. A loss
without gradients belongs to an evaluation.

    loop = Loop(model, loss_fn)
    loss = loop.loss(model(inputs), targets)    # a module that is a loss needs no such call
    loss.backward()
    optimiser.step()

No value is changed, nothing is drawn, and all that is kept is bounded. Gradients that a scaler has enlarged
are seen enlarged.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from attnlab.errors import InputError
from attnlab.training.loop_records import Call, LoopLog, exact_match
from attnlab.training.watching import Watch

LABELS = ("labels", "target", "targets", "label")
"""Arguments that hold what is wanted."""


@final
class Loop:
    """The training of ``model`` by whatever loop, of ``total`` steps if that is known.

    ``loss`` is what computes the loss, a module or a function; without it the model's own is taken, as
    Hugging Face's models give it. Of several ``optimisers`` a step needs all; without any, those count that
    hold a weight of the model. ``after`` is called after each step with its number.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Any] | None = None,
        optimisers: Sequence[Optimizer] = (),
        *,
        total: int | None = None,
        after: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model
        self.watch = Watch(model, total=total)
        self.log = LoopLog(total)
        self.optimiser: Optimizer | None = optimisers[0] if optimisers else None
        self.rate = 0.0
        """Of the last step."""
        self.last: Call | None = None
        """A call of the model that examples can be taken of: of the last evaluation, or else of a step."""
        self._loss, self._given = loss, tuple(optimisers)
        self._after = after
        self._ours = weakref.WeakKeyDictionary[Optimizer, bool]()
        self._call: Call | None = None
        self._losses = list[Tensor]()
        self._moved = list[Optimizer]()
        self._inside = False
        self._hooks: list[RemovableHandle] = [
            model.register_forward_pre_hook(_Ear(self, "_asked"), with_kwargs=True),
            model.register_forward_hook(_Ear(self, "_answered"), with_kwargs=True),
        ]
        _hear_optimisers()
        LISTENING.add(self)
        if isinstance(loss, nn.Module):
            self._hooks.append(loss.register_forward_hook(_Ear(self, "_heard"), with_kwargs=True))

    def loss(self, *given: Any, **named: Any) -> Any:
        """The loss, computed as ever, and heard."""
        if self._loss is None:
            raise InputError("no loss function was given, so there is none to call; name it in watch()")
        found = self._loss(*given, **named)
        if not isinstance(self._loss, nn.Module):
            self._heard(None, given, named, found)
        return found

    def close(self) -> None:
        """Take all hooks away."""
        LISTENING.discard(self)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.watch.close()

    def settle(self) -> None:
        """Nothing more comes: the last step and the last evaluation have ended."""
        self._finish()
        self.log.end_evaluation(self.watch.step)

    # What hooks say

    def _asked(self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        if module is not self.model:
            return
        if torch.is_grad_enabled() and not self._inside:
            self._finish()
        call = self._call = Call.of(given, named, LABELS, training=module.training)
        if torch.is_grad_enabled() and self.watch.due:
            self.watch.begin(call.inputs if module.training else ())

    def _answered(
        self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], said: Any
    ) -> None:
        if module is not self.model or self._loss is not None:
            return
        loss, logits = _part(said, "loss"), _part(said, "logits")
        if isinstance(loss, Tensor):
            targets = next((named[name] for name in LABELS if name in named), None)
            whole = isinstance(targets, Tensor) and targets.dim() == 1  # of tokens it may shift them itself
            self._hear(logits, targets if whole else None, loss)

    def _heard(self, _: object, given: tuple[Any, ...], named: Mapping[str, Any], loss: Any) -> None:
        values = [*given, *named.values()]
        if isinstance(loss, Tensor):
            logits, targets = [*values, None, None][:2]
            self._hear(logits, targets, loss)

    def _hear(self, logits: Any, targets: Any, loss: Tensor) -> None:
        call, value = self._call, loss.detach()
        rows = None if call is None else call.rows
        if not loss.requires_grad:
            self.log.evaluated(value, logits, targets, rows)
            if call is not None:
                self._take(call, targets, evaluation=True)
            return
        right = None
        if self.watch.due or self.log.due(self.watch.step + 1):
            right = exact_match(logits, targets, rows)
            if right is not None:
                self.log.choices = logits.shape[-1] if logits.dim() == targets.dim() + 1 else 0
            if call is not None and call.training and self.watch.due:
                self.watch.answered(logits, targets, rows)
                self._take(call, targets, evaluation=False)
        loss.register_hook(lambda _: self._confirmed(value, right))  # type: ignore[no-untyped-call]

    def _take(self, call: Call, targets: Any, *, evaluation: bool) -> None:
        known = self.last
        if not isinstance(targets, Tensor):
            return
        if known is None or known.training:
            self.last = call.kept(targets, training=not evaluation)
        elif evaluation:
            self.last = known.joined(call, targets)

    def _confirmed(self, loss: Tensor, right: float | None) -> None:
        """``backward`` has been called on it."""
        if self._inside and self._losses:
            return  # an optimiser that looks several times before it steps
        self._losses.append(loss)
        self.log.right(right)

    def moving(self, optimiser: Optimizer) -> None:
        """An optimiser begins a step."""
        if self._is_ours(optimiser):
            self._inside = True

    def has_moved(self, optimiser: Optimizer) -> None:
        """An optimiser has taken a step."""
        if not self._is_ours(optimiser):
            return
        self._inside = False
        self.optimiser = self.optimiser or optimiser
        self._moved.append(optimiser)
        if self._given and all(any(each is own for each in self._moved) for own in self._given):
            self._finish()

    def _is_ours(self, optimiser: Optimizer) -> bool:
        if self._given:
            return any(optimiser is each for each in self._given)
        if optimiser not in self._ours:
            held = {id(weight) for group in optimiser.param_groups for weight in group["params"]}
            self._ours[optimiser] = any(id(weight) in held for weight in self.model.parameters())
        return self._ours[optimiser]

    def _finish(self) -> None:
        """The step that the optimisers have taken has ended."""
        if not self._moved:
            return
        rate = self.rate = rate_of(self._moved[0])
        losses = [each.mean().item() if each.dim() else each.item() for each in self._losses]
        loss = fmean(losses) if losses else None
        self._moved.clear()
        self._losses.clear()
        self._call = None
        self.log.end_evaluation(self.watch.step)
        self.watch.end(loss, rate)
        self.log.stepped(self.watch.step, rate, loss)
        if self._after is not None:
            self._after(self.watch.step)


LISTENING = weakref.WeakSet[Loop]()
"""Loops that hear of optimisers; one that nobody holds is gone."""


@cache
def _hear_optimisers() -> None:
    """Once in a process: torch walks over such hooks, so they may not come and go."""

    def moving(optimiser: Optimizer, *_: object) -> None:
        for loop in [*LISTENING]:
            loop.moving(optimiser)

    def has_moved(optimiser: Optimizer, *_: object) -> None:
        for loop in [*LISTENING]:
            loop.has_moved(optimiser)

    register_optimizer_step_pre_hook(moving)
    register_optimizer_step_post_hook(has_moved)


def rate_of(optimiser: Optimizer) -> float:
    """The learning rate of the largest of its groups."""
    groups = optimiser.param_groups
    if len(groups) == 1:
        return float(groups[0].get("lr", 0.0))
    largest = max(groups, key=lambda group: sum(weight.numel() for weight in group["params"]))
    return float(largest.get("lr", 0.0))


def _part(said: Any, name: str) -> Any:
    return said.get(name) if isinstance(said, Mapping) else getattr(said, name, None)


@final
class _Ear:
    """A hook that tells a loop. A copy of it, such as in a copy of the model, tells nobody."""

    def __init__(self, loop: Loop | None = None, event: str = "") -> None:
        self._loop = loop
        self._event = event

    def __reduce__(self) -> tuple[Any, ...]:
        return _Ear, ()

    def __call__(self, *given: Any) -> None:
        if self._loop is not None:
            getattr(self._loop, self._event)(*given)
