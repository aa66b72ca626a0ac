"""Faults of the data: examples in two splits, answers never seen, inputs not scaled, skewed classes."""

from typing import final

import torch
from torch import Tensor

from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import OVERLAP, SKEWED, UNSCALED
from attnlab.doctor.patient import InapplicableError, Patient, distinct
from attnlab.sets import Examples

LOOKED, LOOKED_MADE = 20_000, 1_000
"""Training examples that are compared: those in memory, and those that are made when asked for."""


@final
class SplitsOverlap(Fault):
    """Validation examples are training examples too."""

    kind = "splits-overlap"
    family = "data"
    source = "probe"
    looks_at = "inputs of validation examples among those of training examples"
    limits = (OVERLAP,)

    def examine(self, patient: Patient) -> Finding | None:
        known = set(_rows(patient.learned))
        rows = _rows(patient.judged)
        share = sum(row in known for row in rows) / len(rows)
        if share <= OVERLAP.value:
            return None
        severity: Severity = "serious" if share > 10 * OVERLAP.value else "warning"
        text = f"{share:.1%} of validation examples are among the training examples, so accuracy flatters"
        remedy = Remedy(
            "draw the splits apart, and drop what occurs twice",
            code="valid = [e for e in valid if e not in known]",
        )
        return self.finding(severity, 0.8, text, {"share of validation examples": share}, remedy)


def _rows(examples: Examples) -> list[bytes]:
    """The first input of each example as bytes."""
    most = LOOKED if examples.made is None else LOOKED_MADE
    first = examples[slice(0, most)].inputs[0].contiguous()
    return [row.numpy().tobytes() for row in first]


@final
class AnswerUnseen(Fault):
    """A class or token of validation answers never occurs in training answers."""

    kind = "answer-unseen"
    family = "data"
    source = "probe"
    looks_at = "classes or tokens of the answers in both splits"

    def examine(self, patient: Patient) -> Finding | None:
        train, valid = (distinct(each.targets.flatten()) for each in (patient.learned, patient.judged))
        missing = sorted(set(valid.tolist()) - set(train.tolist()))
        if not missing:
            return None
        text = f"answers {', '.join(map(str, missing[:8]))} are asked for but never occur in training"
        remedy = Remedy("draw training examples so that every answer occurs")
        return self.finding("warning", 0.8, text, {"answers never seen": float(len(missing))}, remedy)


@final
class InputsUnscaled(Fault):
    """The numbers of the input are large, such as pixels from 0 to 255."""

    kind = "inputs-unscaled"
    family = "data"
    source = "probe"
    looks_at = "mean and spread of inputs that are no tokens"
    limits = (UNSCALED,)

    def examine(self, patient: Patient) -> Finding | None:
        given = patient.inputs[0]
        if not given.is_floating_point():
            raise InapplicableError("its inputs are tokens")
        mean, spread = given.double().mean().item(), given.double().std().item()
        if max(abs(mean), spread) <= UNSCALED.value:
            return None
        text = f"inputs have a mean of {mean:.3g} and a spread of {spread:.3g}"
        remedy = Remedy(
            "scale inputs to a mean of 0 and a spread of 1", code=f"x = (x - {mean:.4g}) / {spread:.4g}"
        )
        return self.finding("serious", 0.7, text, {"mean": mean, "spread": spread}, remedy)


@final
class ClassesSkewed(Fault):
    """One class makes up nearly all training examples."""

    kind = "classes-skewed"
    family = "data"
    source = "probe"
    looks_at = "the share of the most frequent class among training examples"
    limits = (SKEWED,)

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
