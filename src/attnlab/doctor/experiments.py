"""Faults that only an experiment shows: one batch that cannot be learned by heart, labels that are no
easier than shuffled ones, positions without which nothing is lost.
"""

import math
from statistics import fmean
from typing import final

import torch

from attnlab.doctor.bench import Bench, Course
from attnlab.doctor.causes import MISLED, UNLEARNED
from attnlab.doctor.doubts import doubts, knows, most_frequent
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy, Settings, Severity
from attnlab.doctor.labels import readable
from attnlab.doctor.limits import ALARM, BY_HEART, CHANCE_P, LEARNED, NO_EASIER
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.doctor.remedies import rounded
from attnlab.doctor.training_log import solved
from attnlab.doctor.usual import usual_rate
from attnlab.errors import LabError
from attnlab.sets import Examples
from attnlab.specs import Spec, with_settings
from attnlab.training.measuring import measure

ONE, FEW, HELD, BATCH = 16, 128, 300, 32
"""Examples of the one batch, of the trainings that compare labels, those held back, and in a batch."""
SEEDS = 2
PATIENT = 300
"""Steps at a rate, after which a batch should have been learned."""


def _plain(spec: Spec, batch: int, rate: float) -> Spec:
    """Nothing that keeps a model from learning examples by heart."""
    settings: Settings = {"training.batch": batch, "training.lr": rate, "training.smoothing": 0.0}
    for key in ("model.dropout", "training.optimiser.weight_decay"):
        try:
            with_settings(spec, {key: 0.0})
        except LabError:
            continue
        settings[key] = 0.0
    return with_settings(spec, settings)


@final
class CannotOverfitOneBatch(Fault):
    """A few examples cannot be learned by heart at any rate: model, loss or labels are broken."""

    kind = "cannot-overfit-one-batch"
    family = "optimisation"
    source = "experiment"
    looks_at = "accuracy on one batch after a training on nothing else, at several rates"
    limits = (BY_HEART,)
    explains = UNLEARNED

    def examine(self, patient: Patient) -> Finding | None:
        bench, spec = patient.bench, patient.spec
        batch = patient.learned[slice(0, ONE)]
        if len({row.numpy().tobytes() for row in batch.targets}) < 2:
            raise UncheckedError("the examples of the batch have one and the same answer")
        usual, own = rounded(usual_rate(patient)), patient.recipe.lr
        rates = list(dict.fromkeys((usual, rounded(usual / 3), own)))
        begun = _plain(spec, len(batch), usual)
        steps = bench.steps(begun, batch, 0.4, len(rates))
        courses = dict[float, Course]()
        for rate in rates:
            courses[rate] = bench.train(
                _plain(spec, len(batch), rate),
                batch,
                steps,
                enough=lambda _, right: right >= BY_HEART.value,
            )
            if courses[rate].exact[-1] >= BY_HEART.value:
                return None
        if steps < PATIENT:
            raise UncheckedError(f"{steps} steps a rate, which the budget allows, did not learn one batch")
        best = max(max(course.exact) for course in courses.values())
        text = f"{len(batch)} examples are not learned by heart in {steps:,} steps, at {len(rates)} rates"
        remedy = Remedy(
            "look for answers that the inputs do not decide, for inputs that do not reach the output, and "
            "for a loss that is not of the answers",
            code="loss = F.cross_entropy(model(x[:16]), y[:16])  # train on these alone",
        )
        evidence = {"best accuracy on the batch": best, "examples": float(len(batch))}
        evidence |= {f"loss at a rate of {rate:g}": course.end for rate, course in courses.items()}
        evidence = {name: value for name, value in evidence.items() if value < math.inf}
        return self.finding("serious", 0.8, text, evidence, remedy, _curve(courses))


