"""Faults of labels: some are wrong, or all are dealt out at random."""

from contextlib import suppress
from typing import final

from numpy import ndarray

from attnlab.doctor.causes import MISLED, SHALLOW
from attnlab.doctor.doubts import Doubts, doubts, knows
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import (
    ABOVE_CHANCE,
    ALARM,
    CHANCE_P,
    CONTRADICTED,
    EVEN_ERRORS,
    EVEN_FLOOR,
    EVEN_TOP,
    GOOD,
    MOVED,
    WAY,
)
from attnlab.doctor.movement import movement
from attnlab.doctor.patient import Patient, UncheckedError, distinct
from attnlab.doctor.quick import Sample, classify, crossed, hits_by_chance, numbers, sampled
from attnlab.doctor.rows import rows_of
from attnlab.doctor.watched import way_at_most

DRAWN, CROWD = 600, 1_000
"""Examples that a quick classifier learns from, and those that are many."""


@final
class LabelsWrong(Fault):
    """Some labels are wrong: a model that has learned the task contradicts them where it is surest."""

    kind = "labels-wrong"
    family = "data"
    source = "probe"
    looks_at = (
        "wrong answers among those that the model is surest of, how well labels fit beside those of other "
        "examples, in both splits, and inputs that occur with different answers"
    )
    limits = (ABOVE_CHANCE, CONTRADICTED, EVEN_ERRORS, EVEN_TOP, EVEN_FLOOR, ALARM, WAY, MOVED)
    explains = ("memorising", "kept-by-wrong-metric", "rate-too-low", *SHALLOW)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.known_spec is not None:
            patient.require_ended()
        found = {split: doubts(patient, split) for split in _splits(patient)}
        doubted = {split: each for split, each in found.items() if each.doubted}
        half = {split: each for split, each in found.items() if each.half_doubted}
        if not doubted and half and _moved(patient):
            return self._half(patient, half, found)
        if all(each.above_chance < ABOVE_CHANCE.value for each in found.values()):
            raise UncheckedError("the model has not learned enough to contradict labels")
        if not doubted:
            return None
        sure = "training" not in found or found["training"].contradicted
        split, worst = max(doubted.items(), key=lambda item: item[1].share)
        text = f"some {worst.share:.0%} of the {split} labels are wrong: the model contradicts them surely"
        evidence = self._evidence(patient, found)
        if not sure:  # what was learned by heart fails on other examples as well
            return self.finding("warning", 0.3, text, evidence, _mended(split))
        return self.finding(
            "serious" if worst.share > 0.05 else "warning", 0.75, text, evidence, _mended(split)
        )

    def _half(self, patient: Patient, half: dict[str, Doubts], found: dict[str, Doubts]) -> Finding:
        """Of a model that has learned little."""
        sure = "training" not in found or found["training"].contradicted
        split, worst = max(half.items(), key=lambda item: _wrong(item[1]))
        text = f"some {_wrong(worst):.0%} of the {split} labels are wrong, as far as the model can judge: "
        text += (
            "as many as that are wrong however sure it is"
            if worst.ranks is None
            else "they fit no better than those of other examples, and the others fit well"
        )
        severity: Severity = "serious" if sure else "warning"
        evidence = self._evidence(patient, found)
        return self.finding(severity, 0.65 if sure else 0.3, text, evidence, _mended(split))

    @staticmethod
    def _evidence(patient: Patient, found: dict[str, Doubts]) -> dict[str, float]:
        evidence = {
            f"share of surest {split} answers that are wrong": each.share for split, each in found.items()
        }
        evidence |= {f"{split} accuracy": 1 - each.wrong / each.count for split, each in found.items()}
        evidence |= {
            f"share of {split} labels that fit no better than others": each.ranks.wrong
            for split, each in found.items()
            if each.ranks is not None
        }
        evidence["share of repeated inputs with different answers"] = _contradictions(patient)
        return evidence


def _mended(split: str) -> Remedy:
    return Remedy(
        f"look at the {split} examples that the model contradicts most surely, and correct or drop them; "
        "until then smooth labels",
        command="attnlab show RUN --wrong --samples 20",
    )


def _wrong(each: Doubts) -> float:
    """About how many labels are wrong."""
    return each.share if each.ranks is None else each.ranks.wrong


def _moved(patient: Patient) -> bool:
    """Whether the steps were long enough to learn by, or else whether the kept weights are far from the
    first ones, as far as that is known.
    """
    for measure, least in ((way_at_most, WAY), (movement, MOVED)):
        with suppress(UncheckedError):
            return measure(patient) >= least.value
    return True


