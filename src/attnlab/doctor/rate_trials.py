"""The experiment of rates: the same short training at the run's rate, three times as high and as low, and
on from there; and what it says of the findings that the log gave.

A short training likes higher rates than a long one, so that another rate is faster is not a fault by
itself. It confirms or refutes what the log shows, and it is a finding of its own only where another rate
gets as far in a small part of the run's steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, final

from attnlab.doctor.bench import Course, OverError
from attnlab.doctor.findings import Check, Curve, Finding, Outcome, Remedy, Settings
from attnlab.doctor.limits import FAR, FASTER, SOON
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.doctor.remedies import rounded
from attnlab.doctor.training_log import solved, steps_of, tenth
from attnlab.doctor.usual import usual_rate
from attnlab.specs import with_settings

PLANS = ((2, 3, 3), (1, 3, 1))
"""Trainings at each rate, rates at first and further ones; the second where the budget is small."""
SHARE = 0.5
"""Of the budget."""
RATES = frozenset(("rate-too-low", "rate-too-high", "loss-stuck"))
"""Kinds that say something of the rate."""
CONFIRMED, REFUTED = 0.95, 0.3
"""The confidence of what was confirmed, and what is left of that of what was refuted."""
NEAR = 5
"""Losses whose mean says that a loss is reached."""

Verdict = Literal["low", "high", "fits"]


@final
@dataclass(frozen=True)
class RateTrial:
    """Courses of short trainings by their rate, one for each seed; ``own`` is the run's."""

    own: float
    steps: int
    courses: dict[float, list[Course]]

    def end(self, rate: float) -> float:
        """The mean logarithm of the loss at the end."""
        return fmean(self._ends(rate))

    def _ends(self, rate: float) -> list[float]:
        """Below a hundredth of the first loss all are alike."""
        return [math.log(max(each.end, each.start / 100)) for each in self.courses[rate]]

    @property
    def best(self) -> float:
        return min(self.courses, key=self.end)

    @property
    def verdict(self) -> Verdict:
        """Whether another rate is better by more than the seeds differ."""
        best = self.best
        ends = [self._ends(rate) for rate in (best, self.own)]
        if len(ends[0]) == 1:
            spread = 2 * FASTER.value  # a single seed does not tell how far they differ
        else:
            spread = max(max(each) - min(each) for each in ends if max(each) < math.inf)
        if best == self.own or self.end(self.own) - self.end(best) <= max(FASTER.value, spread):
            return "fits"
        return "low" if best > self.own else "high"

    def losses(self, rate: float) -> list[float]:
        """Of each step, the mean over seeds."""
        return [fmean(each) for each in zip(*(course.losses for course in self.courses[rate]), strict=True)]

    def reaches(self, rate: float, target: float) -> int | None:
        """The step after which the loss is down to ``target``."""
        losses = self.losses(rate)
        ends = range(NEAR, len(losses) + 1)
        return next((at for at in ends if fmean(losses[at - NEAR : at]) <= target), None)


def try_rates(patient: Patient) -> RateTrial:
    """Train at the run's rate and around it; on at whichever end is best, as long as the budget allows."""
    return patient.once("rates", lambda: _try(patient))


def _try(patient: Patient) -> RateTrial:
    bench, spec, own = patient.bench, patient.spec, patient.recipe.lr
    (seeds, further), steps = _plan(patient)
    trial = RateTrial(own, steps, {})

    def add(rate: float) -> None:
        trial.courses[rate] = [
            bench.train(
                with_settings(spec, {"training.lr": rate, "seed": spec.seed + number}),
                patient.learned,
                steps,
            )
            for number in range(seeds)
        ]

    for rate in (own, *_around(patient)):
        add(rate)
    for _ in range(further):
        best = trial.best
        if best not in (max(trial.courses), min(trial.courses)):
            break
        try:
            add(rounded(best * 3 if best == max(trial.courses) else best / 3))
        except OverError:
            break
    return trial


def _plan(patient: Patient) -> tuple[tuple[int, int], int]:
    """Seeds and further rates, and the steps of each training."""
    for seeds, first, further in PLANS[:-1]:
        try:
            steps = patient.bench.steps(patient.spec, patient.learned, SHARE, seeds * (first + further))
            return (seeds, further), steps
        except OverError:
            continue
    seeds, first, further = PLANS[-1]
    steps = patient.bench.steps(patient.spec, patient.learned, SHARE, seeds * (first + further))
    return (seeds, further), steps


