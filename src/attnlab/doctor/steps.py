"""Faults of the steps that a training takes: they diverge, begin too large, are too few, or only shrink."""

import math
from typing import final

from attnlab.doctor.causes import RESTING, UNFORMED, UNLEARNED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy
from attnlab.doctor.limits import (
    DONE,
    FAR,
    FEW_UPDATES,
    FIRST_STEP,
    INWARD,
    LARGE_BATCH,
    PEAK_AT_ONCE,
    SHRUNK,
    STEEP,
    USUAL,
)
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.rates import step_curve
from attnlab.doctor.training_log import final_accuracy, loss_curve, solved
from attnlab.doctor.usual import WARMED, calmer, slower
from attnlab.doctor.watched import (
    first_steps,
    full_steps,
    matrices,
    middle,
    of_layer,
    samples_of,
    watched_losses,
    weight_lengths,
    weights_grown,
)
from attnlab.runs import Observed


@final
class Diverged(Fault):
    """The loss became infinite or NaN."""

    kind = "diverged"
    family = "optimisation"
    source = "log"
    looks_at = "the first step whose loss is not finite, and the losses and gradients before it"
    explains = ("rate-too-high", "rate-too-low", "clipped-mostly", *RESTING)

    def examine(self, patient: Patient) -> Finding | None:
        observed = patient.observed
        if observed.diverged is None:
            return None
        at = observed.diverged
        evidence = {"step": float(at)} | _before(observed, at)
        went_on = any(each.step > at for each in observed.losses)
        first = at == observed.starts[0] + 1
        text = f"the loss was not finite at step {at}" + (", before any weight had moved" if first else "")
        return self.finding(
            "warning" if went_on else "serious",
            0.6 if went_on else 0.95,
            text,
            evidence,
            _data_or_model() if first else _calmer(patient),
            watched_losses(observed),
        )


def _before(observed: Observed, at: int) -> dict[str, float]:
    """Loss and gradient of the last step before ``at`` that was looked at and had them."""
    samples = [each for each in observed.samples if each.step < at]
    losses = [each.loss for each in samples if each.loss is not None]
    gradients = [each.gradient for each in samples if each.gradient is not None]
    found = {"loss before it": losses[-1:], "gradient before it": gradients[-1:]}
    return {name: values[0] for name, values in found.items() if values}


def _calmer(patient: Patient) -> Remedy:
    code = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # between backward() and step()"
    if patient.known_recipe is None:
        return Remedy("try a rate of a third, with a warm-up, and clip gradients", code=code)
    text = f"try a rate of {slower(patient):g} with a warm-up, and clip gradients"
    return Remedy(text, code=code, settings=calmer(patient))


def _data_or_model() -> Remedy:
    return Remedy(
        "look for NaN in inputs and targets, for a root of 0, and for rows that are masked whole",
        code="torch.autograd.set_detect_anomaly(True)",
    )


@final
class WarmUpMissing(Fault):
    """The first steps are taken at the full rate, and are too large for fresh weights."""

    kind = "warm-up-missing"
    family = "optimisation"
    source = "log"
    looks_at = "the rate of the first step beside its peak, and how far the first steps moved the weights"
    limits = (PEAK_AT_ONCE, FIRST_STEP, STEEP)
    explains = ("labels-wrong", "rate-too-low", "clipped-mostly", *UNFORMED)

    def examine(self, patient: Patient) -> Finding | None:
        samples, first, next_ones = samples_of(patient), full_steps(patient)[0], first_steps(patient)
        peak = max(each.lr for each in samples)
        if samples[0].lr < PEAK_AT_ONCE.value * peak or solved(patient):
            return None
        if first < FIRST_STEP.value or next_ones >= STEEP.value:
            return None
        text = f"the first step is at the full rate and moves the weights by {first:.1%} of their length"
        remedy = Remedy(
            "raise the rate from 0 over the first tenth of the steps",
            code="warmup = torch.optim.lr_scheduler.LinearLR(optimiser, 1e-3, total_iters=steps // 10)",
            settings={"training.schedule": WARMED},
        )
        evidence = {
            "first step over the weights": first,
            "first rate over the highest": samples[0].lr / peak,
        }
        return self.finding("warning", 0.6, text, evidence, remedy, step_curve(patient))


