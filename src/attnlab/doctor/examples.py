"""Faults of the data: examples in two splits, answers never seen, inputs not scaled, skewed classes."""

from collections import Counter
from typing import final

import torch
from torch import Tensor

from attnlab.doctor.causes import MISJUDGED, UNLEARNED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import ALARM, OVERLAP, SKEWED, TINY, UNSCALED
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError, distinct
from attnlab.doctor.quick import draw
from attnlab.doctor.rows import beyond_chance, repeated, rows_of
from attnlab.sets import Examples

TOKENS_READ = 5_000
"""Training examples whose tokens are collected."""


@final
class SplitsOverlap(Fault):
    """Validation examples are training examples too."""

    kind = "splits-overlap"
    family = "data"
    source = "probe"
    looks_at = "inputs of validation examples among those of training examples, beyond what chance gives"
    limits = (OVERLAP, ALARM)
    explains = ("memorising", "kept-by-wrong-metric", "labels-wrong")

    def examine(self, patient: Patient) -> Finding | None:
        learned, rows = rows_of(patient.learned), rows_of(patient.judged)
        known = set(learned)
        count = sum(row in known for row in rows)
        share, twice = count / len(rows), repeated(learned)
        if share <= OVERLAP.value:
            return None
        severity: Severity = "serious" if share > 10 * OVERLAP.value else "warning"
        text = f"{share:.1%} of validation examples are among the training examples, so accuracy flatters"
        remedy = Remedy(
            "draw the splits apart, and drop what occurs twice",
            code="valid = [e for e in valid if e not in known]",
        )
        evidence = {"share of validation examples": share, "share by chance": twice / len(learned)}
        if beyond_chance(count, len(rows), twice, len(learned)):
            return self.finding(severity, 0.8, text, evidence, remedy)
        text += f"; chance gives that many, since {twice / len(learned):.1%} of the latter occur twice"
        return self.finding("note", 0.5, text, evidence, remedy)


@final
class AnswerUnseen(Fault):
    """A class or token of validation examples never occurs in training examples."""

    kind = "answer-unseen"
    family = "data"
    source = "probe"
    looks_at = "classes or tokens of the answers in both splits, and tokens of the inputs, beyond chance"
    limits = (ALARM,)
    explains = ("splits-differ", *MISJUDGED)

    def examine(self, patient: Patient) -> Finding | None:
        train, valid = (distinct(each.targets.flatten()) for each in (patient.learned, patient.judged))
        answers = sorted(set(valid.tolist()) - set(train.tolist()))
        read = draw(patient.learned, TOKENS_READ).examples
        tokens = sorted(_tokens(patient.judged) - _tokens(read))
        if not answers and not tokens:
            return None
        what, which = ("answers", answers) if answers else ("tokens", tokens)
        text = f"{what} {', '.join(map(str, which[:8]))} are asked for but never occur in training"
        remedy = Remedy(f"draw training examples so that every one of the {what} occurs")
        evidence = {
            "answers never seen": float(len(answers)),
            "input tokens never seen": float(len(tokens)),
        }
        asked, known = (each.targets if answers else each.inputs[0] for each in (patient.judged, read))
        count, alone = int(_holding(asked, which).sum()), _alone(known)
        evidence["share by chance"] = alone / len(known)
        if beyond_chance(count, len(asked), alone, len(known)):
            return self.finding("warning", 0.8, text, evidence, remedy)
        text += f"; as chance has it with {len(known)} training examples"
        return self.finding("note", 0.5, text, evidence, remedy)


def _tokens(examples: Examples) -> set[int]:
    """Every token of the first inputs; none where they are no tokens."""
    first = examples.inputs[0]
    return set() if first.is_floating_point() else set(distinct(first.flatten()).tolist())


def _holding(values: Tensor, which: list[int]) -> Tensor:
    """Which rows hold one of the values."""
    return torch.isin(values.reshape(len(values), -1), torch.tensor(which)).any(dim=1)


def _alone(values: Tensor) -> int:
    """How many rows hold a value which no other row has."""
    rows = [set(row) for row in values.reshape(len(values), -1).tolist()]
    counts = Counter(value for row in rows for value in row)
    return sum(any(counts[value] == 1 for value in row) for row in rows)


@final
class InputsUnscaled(Fault):
    """The numbers of the input are large, such as pixels from 0 to 255, or next to nothing."""

    kind = "inputs-unscaled"
    family = "data"
    source = "probe"
    looks_at = "mean and spread of inputs that are no tokens, over the training batches or some examples"
    limits = (UNSCALED, TINY)
    explains = ("initial-loss-high", "gradients-vanish", "gradients-explode", *MISJUDGED, *UNLEARNED)

    def examine(self, patient: Patient) -> Finding | None:
        mean, spread = _moments(patient)
        if max(abs(mean), spread) <= UNSCALED.value and spread >= TINY.value:
            return None
        text = f"inputs have a mean of {mean:.3g} and a spread of {spread:.3g}"
        remedy = Remedy(
            "scale inputs to a mean of 0 and a spread of 1",
            code=f"x = (x - {mean:.4g}) / {spread:.4g}",
        )
        evidence = {"mean": mean, "spread": spread}
        return self.finding("serious", 0.9, text, evidence, remedy, from_start=True)


def _moments(patient: Patient) -> tuple[float, float]:
    """Mean and spread of the first input, of all batches that were watched, or of the few examples."""
    try:
        seen = patient.observed.inputs
    except UncheckedError:
        seen = None
    if seen is not None and seen.mean is not None and seen.std is not None:
        return seen.mean, seen.std
    given = patient.inputs[0]
    if not given.is_floating_point():
        raise InapplicableError("its inputs are tokens")
    return given.double().mean().item(), given.double().std().item()


@final
class ClassesSkewed(Fault):
    """One class makes up nearly all training examples."""

    kind = "classes-skewed"
    family = "data"
    source = "probe"
    looks_at = "the share of the most frequent class among training examples"
    limits = (SKEWED,)
    explains = ("majority-class", "constant-predictor")

    def examine(self, patient: Patient) -> Finding | None:
        targets = patient.learned.targets
        if targets.dim() != 1:
            raise InapplicableError("its answers are no classes")
        share = _largest_share(targets)
        if share <= SKEWED.value:
            return None
        text = f"{share:.1%} of training examples have the same class"
        remedy = Remedy("balance the classes, or weigh the loss by their shares; report accuracy by class")
        return self.finding("warning", 0.6, text, {"share of the most frequent class": share}, remedy)


def _largest_share(targets: Tensor) -> float:
    counts = torch.stack([(targets == each).double().mean() for each in distinct(targets)])
    return counts.max().item()


FAULTS = (SplitsOverlap, AnswerUnseen, InputsUnscaled, ClassesSkewed)