@final
class LabelsRandom(Fault):
    """The training labels are no easier to learn than shuffled ones."""

    kind = "labels-random"
    family = "data"
    source = "experiment"
    looks_at = (
        "short trainings with labels as they are and shuffled, where neither the model, nor a quick "
        "classifier, nor a short training knows an answer better than by chance"
    )
    limits = (CHANCE_P, ALARM, LEARNED, NO_EASIER)
    explains = MISLED

    def examine(self, patient: Patient) -> Finding | None:
        bench = patient.bench
        if knows(doubts(patient, "validation")) or min(readable(patient)) <= ALARM.value:
            return None
        count = len(patient.learned)
        held = patient.learned[slice(count - min(HELD, count // 4), count)]
        rest = patient.learned[slice(0, count - len(held))]
        spec = _plain(patient.spec, min(BATCH, len(rest)), rounded(usual_rate(patient)))
        steps = bench.steps(spec, rest, 0.5, 1 + 2 * SEEDS)
        if _generalises(bench.train(spec, rest, steps), held):
            return None
        examples = rest[slice(0, FEW)]
        shuffled = _shuffled(patient, examples)
        true, other = (_courses(bench, spec, each, steps) for each in (examples, shuffled))
        if _end(other) > LEARNED.value * other[0].start:
            raise UncheckedError(f"{steps:,} steps are too few to learn shuffled labels by heart")
        gained = (_end(other) - _end(true)) / other[0].start
        if gained > max(NO_EASIER.value, _spread(true), _spread(other)):
            return None
        text = f"{steps:,} steps learn the labels no faster than shuffled ones, and validation is at chance"
        remedy = Remedy(
            "check that inputs and labels stay together where they are sorted, shuffled or filtered",
            code="order = torch.randperm(len(x)); x, y = x[order], y[order]",
        )
        evidence = {"loss with the labels": _end(true), "loss with shuffled labels": _end(other)}
        curve = _curve_of({"as they are": true, "shuffled": other})
        return self.finding("serious", 0.45, text, evidence, remedy, curve)


def _generalises(course: Course, held: Examples) -> bool:
    """Whether more answers to examples that were held back are right than by naming the most frequent."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    if course.model is None:
        raise UncheckedError("a short training diverged, so nothing can be compared")
    right = round(measure(course.model, held).exact_match * len(held))
    tested = binomtest(right, len(held), most_frequent(held.targets), alternative="greater")
    return float(tested.pvalue) <= CHANCE_P.value


def _shuffled(patient: Patient, examples: Examples) -> Examples:
    """The same answers, with the inputs of others; tokens of an answer that are fed stay with it."""
    try:
        if patient.fed == 0:
            raise InapplicableError("it goes on with its input, which cannot be taken from another example")
    except InapplicableError:
        if patient.judged.targets.dim() > 1:
            raise
    generator = torch.Generator().manual_seed(patient.spec.seed)
    first, *rest = examples.inputs
    return Examples((first[torch.randperm(len(examples), generator=generator)], *rest), examples.targets)


@final
class PositionsUseless(Fault):
    """Without its positions the model learns as fast."""

    kind = "positions-useless"
    family = "attention"
    source = "experiment"
    looks_at = "short trainings with positions and without"
    limits = (LEARNED, NO_EASIER)

    def examine(self, patient: Patient) -> Finding | None:
        bench, spec = patient.bench, patient.spec
        without = _without_positions(spec)
        steps = bench.steps(spec, patient.learned, 0.8, 2 * SEEDS)
        learned = _courses(bench, spec, patient.learned, steps)
        bare = _courses(bench, without, patient.learned, steps)
        if _end(learned) > LEARNED.value * learned[0].start:
            raise UncheckedError(f"{steps:,} steps learn too little to see what positions are good for")
        gained = (_end(bare) - _end(learned)) / learned[0].start
        if gained > NO_EASIER.value:
            return None
        text = f"in {steps:,} steps the loss falls as far without positions"
        remedy = Remedy(
            "if the order of tokens matters, give positions another form; if not, leave them out"
        )
        evidence = {"loss with positions": _end(learned), "loss without": _end(bare)}
        severity: Severity = "note" if solved(patient) else "warning"
        curve = _curve_of({"with positions": learned, "without": bare})
        return self.finding(severity, 0.5, text, evidence, remedy, curve)


def _without_positions(spec: Spec) -> Spec:
    try:
        found = with_settings(spec, {"model.positions": "none"})
    except LabError as error:
        raise InapplicableError("the model cannot be without positions") from error
    if found == spec:
        raise InapplicableError("the model has no positions")
    return found


def _courses(bench: Bench, spec: Spec, examples: Examples, steps: int) -> list[Course]:
    """One for each seed."""
    found = [
        bench.train(with_settings(spec, {"seed": spec.seed + number}), examples, steps)
        for number in range(SEEDS)
    ]
    if not math.isfinite(_end(found)):
        raise UncheckedError("a short training diverged, so nothing can be compared")
    return found


def _end(courses: list[Course]) -> float:
    return fmean(each.end for each in courses)


def _spread(courses: list[Course]) -> float:
    """How far the ends of seeds are apart, over the first loss."""
    ends = [each.end for each in courses]
    return (max(ends) - min(ends)) / courses[0].start


def _curve(courses: dict[float, Course]) -> Curve:
    return _curve_of({f"{rate:g}": [course] for rate, course in courses.items()})


def _curve_of(courses: dict[str, list[Course]]) -> Curve:
    """The mean loss of each step."""
    lines = {
        name: [fmean(losses) for losses in zip(*(each.losses for each in some), strict=True)]
        for name, some in courses.items()
    }
    finite = {name: line for name, line in lines.items() if max(line) < math.inf}
    longest = max((len(line) for line in finite.values()), default=0)
    return Curve("step", "loss of a short training", [float(n + 1) for n in range(longest)], finite)


FAULTS = (CannotOverfitOneBatch, LabelsRandom, PositionsUseless)
