"""Faults that the log of a training shows: its schedule, its end, and which weights were kept."""

import math
from statistics import fmean, median
from typing import final

from attnlab.doctor.causes import UNFORMED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.limits import (
    BY_HEART_ALL,
    DONE,
    EARLY,
    FLAT,
    GAP,
    KEPT,
    KEPT_NOISE,
    RISEN,
    STUCK,
)
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.remedies import more_examples
from attnlab.doctor.usual import other_rate, warmed
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
    """Whether the best validation accuracy leaves little to be learned, or that of the last batches where
    nothing was validated; without a log it is not known.
    """
    try:
        steps, epochs = patient.metrics.steps, patient.metrics.epochs
    except UncheckedError:
        return False
    if not epochs and steps:
        return final_accuracy(steps) >= DONE.value
    return max((each.valid_exact_match for each in epochs), default=0.0) >= DONE.value


def best_accuracy(patient: Patient) -> float:
    """The best validation accuracy that was logged."""
    return max((each.valid_exact_match for each in patient.metrics.epochs), default=0.0)


def tenth(losses: list[float], first: float) -> float:
    """The median of a tenth of the windows from the share ``first`` on."""
    start = min(int(first * len(losses)), len(losses) - 1)
    return median(losses[start : start + max(1, len(losses) // 10)])


def rate_code(rate: float) -> str:
    return f'for group in optimiser.param_groups: group["lr"] = {rate:g}'


def final_accuracy(steps: list[StepRecord]) -> float:
    """Of the last twentieth of the training batches."""
    return fmean(each.exact_match for each in steps[-max(1, len(steps) // 20) :])


@final
class LossStuck(Fault):
    """The loss at the end is that of the beginning: nothing was learned."""

    kind = "loss-stuck"
    family = "optimisation"
    source = "log"
    looks_at = "the training loss at the end beside that at the beginning"
    limits = (STUCK, DONE)
    explains = ("constant-predictor", "majority-class")

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_ended()
        steps = steps_of(patient)
        losses = [each.loss for each in steps]
        start, end = tenth(losses, 0.0), tenth(losses, 0.9)
        if solved(patient) or not STUCK.value * start <= end <= start / STUCK.value:
            return None
        rate = other_rate(patient)
        text = f"the training loss went from {start:.3g} to {end:.3g} only: nothing was learned"
        remedy = Remedy(
            f"try a rate of {rate:g} with a warm-up; if a few examples cannot be learned by heart at any "
            "rate, the model, the loss or the labels are broken",
            code=rate_code(rate),
            settings={"training.lr": rate, **warmed(patient.recipe)},
        )
        evidence = {"loss at the beginning": start, "loss at the end": end}
        return self.finding("serious", 0.3, text, evidence, remedy, loss_curve(steps))


@final
class ScheduleEndsEarly(Fault):
    """The learning rate is next to nothing for much of the training."""

    kind = "schedule-ends-early"
    family = "optimisation"
    source = "log"
    looks_at = "the share of steps behind the last rate of use, while accuracy is low"
    limits = (FLAT, EARLY, DONE)
    explains = ("rate-too-low", "labels-wrong", *UNFORMED)

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
            code="schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)",
            settings={"training.schedule": "cosine"},
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
    limits = (GAP, RISEN, BY_HEART_ALL)
    explains = ("kept-by-wrong-metric",)

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
            settings={} if patient.known_spec is None else more_examples(patient.known_spec),
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
        worse = risen >= RISEN.value
        spent = train >= BY_HEART_ALL.value  # nothing is left to be learned of them
        severity: Severity = "serious" if worse else "warning" if spent else "note"
        sure = 0.4 if severity == "note" else 0.9
        return self.finding(severity, sure, text, evidence, remedy, curve)


@final
class KeptByWrongMetric(Fault):
    """Other weights than the kept ones had a clearly higher validation accuracy."""

    kind = "kept-by-wrong-metric"
    family = "evaluation"
    source = "log"
    looks_at = (
        "the epoch whose weights were kept, beside those of the lowest validation loss and of the highest "
        "validation accuracy"
    )
    limits = (KEPT, KEPT_NOISE)
    explains = ("rate-too-low", "clipped-mostly", *UNFORMED)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.known_spec is None:
            raise InapplicableError("which weights are kept is up to the loop")
        epochs = epochs_of(patient, 2)
        lowest = min(epochs, key=lambda each: each.judged)
        kept = next((each for each in reversed(epochs) if each.best), lowest)
        best = max(epochs, key=lambda each: each.valid_exact_match)
        lost = best.valid_exact_match - kept.valid_exact_match
        if kept.judged <= lowest.judged and lost <= KEPT_NOISE.value * self._noise(patient, best, kept):
            return None
        if lost <= KEPT.value:
            return None
        evidence = {
            "accuracy of the kept weights": kept.valid_exact_match,
            "best accuracy": best.valid_exact_match,
        }
        curve = Curve(
            "epoch",
            "validation",
            [float(each.epoch) for each in epochs],
            {
                "accuracy": [each.valid_exact_match for each in epochs],
                "loss": [each.judged for each in epochs],
            },
        )
        more = f"epoch {best.epoch} gets {lost:.1%} more validation examples right"
        if kept.judged > lowest.judged:
            text = f"epoch {kept.epoch} was kept, which has not the lowest loss, and {more}"
            remedy = Remedy(
                "keep the weights of the lowest loss or of the highest accuracy: look at the sign",
                code="if loss < lowest: lowest, kept = loss, copy.deepcopy(model.state_dict())",
            )
            return self.finding("serious", 0.95, text, evidence, remedy, curve, from_start=True)
        text = f"epoch {kept.epoch} has the lowest loss and was kept, but {more}"
        remedy = Remedy(
            "choose weights by the measure that you report, or smooth labels so that loss and accuracy "
            "agree",
            code="loss = F.cross_entropy(logits, targets, label_smoothing=0.1)",
            settings={"training.smoothing": 0.1},
        )
        return self.finding("warning", 0.4, text, evidence, remedy, curve)

    @staticmethod
    def _noise(patient: Patient, *epochs: EpochRecord) -> float:
        """The standard error of a difference of two accuracies, as if of other examples each; 0 if their
        number is not known.
        """
        shares = [each.valid_exact_match for each in epochs]
        spec = patient.known_spec
        return (
            0.0 if spec is None else math.sqrt(sum(p * (1 - p) for p in shares) / max(1, spec.task.valid))
        )


FAULTS = (LossStuck, ScheduleEndsEarly, Memorising, KeptByWrongMetric)
