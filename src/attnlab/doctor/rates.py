"""Faults of the learning rate: by the sizes of steps, if they were watched, and the shape of the loss.

A step relates to the length of the weights that it moves. All steps together are as far as the weights can
get; a first step of fresh weights that is a tenth as long as they are wipes out what they were drawn for.
"""

import math
from itertools import pairwise
from statistics import median
from typing import final

from attnlab.doctor.causes import RESTING, UNFORMED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Severity
from attnlab.doctor.limits import (
    DIVERGED,
    DONE,
    EVEN,
    FALLING,
    FAR_MOVED,
    GOOD,
    HIGH_PEAK,
    JUMP,
    LITTLE,
    MOVED,
    RESTLESS,
    STEEP,
    STUCK,
    WAY,
)
from attnlab.doctor.movement import movement
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.doctor.training_log import (
    best_accuracy,
    final_accuracy,
    loss_curve,
    rate_code,
    solved,
    steps_of,
    tenth,
)
from attnlab.doctor.usual import calmer, faster, slower
from attnlab.doctor.watched import first_steps, step_sizes, way_at_most, weights_grown


@final
class RateTooLow(Fault):
    """The weights hardly moved, or the loss still falls steadily as training ends."""

    kind = "rate-too-low"
    family = "optimisation"
    source = "log"
    looks_at = (
        "how far all steps together can move the weights and did, and the training loss in the last fifth "
        "and the second half of the steps, while training accuracy is low"
    )
    limits = (DONE, GOOD, WAY, MOVED, JUMP, FALLING, EVEN, RESTLESS, LITTLE)
    explains = UNFORMED

    def examine(self, patient: Patient) -> Finding | None:
        if learned(patient):
            return None
        found = self._short_way(patient)
        if found is not None:
            return found
        patient.require_ended()
        steps_of(patient)
        return self._hardly_moved(patient) or self._still_falling(patient)

    def _short_way(self, patient: Patient) -> Finding | None:
        """By the sizes of steps, which can tell before training has ended."""
        try:
            way = way_at_most(patient)
        except UncheckedError:
            return None
        if way >= WAY.value:
            return None
        text = f"all steps together are {way:.2g} times as long as the weights that they should move"
        evidence = {"all steps over the weights": way}
        return self.finding("serious", 0.9, text, evidence, _faster(patient), step_curve(patient))

    def _hardly_moved(self, patient: Patient) -> Finding | None:
        try:
            moved = movement(patient)
        except UncheckedError:
            return None
        if moved >= MOVED.value:
            return None
        rate = patient.recipe.lr
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
        rate, left = patient.recipe.lr, end / start
        text = f"the training loss still falls as training ends, smoothly, at a rate of {rate:g}"
        evidence = {
            "share of the loss that the last fifth took off": falling,
            "share of the fall in the second half": second,
            "loss at the end over that at the beginning": left,
            "learning rate": rate,
        }
        both = falling >= FALLING.value and second >= EVEN.value
        poor = best_accuracy(patient) < GOOD.value
        severity: Severity = "serious" if left > LITTLE.value else "warning" if both and poor else "note"
        sure = 0.7 if both else 0.4
        return self.finding(severity, sure, text, evidence, _faster(patient), loss_curve(steps_of(patient)))


def learned(patient: Patient) -> bool:
    """Whether training or validation accuracy leaves little to be learned, as far as it is known."""
    try:
        steps = steps_of(patient)
    except UncheckedError:
        return solved(patient)
    return solved(patient) or final_accuracy(steps) >= DONE.value


def _faster(patient: Patient) -> Remedy:
    if patient.known_recipe is None:
        return Remedy("try three times the rate; if that is worse, train longer")
    rate = faster(patient)
    return Remedy(
        f"try a rate of {rate:g}; if that is worse, train longer",
        code=rate_code(rate),
        settings={"training.lr": rate},
    )


