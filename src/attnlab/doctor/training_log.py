"""Faults that the log of a training shows: its rate, its schedule, its end, and which weights were kept."""

import math
from itertools import pairwise
from statistics import fmean, median
from typing import final

from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.limits import (
    DIVERGED,
    DONE,
    EARLY,
    EVEN,
    FALLING,
    FLAT,
    GAP,
    JUMP,
    KEPT,
    LITTLE,
    MOVED,
    RESTLESS,
    RISEN,
    STUCK,
)
from attnlab.doctor.movement import movement
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.runs import EpochRecord, StepRecord

FEWEST = 10
"""Windows of steps that a log must hold before its shape means anything."""


def steps_of(patient: Patient) -> list[StepRecord]:
    """Windows of steps; enough of them to have a shape."""
    steps = patient.metrics.steps
    if len(steps) < FEWEST:
        raise UncheckedError(f"the log holds {len(steps)} windows of steps, and {FEWEST} are needed")
    return steps


def epochs_of(patient: Patient, least: int = 1) -> list[EpochRecord]:
    epochs = patient.metrics.epochs
    if len(epochs) < least:
        raise UncheckedError(f"the log holds {len(epochs)} epochs, and {least} are needed")
    return epochs


def loss_curve(steps: list[StepRecord]) -> Curve:
    return Curve(
        "step",
        "training loss",
        [float(each.step) for each in steps],
        {"loss": [each.loss for each in steps]},
    )


def solved(patient: Patient) -> bool:
    """Whether the best validation accuracy leaves little to be learned; without a log it is not known."""
    try:
        epochs = patient.metrics.epochs
    except UncheckedError:
        return False
    return max((each.valid_exact_match for each in epochs), default=0.0) >= DONE.value


