"""Watching a training: nearly every step costs nothing, a few are looked at closely.

A ``Watch`` knows no loop. Whoever has one says when a step begins, what the model answered and what was
wanted, and when the step has been taken:

    watch.begin(inputs)                 # before the forward pass
    watch.answered(logits, targets)     # between the forward and the backward pass
    watch.end(loss, lr)                 # after the weights have moved

At a sampled step (``due``) the length of each gradient is taken by a hook as autograd delivers it, so
before it is clipped; the hooks are gone after the step. Nothing is drawn, and no value is changed.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attnlab.devices import CPU
from attnlab.runs.observed import LayerSample, Observed, Sample, Window
from attnlab.training.counting import Counts, by_class, finite, rounded

EARLY = 32
"""Up to here the powers of two are sampled."""
CLOSEST = 64
"""Steps from one sample to the next behind them, at least."""
SAMPLES = 64
"""Of a training whose length is known; of any other there are up to twice as many."""
WINDOWS = 256


@final
class Watch:
    """Observes the training of ``model``; ``total`` are its steps, if that is known, ``before`` is what was
    observed up to ``step``, after which it goes on.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        total: int | None = None,
        before: Observed | None = None,
        step: int = 0,
    ) -> None:
        self._model = model
        self._total = total
        self.step = step
        self._stride = CLOSEST if total is None else max(CLOSEST, math.ceil(total / SAMPLES))
        self._losses = Losses(1 if total is None else math.ceil(total / WINDOWS))
        self._samples = list[Sample]()
        self._counts = Counts()
        self._starts = [step]
        self._diverged: int | None = None
        self._now: _Step | None = None
        self._slopes = list[tuple[Tensor, Tensor, int | None]]()
        self._unseen = {"gradients": "no step has been sampled", "answers": "no step has been sampled"}
        if before is not None:
            self._take_up(before)

    def _take_up(self, before: Observed) -> None:
        self._samples = [each for each in before.samples if each.step <= self.step]
        self._losses.windows = [each for each in before.losses if each.step <= self.step]
        self._counts = Counts.of(before)
        self._starts = [*before.starts, *self._starts]

    @property
    def due(self) -> bool:
        """Whether the step to come is one to look at."""
        coming = self.step + 1
        return coming % self._stride == 0 or (coming <= EARLY and coming & self.step == 0)

    def begin(self, inputs: Sequence[Any]) -> None:
        """A step begins that is ``due``; its model is about to see ``inputs``."""
        if self._now is None:
            self._now = _Step(self._model)
        if inputs and isinstance(inputs[0], Tensor):
            self._counts.add_inputs(inputs[0].detach())

    def answered(self, logits: Any, targets: Any, rows: int | None = None) -> None:
        """What the model gave and what was wanted, of ``rows`` examples where targets are flat."""
        if self._now is None:
            return
        why = self._why_no_classes(logits, targets)
        if why:
            self._unseen["answers"] = why
            return
        self._unseen.pop("answers", None)
        pair = by_class(logits, targets, rows)
        if pair is not None and logits.requires_grad:
            self._counts.add_targets(*pair)
            logits.register_hook(lambda slope: self._heard(slope, targets, rows))

    def _heard(self, slope: Tensor, targets: Tensor, rows: int | None) -> None:
        self._slopes.append((slope.detach(), targets, rows))  # counted behind the step, on the CPU

    @staticmethod
    def _why_no_classes(logits: Any, targets: Any) -> str:
        if not isinstance(logits, Tensor) or not isinstance(targets, Tensor):
            return "predictions and targets are not tensors"
        if targets.is_floating_point() or targets.is_complex():
            return "the targets are numbers, not classes"
        if by_class(logits, targets, None) is None:
            given, wanted = [*logits.shape], [*targets.shape]
            return f"predictions of shape {given} give no class for each target of shape {wanted}"
        return ""

    def end(self, loss: float | None, lr: float) -> Sample | None:
        """The step has been taken; the sample, if it was one. A loss that is not known is None."""
        self.step += 1
        now, self._now = self._now, None
        if loss is None:
            self._unseen["losses"] = f"the loss of step {self.step} is not known"
        else:
            self._losses.add(self.step, loss)
        if loss is not None and not math.isfinite(loss) and self._diverged is None:
            self._diverged = self.step
        if now is None:
            return None
        heard, self._slopes = self._slopes, []
        for slope, targets, rows in heard:
            if (pair := by_class(slope, targets.to(slope.device), rows)) is not None:
                self._counts.add_slopes(*pair)
        sample = now.sample(self.step, loss, lr)
        if sample.gradient is None and sample.nonfinite == 0:
            self._unseen["gradients"] = "autograd gave no gradient"
        else:
            self._unseen.pop("gradients", None)
        self._samples.append(sample)
        if self._total is None and len(self._samples) > 2 * SAMPLES:
            self._thin()
        return sample

    def _thin(self) -> None:
        """Look half as often from now on, and forget every other sample."""
        self._stride *= 2
        self._samples = [
            each for each in self._samples if each.step <= EARLY or not each.step % self._stride
        ]

    def close(self) -> None:
        """Leave the model as it was, also in the middle of a step."""
        if self._now is not None:
            self._now.close()
            self._now = None

    def observed(self) -> Observed:
        """All so far."""
        return Observed(
            total=self._total,
            steps=self.step,
            starts=self._starts,
            samples=list(self._samples),
            losses=list(self._losses.windows),
            answers=self._counts.answers(),
            inputs=self._counts.inputs(),
            diverged=self._diverged,
            unseen=dict(self._unseen),
        )