def _splits(patient: Patient) -> list[str]:
    try:
        return ["validation", "training"] if len(patient.learned) else ["validation"]
    except UncheckedError:
        return ["validation"]


def _contradictions(patient: Patient) -> float:
    """The share of training examples that have the input of another and not its answer."""
    try:
        rows = rows_of(patient.learned)
    except UncheckedError:
        return 0.0
    answers: dict[bytes, set[bytes]] = {}
    targets = [each.numpy().tobytes() for each in patient.learned.targets[: len(rows)]]
    for row, target in zip(rows, targets, strict=True):
        answers.setdefault(row, set()).add(target)
    return sum(len(answers[row]) > 1 for row in rows) / len(rows)


@final
class LabelsShuffled(Fault):
    """The training labels have nothing to do with their inputs."""

    kind = "labels-shuffled"
    family = "data"
    source = "probe"
    looks_at = (
        "validation accuracy beside that of the most frequent answer; what a quick classifier learns from "
        "training labels of validation labels and of other training labels, and from validation labels; "
        "whether training labels were learned by heart"
    )
    limits = (CHANCE_P, ALARM, GOOD)
    explains = MISLED

    def examine(self, patient: Patient) -> Finding | None:
        valid = doubts(patient, "validation")
        if knows(valid):
            return None
        learned, held = readable(patient)
        own = 1.0 if learned <= ALARM.value else readable_alone(patient)
        if own <= ALARM.value:  # training labels belong to their inputs; other inputs are asked about
            return None
        train = doubts(patient, "training")
        by_heart = 1 - train.wrong / train.count >= GOOD.value
        evidence = {
            "validation accuracy": 1 - valid.wrong / valid.count,
            "training accuracy": 1 - train.wrong / train.count,
            "p of what is learned from training labels": learned,
            "p of what training labels say of each other": own,
            "p of what is learned from validation labels": held,
        }
        remedy = Remedy(
            "check that inputs and labels stay together where they are sorted, shuffled or filtered",
            code="order = torch.randperm(len(x)); x, y = x[order], y[order]",
        )
        if held <= ALARM.value < learned:
            text = "a quick classifier learns from validation labels and nothing from training labels"
            return self.finding("serious", 0.95, text, evidence, remedy)
        if by_heart and min(held, learned) > ALARM.value and len(patient.learned) >= CROWD:
            text = "training labels were learned by heart, and no validation label better than by guessing"
            return self.finding("serious", 0.6, text, evidence, remedy)
        if held > ALARM.value and learned > ALARM.value:
            if len(patient.learned) < CROWD:
                raise UncheckedError("there are too few examples for a quick classifier to learn from")
            text = "neither the model nor a quick classifier learns: shuffled labels, or a hard task"
            return self.finding("serious", 0.55, text, evidence, remedy)
        return None


def readable(patient: Patient) -> tuple[float, float]:
    """p-values of "validation labels cannot be guessed", by a quick classifier that learns from training
    examples, and by one that learns from the other half of the validation examples.
    """
    train, valid = sampled(patient, "train", DRAWN), sampled(patient, "valid", DRAWN)
    known, asked = numbers([train, valid])
    learned, held = [], []
    for place in _places(valid):
        before, after = (_answers(each, place) for each in (train, valid))
        learned.append(hits_by_chance(classify(known, before, asked), after)[2])
        held.append(hits_by_chance(crossed(asked, after), after)[2])
    return _least(learned), _least(held)


def readable_alone(patient: Patient) -> float:
    """The p-value of "training labels cannot be guessed", by a classifier that learned the others."""
    train = sampled(patient, "train", DRAWN)
    (known,) = numbers([train])
    every = (_answers(train, place) for place in _places(train))
    return _least([hits_by_chance(crossed(known, labels), labels)[2] for labels in every])


def _places(sample: Sample) -> list[int]:
    """The first and the last place of the answer that is not the same in all examples."""
    targets = sample.examples.targets.reshape(len(sample.first), -1)
    places = [p for p in range(targets.shape[1]) if len(distinct(targets[:, p])) > 1]
    if not places:
        raise UncheckedError("the examples have a single answer")
    return sorted({places[0], places[-1]})


def _answers(sample: Sample, place: int) -> ndarray:
    return sample.examples.targets.reshape(len(sample.first), -1)[:, place].numpy()


def _least(values: list[float]) -> float:
    """The least of some p-values, adjusted for their number (Bonferroni)."""
    return min(1.0, len(values) * min(values))


FAULTS = (LabelsWrong, LabelsShuffled)