def _around(patient: Patient) -> list[float]:
    """Three times the rate and a third of it; the usual rate instead of the one that is on its side."""
    own, usual = patient.recipe.lr, usual_rate(patient)
    up, down = rounded(own * 3), rounded(own / 3)
    if usual > FAR.value * own:
        return [rounded(usual), down]
    return [up, rounded(usual)] if usual < own / FAR.value else [up, down]


def refined(
    patient: Patient, findings: Sequence[Finding], checks: Sequence[Check]
) -> tuple[list[Finding], list[Check]]:
    """Findings and checks, as the experiment of rates confirms and refutes them."""
    try:
        patient.require_ended()
        if solved(patient):
            return list(findings), list(checks)
        trial = try_rates(patient)
        steps = steps_of(patient)
    except (UncheckedError, OverError):
        return list(findings), list(checks)
    losses = [each.loss for each in steps]
    target, count = tenth(losses, 0.9), steps[-1].step
    told = _told(trial, target, count)
    judged = [_judged(each, trial, told) for each in findings]
    kind = {"low": "rate-too-low", "high": "rate-too-high", "fits": ""}[trial.verdict]
    if kind and kind not in {each.kind for each in judged} and _telling(trial, target, count, losses):
        severity: Literal["serious"] = "serious"
        judged.append(Finding(kind, severity, 0.8, "optimisation", "experiment", told, {}, Remedy("")))
        judged[-1] = _with_numbers(judged[-1], trial, told)
    found = {each.kind: each for each in judged}
    return judged, [_checked(each, found) for each in checks]


def _checked(check: Check, found: dict[str, Finding]) -> Check:
    """A kind that the experiment alone has found is not clear."""
    if check.kind not in found or check.outcome == "found":
        return check
    outcome: Outcome = "found"
    return replace(check, outcome=outcome, source=found[check.kind].source, reason="")


def _telling(trial: RateTrial, target: float, count: int, losses: Sequence[float]) -> bool:
    """Whether the experiment alone shows that the rate is wrong."""
    reached = trial.reaches(trial.best, target)
    if reached is not None and reached <= SOON.value * count:
        return target < losses[0]
    own, best = (trial.courses[rate][0] for rate in (trial.own, trial.best))
    return trial.verdict == "high" and own.end >= own.start and best.end < best.start


def _told(trial: RateTrial, target: float, count: int) -> str:
    """What the experiment shows, as a sentence."""
    best, own = trial.best, trial.own
    reached = trial.reaches(best, target)
    if best != own and reached is not None and reached < count:
        return f"a rate of {best:g} reaches in {reached:,} steps what this one reached in {count:,}"
    first, second = (math.exp(trial.end(rate)) for rate in (best, own))
    return (
        f"{trial.steps:,} steps get the loss to {first:.3g} at a rate of {best:g}, {second:.3g} at {own:g}"
    )


def _judged(finding: Finding, trial: RateTrial, told: str) -> Finding:
    """A finding about the rate, confirmed or refuted."""
    verdict = trial.verdict
    if finding.kind not in RATES:
        return finding
    if {"rate-too-low": "low", "rate-too-high": "high"}.get(finding.kind, verdict) == verdict != "fits":
        return _with_numbers(replace(finding, text=f"{finding.text}; {told}"), trial, "")
    if finding.kind == "loss-stuck":
        return finding
    text = f"{finding.text}; but no such rate learns faster: {told}"
    return replace(finding, confidence=round(REFUTED * finding.confidence, 2), text=text)


def _with_numbers(finding: Finding, trial: RateTrial, text: str) -> Finding:
    """With the best rate as its remedy, and what every rate came to."""
    best = trial.best
    ends = {f"loss at a rate of {rate:g}": math.exp(trial.end(rate)) for rate in sorted(trial.courses)}
    settings: Settings = {"training.lr": best}
    lines = {f"{rate:g}": trial.losses(rate) for rate in sorted(trial.courses)}
    finite = {name: each for name, each in lines.items() if max(each) < math.inf}
    steps = [float(step) for step in range(1, trial.steps + 1)]
    return replace(
        finding,
        confidence=finding.confidence if text else max(finding.confidence, CONFIRMED),
        text=text or finding.text,
        evidence={**finding.evidence, **{name: end for name, end in ends.items() if end < math.inf}},
        remedy=Remedy(
            f"try a rate of {best:g}",
            code=f'for group in optimiser.param_groups: group["lr"] = {best:g}',
            settings={**finding.remedy.settings, **settings},
        ),
        curve=Curve("step", "loss of a short training, by rate", steps, finite),
    )