@final
class RateTooHigh(Fault):
    """Steps are too long for the weights that they move, or the loss jumps or ends higher than it was."""

    kind = "rate-too-high"
    family = "optimisation"
    source = "log"
    looks_at = (
        "the first steps beside the length of the weights, how far they moved in all, the training loss at "
        "the end beside its lowest, and its jumps and peaks above what knowing nothing costs"
    )
    limits = (STEEP, FAR_MOVED, HIGH_PEAK, DIVERGED, STUCK, JUMP, DONE)
    explains = ("warm-up-missing", "labels-wrong", "clipped-mostly", *RESTING)

    def examine(self, patient: Patient) -> Finding | None:
        first, shape = _first(patient), _shape(patient)
        if first is None and shape is None:
            steps_of(patient)  # says what is missing
        if solved(patient):
            return None
        steep = first is not None and first >= STEEP.value and not learned(patient)
        what, evidence = shape or ("", {})
        if not steep and not what:
            return None
        texts = [f"the training loss {what}"] * bool(what)
        if first is not None:
            evidence = {"first steps at the full rate over the weights": first} | evidence
            evidence["weights at the end over those at the beginning"] = weights_grown(patient.observed)
        if steep:
            texts.insert(0, f"the first steps would move the weights by {first:.0%} of their length")
        sure = 0.9 if steep and what else 0.8
        curve = loss_curve(steps_of(patient)) if what else step_curve(patient)
        return self.finding("serious", sure, ", and ".join(texts), evidence, _slower(patient), curve)


def _first(patient: Patient) -> float | None:
    """The size of the first steps at the full rate; None if nobody watched."""
    try:
        return first_steps(patient)
    except UncheckedError:
        return None


def _shape(patient: Patient) -> tuple[str, dict[str, float]] | None:
    """What is wrong with the loss, which may be nothing, and its numbers; None without a log."""
    try:
        losses = [each.loss for each in steps_of(patient)]
    except UncheckedError:
        return None
    width = max(1, len(losses) // 10)
    smooth = [median(losses[at : at + width]) for at in range(len(losses) - width + 1)]
    lowest, end = min(smooth), smooth[-1]
    risen, jump, moved = end / max(lowest, 1e-12), largest_jump(patient), _moved(patient)
    peak = max(smooth[width:], default=0.0) / max(smooth[0], _blind(patient))
    evidence = {
        "loss at the end over its lowest": risen,
        "largest jump": jump,
        "highest loss over that of knowing nothing": peak,
        "median distance of a matrix from its first value": moved,
    }
    if risen >= DIVERGED.value or end > smooth[0] / STUCK.value:
        return f"ends at {end:.3g}, {risen:.1f} times its lowest", evidence
    if final_accuracy(steps_of(patient)) >= DONE.value:
        return "", evidence
    if jump >= JUMP.value:
        return f"jumps up {jump:.1f} times", evidence
    if peak >= HIGH_PEAK.value:
        return f"rises to {peak:.1f} times that of knowing nothing", evidence
    far = moved >= FAR_MOVED.value
    return f"stays high, and the weights moved by {moved:.1f} times their size" if far else "", evidence


def _moved(patient: Patient) -> float:
    """How far the weights moved; 0 where that is not known."""
    try:
        return movement(patient)
    except UncheckedError:
        return 0.0


def _slower(patient: Patient) -> Remedy:
    if patient.known_recipe is None:
        return Remedy("try a third of the rate with a warm-up, and clip gradients")
    lower = slower(patient)
    return Remedy(
        f"try a rate of {lower:g} with a warm-up, and clip gradients",
        code=rate_code(lower),
        settings=calmer(patient),
    )


def step_curve(patient: Patient) -> Curve:
    """The size of each sampled step."""
    sizes = step_sizes(patient)
    return Curve(
        "step", "step over weights", [float(step) for step in sizes], {"median layer": [*sizes.values()]}
    )


def largest_jump(patient: Patient) -> float:
    """The largest of a loss over the median of the five before, of losses above log V, that of knowing
    nothing; 0 if there is none.
    """
    losses = [each.loss for each in steps_of(patient)]
    blind = _blind(patient)
    jumps = (
        b / max(median(losses[n - 5 : n]), 1e-12) for n, b in enumerate(losses) if n >= 5 and b > blind
    )
    return max(jumps, default=0.0)


def _blind(patient: Patient) -> float:
    """What knowing nothing costs; without classes, what the first steps cost."""
    try:
        return math.log(max(2, patient.choices))
    except UncheckedError:
        return tenth([each.loss for each in steps_of(patient)], 0.0)


def restlessness(losses: list[float]) -> float:
    """The typical jump between neighbouring windows, relative to their mean, in the second half."""
    half = losses[len(losses) // 2 :]
    return median(abs(b - a) / max((a + b) / 2, 1e-12) for a, b in pairwise(half))


FAULTS = (RateTooLow, RateTooHigh)