@final
class Losses:
    """Means and peaks of ``width`` losses each; the width doubles when there are too many."""

    def __init__(self, width: int) -> None:
        self.windows = list[Window]()
        self._width = max(1, width)
        self._count, self._sum, self._highest = 0, 0.0, -math.inf

    def add(self, step: int, loss: float) -> None:
        if not math.isfinite(loss):
            return
        self._count += 1
        self._sum += loss
        self._highest = max(self._highest, loss)
        if step % self._width == 0:
            self.windows.append(Window(step, rounded(self._sum / self._count), rounded(self._highest)))
            self._count, self._sum, self._highest = 0, 0.0, -math.inf
            if len(self.windows) >= 2 * WINDOWS:
                self._halve()

    def _halve(self) -> None:
        pairs = zip(self.windows[::2], self.windows[1::2], strict=False)
        self.windows = [Window(b.step, (a.loss + b.loss) / 2, max(a.highest, b.highest)) for a, b in pairs]
        self._width *= 2


@final
class _Step:
    """One step that is looked at: the weights before it, and the lengths of gradients as they come."""

    def __init__(self, model: nn.Module) -> None:
        named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        self._names = [name for name, _ in named]
        self._weights = [weight for _, weight in named]
        with torch.no_grad():
            self._before = [weight.detach().clone() for weight in self._weights]
        self._lengths = dict[int, Tensor]()
        self._hooks: list[RemovableHandle] = [
            weight.register_post_accumulate_grad_hook(self._hook(number))  # type: ignore[no-untyped-call]
            for number, weight in enumerate(self._weights)
        ]

    def _hook(self, number: int) -> Callable[[Tensor], None]:
        def keep(weight: Tensor) -> None:
            if weight.grad is not None:
                self._lengths[number] = length(weight.grad)

        return keep

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    @torch.no_grad()
    def sample(self, step: int, loss: float | None, lr: float) -> Sample:
        """What the step did."""
        self.close()
        moves = [w.detach() - b for w, b in zip(self._weights, self._before, strict=True)]
        sizes = numbers([length(each) for each in self._before])
        moved = numbers([length(each) for each in moves])
        inner = numbers([-(m * b).sum() for m, b in zip(moves, self._before, strict=True)])
        heard = dict(zip(self._lengths, numbers(list(self._lengths.values())), strict=True))
        layers: dict[str, list[int]] = {}
        for number, name in enumerate(self._names):
            layers.setdefault(layer_of(name), []).append(number)
        return Sample(
            step=step,
            loss=None if loss is None else finite(loss),
            lr=rounded(lr),
            gradient=norm([heard[n] for n in heard]),
            nonfinite=sum(not math.isfinite(each) for each in heard.values()) / max(1, len(heard)),
            layers={
                name: _layer(
                    norm([heard[n] for n in members if n in heard]),
                    norm([sizes[n] for n in members]),
                    norm([moved[n] for n in members]),
                    sum(inner[n] for n in members),
                )
                for name, members in layers.items()
            },
        )


def _layer(gradient: float | None, size: float | None, moved: float | None, inner: float) -> LayerSample:
    known = size is not None and moved is not None
    product = size * moved if known else 0.0  # type: ignore[operator]
    return LayerSample(
        gradient=gradient,
        weight=size,
        update=finite(moved / size) if known and size else None,  # type: ignore[operator]
        inward=finite(inner / product) if product else None,
    )


def layer_of(name: str) -> str:
    """The layer of a parameter: its path up to the first number, or else its module."""
    parts = name.split(".")
    for place, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: place + 1])
    return ".".join(parts[:-1]) or name


def length(values: Tensor) -> Tensor:
    held = values.detach()
    return (held.coalesce().values() if held.is_sparse else held).norm()


def numbers(scalars: list[Tensor]) -> list[float]:
    """Their values, fetched together."""
    if not scalars:
        return []
    values: list[float] = torch.stack([each.to(CPU, torch.float32) for each in scalars]).tolist()
    return values


def norm(lengths: list[float]) -> float | None:
    """The length of all parts together; None if there is none, or it is not finite."""
    return finite(math.hypot(*lengths)) if lengths else None