def tenth(losses: list[float], first: float) -> float:
    """The median of a tenth of the windows from the share ``first`` on."""
    start = min(int(first * len(losses)), len(losses) - 1)
    return median(losses[start : start + max(1, len(losses) // 10)])


@final
class RateTooLow(Fault):
    """The weights hardly moved, or the loss still falls steadily as training ends."""

    kind = "rate-too-low"
    family = "optimisation"
    source = "log"
    looks_at = (
        "how far the weights moved, and the training loss in the last fifth and the second half of the "
        "steps, while training accuracy is low"
    )
    limits = (DONE, MOVED, JUMP, FALLING, EVEN, RESTLESS, LITTLE)

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_ended()
        steps = steps_of(patient)
        if solved(patient) or final_accuracy(steps) >= DONE.value:
            return None
        return self._hardly_moved(patient) or self._still_falling(patient)

    def _hardly_moved(self, patient: Patient) -> Finding | None:
        try:
            moved = movement(patient)
        except UncheckedError:
            return None
        if moved >= MOVED.value:
            return None
        rate = patient.spec.training.lr
        text = f"training moved the weights by {moved:.1%} of their size only, at a rate of {rate:g}"
        evidence = {"median distance of a matrix from its first value": moved, "learning rate": rate}
        return self.finding("serious", 0.8, text, evidence, _faster(patient), loss_curve(steps_of(patient)))

    def _still_falling(self, patient: Patient) -> Finding | None:
        losses = [each.loss for each in steps_of(patient)]
        start, middle, late, end = (tenth(losses, at) for at in (0.0, 0.45, 0.75, 0.9))
        restless = restlessness(losses)
        if largest_jump(patient) >= JUMP.value:
            return None
        if start - end <= restless * end or not end < late or restless > RESTLESS.value:
            return None
        falling, second = (late - end) / late, (middle - end) / (start - end)
        if falling < FALLING.value and second < EVEN.value:
            return None
        rate, left = patient.spec.training.lr, end / start
        text = f"the training loss still falls as training ends, smoothly, at a rate of {rate:g}"
        evidence = {
            "share of the loss that the last fifth took off": falling,
            "share of the fall in the second half": second,
            "loss at the end over that at the beginning": left,
            "learning rate": rate,
        }
        severity: Severity = "serious" if left > LITTLE.value else "warning"
        sure = 0.7 if falling >= FALLING.value and second >= EVEN.value else 0.4
        return self.finding(severity, sure, text, evidence, _faster(patient), loss_curve(steps_of(patient)))


def _faster(patient: Patient) -> Remedy:
    rate = patient.spec.training.lr
    return Remedy(
        f"try a rate of {3 * rate:g} and of {10 * rate:g}; if that is worse, train longer",
        command=f"attnlab train {patient.spec.task.kind} --training.lr {10 * rate:g}",
    )


def final_accuracy(steps: list[StepRecord]) -> float:
    """Of the last twentieth of the training batches."""
    return fmean(each.exact_match for each in steps[-max(1, len(steps) // 20) :])


def restlessness(losses: list[float]) -> float:
    """The typical jump between neighbouring windows, relative to their mean, in the second half."""
    half = losses[len(losses) // 2 :]
    return median(abs(b - a) / max((a + b) / 2, 1e-12) for a, b in pairwise(half))


@final
class LossStuck(Fault):
    """The loss at the end is that of the beginning: nothing was learned."""

    kind = "loss-stuck"
    family = "optimisation"
    source = "log"
    looks_at = "the training loss at the end beside that at the beginning"
    limits = (STUCK, DONE)

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_ended()
        steps = steps_of(patient)
        losses = [each.loss for each in steps]
        start, end = tenth(losses, 0.0), tenth(losses, 0.9)
        if solved(patient) or not STUCK.value * start <= end <= start / STUCK.value:
            return None
        rate, kind = patient.spec.training.lr, patient.spec.task.kind
        text = f"the training loss went from {start:.3g} to {end:.3g} only: nothing was learned"
        remedy = Remedy(
            f"see whether a few examples can be learned by heart; if so, try rates of {rate / 10:g} and "
            f"{10 * rate:g}; if not, the model, the loss or the labels are broken",
            command=f"attnlab train {kind} --task.train 64 --training.epochs 200",
        )
        evidence = {"loss at the beginning": start, "loss at the end": end}
        return self.finding("serious", 0.3, text, evidence, remedy, loss_curve(steps))


@final
class RateTooHigh(Fault):
    """The loss jumps, or is higher at the end than it was before."""

    kind = "rate-too-high"
    family = "optimisation"
    source = "log"
    looks_at = "the training loss at the end beside its lowest, and jumps above what knowing nothing costs"
    limits = (DIVERGED, STUCK, JUMP, DONE)

    def examine(self, patient: Patient) -> Finding | None:
        steps = steps_of(patient)
        losses = [each.loss for each in steps]
        width = max(1, len(losses) // 10)
        smooth = [median(losses[at : at + width]) for at in range(len(losses) - width + 1)]
        lowest, end = min(smooth), smooth[-1]
        risen, jump = end / max(lowest, 1e-12), largest_jump(patient)
        over = risen >= DIVERGED.value or end > smooth[0] / STUCK.value
        if solved(patient) or not (over or jump >= JUMP.value):
            return None
        rate = patient.spec.training.lr
        what = f"ends at {end:.3g}, {risen:.1f} times its lowest" if over else f"jumps up {jump:.1f} times"
        evidence = {"loss at the end over its lowest": risen, "largest jump": jump, "learning rate": rate}
        remedy = Remedy(
            f"try a rate of {rate / 3:g} and of {rate / 10:g}, clip gradients, and warm up",
            command=f"attnlab train {patient.spec.task.kind} --training.lr {rate / 10:g} --training.clip 1",
        )
        text = f"the training loss {what}, at a rate of {rate:g}"
        return self.finding("serious", 0.8, text, evidence, remedy, loss_curve(steps))


def largest_jump(patient: Patient) -> float:
    """The largest of a loss over the median of the five before, of losses above log V, that of knowing
    nothing; 0 if there is none.
    """
    losses = [each.loss for each in steps_of(patient)]
    blind = math.log(max(2, patient.spec.task.vocabulary))
    jumps = (b / median(losses[n - 5 : n]) for n, b in enumerate(losses) if n >= 5 and b > blind)
    return max(jumps, default=0.0)


@final
class ScheduleEndsEarly(Fault):
    """The learning rate is next to nothing for much of the training."""

    kind = "schedule-ends-early"
    family = "optimisation"
    source = "log"
    looks_at = "the share of steps behind the last rate of use, while accuracy is low"
    limits = (FLAT, EARLY, DONE)

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_ended()
        steps = steps_of(patient)
        peak = max(each.lr for each in steps)
        useful = [number for number, each in enumerate(steps) if each.lr >= FLAT.value * peak]
        share = 1 - (useful[-1] + 1) / len(steps)
        if share < EARLY.value or solved(patient):
            return None
        text = f"in the last {share:.0%} of the steps the rate is below {FLAT.value:.0%} of its peak"
        remedy = Remedy(
            "let the schedule end with the training, or be more patient",
            command=f"attnlab train {patient.spec.task.kind} --training.schedule cosine",
        )
        curve = Curve(
            "step",
            "learning rate",
            [float(each.step) for each in steps],
            {"rate": [each.lr for each in steps]},
        )
        return self.finding("warning", 0.7, text, {"share of steps": share}, remedy, curve)


@final
class Memorising(Fault):
    """Training examples are learned, validation examples are not."""

    kind = "memorising"
    family = "data"
    source = "log"
    looks_at = "accuracy and loss on training and on validation examples at the end"
    limits = (GAP, RISEN)

    def examine(self, patient: Patient) -> Finding | None:
        steps, epochs = steps_of(patient), epochs_of(patient, 2)
        last = epochs[-1]
        train = final_accuracy(steps)
        gap = train - last.valid_exact_match
        risen = last.judged / max(min(each.judged for each in epochs), 1e-12)
        apart = last.valid_loss / max(last.loss, 1e-12)
        if gap < GAP.value:
            return None
        valid = last.valid_exact_match
        text = f"{train:.1%} of training examples are right and {valid:.1%} of validation examples"
        evidence = {
            "training accuracy": train,
            "validation accuracy": valid,
            "validation loss over training loss": apart,
            "validation loss over its lowest": risen,
        }
        remedy = Remedy(
            "use more examples, or fresh ones each epoch; then augmentation, dropout, weight decay or a "
            "smaller model",
            command=f"attnlab train {patient.spec.task.kind} --task.train {4 * patient.spec.task.train}",
        )
        curve = Curve(
            "epoch",
            "loss",
            [float(each.epoch) for each in epochs],
            {
                "training": [each.loss for each in epochs],
                "validation": [each.valid_loss for each in epochs],
            },
        )
        sure = risen >= RISEN.value
        return self.finding(
            "serious" if sure else "warning", 0.9 if sure else 0.6, text, evidence, remedy, curve
        )


@final
class KeptByWrongMetric(Fault):
    """Other weights than the kept ones had a clearly higher validation accuracy."""

    kind = "kept-by-wrong-metric"
    family = "evaluation"
    source = "log"
    looks_at = "validation accuracy of each epoch beside that of the epoch whose weights were kept"
    limits = (KEPT,)

    def examine(self, patient: Patient) -> Finding | None:
        epochs = epochs_of(patient, 2)
        kept = min(epochs, key=lambda each: each.judged)
        best = max(epochs, key=lambda each: each.valid_exact_match)
        lost = best.valid_exact_match - kept.valid_exact_match
        if lost <= KEPT.value:
            return None
        text = (
            f"epoch {kept.epoch} has the lowest loss and was kept, but epoch {best.epoch} gets "
            f"{lost:.1%} more validation examples right"
        )
        evidence = {
            "accuracy of the kept weights": kept.valid_exact_match,
            "best accuracy": best.valid_exact_match,
        }
        remedy = Remedy(
            "choose weights by the measure that you report or smooth labels so that loss and accuracy agree"
        )
        curve = Curve(
            "epoch",
            "validation",
            [float(each.epoch) for each in epochs],
            {
                "accuracy": [each.valid_exact_match for each in epochs],
                "loss": [each.judged for each in epochs],
            },
        )
        return self.finding("warning", 0.8, text, evidence, remedy, curve)


FAULTS = (RateTooLow, LossStuck, RateTooHigh, ScheduleEndsEarly, Memorising, KeptByWrongMetric)
