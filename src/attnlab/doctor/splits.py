"""Faults of how examples were split: drawn differently, the same again, and places that training never had.

Several tests look for one fault, so their p-values are adjusted by Holm's method: of healthy splits, which
are drawn alike, at most the share ``alarm`` is accused, whatever the data.
"""

from typing import final

import numpy as np
import torch
from numpy import ndarray

from attnlab.analysis.statistics import holm
from attnlab.doctor.causes import MISJUDGED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import ALARM, APART, GOOD, REPEATED, TELLING
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.doctor.quick import Sample, apart, counted, crossed, hits_by_chance, numbers, sampled
from attnlab.doctor.rows import rows_of

COMPARED = 400
"""Examples of each split."""


@final
class SplitsDiffer(Fault):
    """Training and validation examples are drawn differently."""

    kind = "splits-differ"
    family = "data"
    source = "probe"
    looks_at = (
        "lengths, tokens and answers of both splits, and whether a quick classifier can say which split an "
        "input is of; permutation tests, adjusted by Holm's method"
    )
    limits = (ALARM, APART, TELLING, GOOD)
    explains = ("labels-shuffled", "rate-too-low", *MISJUDGED)

    def examine(self, patient: Patient) -> Finding | None:
        train, valid = (sampled(patient, split, COMPARED) for split in ("train", "valid"))
        found = _tests(train, valid)
        adjusted = holm([p for _, p, _ in found.values()])
        names = [
            name
            for (name, (size, _, least)), p in zip(found.items(), adjusted, strict=True)
            if p <= ALARM.value and size >= least
        ]
        if not names:
            return None
        text = f"training and validation examples differ in {', '.join(names)}"
        evidence = {f"difference of {name}": found[name][0] for name in names}
        evidence["p, adjusted"] = min(adjusted)
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "note"
        remedy = Remedy(
            "draw both splits from the same examples, at random; if they should differ, validate on more "
            "examples like those of training as well",
            code="examples = examples[torch.randperm(len(examples))]  # then cut it in two",
        )
        return self.finding(severity, 0.75, text, evidence, remedy)


def _tests(train: Sample, valid: Sample) -> dict[str, tuple[float, float, float]]:
    """By what is compared: how large the difference is, its p-value, and the least that counts."""
    found = {}
    if train.is_tokens and valid.is_tokens:
        lengths = np.concatenate([each.lengths.numpy() for each in (train, valid)])
        if len(np.unique(lengths)) > 1:
            found["lengths"] = (*_of_kinds(lengths, len(train.lengths)), APART.value)
        found["tokens"] = (*apart(*counted([train, valid])), APART.value)
    answers = [each.examples.targets for each in (train, valid)]
    if answers[0].dim() == 1:
        both = torch.cat(answers).numpy()
        if len(np.unique(both)) > 1:
            found["answers"] = (*_of_kinds(both, len(answers[0])), APART.value)
    found["inputs"] = (*_told_apart(train, valid), TELLING.value)
    return found


def _of_kinds(values: ndarray, first: int) -> tuple[float, float]:
    """Of one value an example; the ``first`` of them are of the one split."""
    shares = np.eye(len(np.unique(values)))[np.unique(values, return_inverse=True)[1]]
    return apart(shares[:first], shares[first:])


def _told_apart(train: Sample, valid: Sample) -> tuple[float, float]:
    """How many more examples a quick classifier puts into the right split than chance, as a share."""
    rows = np.concatenate(numbers([train, valid]))
    split = np.repeat([0, 1], [len(train.first), len(valid.first)])
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    said = crossed(rows[order], split[order])
    share, chance, p = hits_by_chance(said, split[order])
    return share - chance, p


@final
class ExamplesRepeated(Fault):
    """Most training examples are there more than once."""

    kind = "examples-repeated"
    family = "data"
    source = "probe"
    looks_at = "inputs of training examples that are the same as another's, in all or in a batch"
    limits = (REPEATED, GOOD)
    explains = ("memorising",)

    def examine(self, patient: Patient) -> Finding | None:
        share, text = _repeated(patient)
        if share < REPEATED.value:
            return None
        severity: Severity = "warning" if patient.accuracy < GOOD.value else "note"
        remedy = Remedy(
            "drop what occurs twice, and draw more examples that differ; repeated ones count several times",
            code="examples = list(dict.fromkeys(examples))",
        )
        return self.finding(severity, 0.6, text, {"share of repetitions": share}, remedy)


def _repeated(patient: Patient) -> tuple[float, str]:
    """The share of repetitions among examples, or in the batches that were watched if that is larger."""
    rows = rows_of(patient.learned)
    count = len(set(rows))
    share, text = 1 - count / len(rows), f"of {len(rows):,} training examples only {count:,} are different"
    try:
        seen = patient.observed.inputs
    except UncheckedError:
        seen = None
    if seen is None or seen.repeated <= share:
        return share, text
    return seen.repeated, f"{seen.repeated:.0%} of the examples of a batch are another one of it again"


FAULTS = (SplitsDiffer, ExamplesRepeated)