@final
class BatchTooLarge(Fault):
    """A batch is so large a part of the examples that training takes too few steps."""

    kind = "batch-too-large"
    family = "optimisation"
    source = "log"
    looks_at = "the share of the examples that a batch holds and the number of steps, while accuracy is low"
    limits = (LARGE_BATCH, FEW_UPDATES, DONE)
    explains = ("rate-too-low", "schedule-ends-early", *UNFORMED)

    def examine(self, patient: Patient) -> Finding | None:
        training, count = patient.spec.training, len(patient.learned)
        share = min(training.batch / count, 1.0)
        steps = math.ceil(count / training.batch) * training.epochs
        if share < LARGE_BATCH.value or steps > FEW_UPDATES.value or solved(patient):
            return None
        logged = patient.metrics.steps
        if logged and final_accuracy(logged) >= DONE.value:
            return None
        size = max(1, min(64, count // 32))
        text = f"a batch holds {share:.0%} of the training examples, so there are {steps} steps in all"
        remedy = Remedy(
            f"try batches of {size}",
            code=f"loader = DataLoader(examples, batch_size={size}, shuffle=True)",
            settings={"training.batch": size},
        )
        evidence = {"share of the examples": share, "steps": float(steps), "batch": float(training.batch)}
        return self.finding("serious", 0.85, text, evidence, remedy, loss_curve(logged))


@final
class WeightDecayWins(Fault):
    """Steps shrink the weights more than they learn: weight decay is stronger than the loss."""

    kind = "weight-decay-wins"
    family = "optimisation"
    source = "log"
    looks_at = "lengths of the weights of each layer, and the share of steps that points towards zero"
    limits = (SHRUNK, INWARD, FAR)
    explains = ("parameters-frozen", "memory-ignored", *UNLEARNED)

    def examine(self, patient: Patient) -> Finding | None:
        recipe = patient.known_recipe
        decay = None if recipe is None else recipe.optimiser.weight_decay
        if decay == 0:
            raise InapplicableError("there is no weight decay")
        if recipe is not None and recipe.lr > FAR.value * USUAL[recipe.optimiser.kind].value:
            # not that of the first steps, which decay makes long
            raise UncheckedError(
                "the rate is far above the usual one, which makes weight decay stronger too"
            )
        samples_of(patient)
        inward, left = _inward(patient.observed), weights_grown(patient.observed)
        shrinking = inward >= INWARD.value and left < (1 + SHRUNK.value) / 2
        if solved(patient) or not (left <= SHRUNK.value or shrinking):
            return None
        by = "" if decay is None else f", at a weight decay of {decay:g}"
        text = f"the weights shrank to {left:.2g} of their first length{by}"
        remedy = Remedy(
            "use a weight decay of 0.01",
            code='for group in optimiser.param_groups: group["weight_decay"] = 0.01',
            settings={"training.optimiser.weight_decay": 0.01},
        )
        steps = [float(each.step) for each in patient.observed.samples]
        lengths = weight_lengths(patient.observed)
        whole = {name: each for name, each in lengths.items() if len(each) == len(steps)}
        curve = Curve("step", "length of the weights", steps, whole)
        evidence = {"length at the end over that at the beginning": left, "inward part of steps": inward}
        if decay is not None:
            evidence["weight decay"] = decay
        return self.finding("serious", 0.9, text, evidence, remedy, curve)


def _inward(observed: Observed) -> float:
    """The cosine between a typical step and minus the weights."""
    layers = [of_layer(observed.samples, name) for name in matrices(observed)]
    return middle(middle(each.inward for each in layer) for layer in layers)


FAULTS = (Diverged, WarmUpMissing, BatchTooLarge, WeightDecayWins)
