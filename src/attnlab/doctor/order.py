"""Faults of what the steps of a training are made of: the order of examples, answers without a loss."""

from typing import final

from attnlab.doctor.causes import MISLED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy
from attnlab.doctor.limits import GROUPED, INSIDE, SILENT
from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.doctor.training_log import solved
from attnlab.doctor.watched import samples_of
from attnlab.runs import Answers

COUNTED = 8
"""Targets of a class that must have been seen before it is said to be ignored."""


def answers_of(patient: Patient) -> Answers:
    """The counts of answers."""
    samples_of(patient, 1)
    found = patient.observed.answers
    if found is None:
        why = patient.observed.unseen.get("answers", "no answer was counted")
        raise UncheckedError(f"answers were not counted: {why}")
    return found


@final
class OrderNotShuffled(Fault):
    """The answers of a batch are alike: training examples come in the order of their answers."""

    kind = "order-not-shuffled"
    family = "data"
    source = "log"
    looks_at = "how much more alike the answers of a batch are than those of different batches"
    limits = (GROUPED,)
    explains = ("labels-shuffled", *MISLED)

    def examine(self, patient: Patient) -> Finding | None:
        samples_of(patient)
        grouped = answers_of(patient).grouped
        if grouped is None:
            raise UncheckedError("the answers that were counted do not say whether batches differ")
        if grouped < GROUPED.value:
            return None
        text = f"{grouped:.0%} of the variation of answers is between batches; in shuffled batches none is"
        remedy = Remedy(
            "reshuffle the training examples at each epoch",
            code="loader = DataLoader(examples, batch_size=64, shuffle=True)",
        )
        evidence = {"share of the variation that is between batches": grouped}
        return self.finding("warning" if solved(patient) else "serious", 0.9, text, evidence, remedy)


@final
class AnswerIgnored(Fault):
    """The loss has no gradient at any target of a class or token, so it is never learned."""

    kind = "answer-ignored"
    family = "data"
    source = "log"
    looks_at = "targets at which the loss has no gradient, by their class or token, but for padding"
    limits = (SILENT, INSIDE)
    explains = ("labels-wrong", "labels-shuffled", "diverged", *MISLED)

    def examine(self, patient: Patient) -> Finding | None:
        counts = answers_of(patient)
        ignored = [name for name in counts.silent if _is_ignored(counts, name)]
        if not ignored:
            return None
        share = sum(counts.silent[name] for name in ignored) / sum(counts.seen.values())
        which = ", ".join(ignored[:8])
        text = f"the loss ignores answer {which}: {share:.0%} of the targets have no gradient"
        remedy = Remedy(
            "let the loss ignore padding only, with a number for it that no answer has",
            code="loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-100)",
        )
        names = list(counts.seen)
        curve = Curve(
            "class or token",
            "targets",
            [float(name) for name in names],
            {
                "seen": [float(counts.seen[name]) for name in names],
                "without a gradient": [float(counts.silent.get(name, 0)) for name in names],
            },
        )
        evidence = {"share of targets": share, "answers ignored": float(len(ignored))}
        return self.finding("serious", 0.9, text, evidence, remedy, curve)


def _is_ignored(counts: Answers, name: str) -> bool:
    """Whether none of its targets has a gradient, and they do not all stand where padding would."""
    silent, seen = counts.silent[name], counts.seen.get(name, 0)
    inside = counts.between.get(name, 0)
    return seen >= COUNTED and silent >= SILENT.value * seen and inside >= INSIDE.value * silent


FAULTS = (OrderNotShuffled, AnswerIgnored)
