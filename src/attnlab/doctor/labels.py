"""Faults of labels: some are wrong, or all are dealt out at random.

Wrong labels do not care how sure a model is, while a model makes its own mistakes where it is unsure. So of
the answers that it is surest of hardly any is wrong where labels are right, and as many as labels are wrong
where they are not (compare Northcutt, Jiang and Chuang, "Confident Learning", 2021).
"""

from dataclasses import dataclass
from math import ceil
from typing import final

import torch
from numpy import ndarray
from torch import Tensor

from attnlab.devices import device_of
from attnlab.doctor.causes import MISLED
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy
from attnlab.doctor.limits import ABOVE_CHANCE, ALARM, CHANCE_P, CONTRADICTED, EVEN_ERRORS, GOOD
from attnlab.doctor.patient import Patient, UncheckedError, distinct
from attnlab.doctor.quick import Sample, classify, crossed, draw, hits_by_chance, numbers, sampled
from attnlab.doctor.rows import rows_of
from attnlab.sets import Examples

ASKED, DRAWN, CROWD = 600, 600, 1_000
"""Examples that the model answers, those that a quick classifier learns from, and those that are many."""


@final
@dataclass(frozen=True)
class Doubts:
    """Of one split: how many answers are wrong, and how many of those that the model is surest of."""

    count: int
    wrong: int
    sure: int
    sure_wrong: int
    chance: float
    """The share of the most frequent answer."""

    @property
    def share(self) -> float:
        return self.sure_wrong / self.sure

    @property
    def above_chance(self) -> float:
        """How far the model is on the way from the most frequent answer to all answers right."""
        return (1 - self.wrong / self.count - self.chance) / max(1 - self.chance, 1e-12)

    @property
    def even(self) -> float:
        """Wrong answers among the surest over those among all; 1 if it does not matter how sure it is."""
        return self.share / max(self.wrong / self.count, 1e-12)


def doubts(patient: Patient, split: str) -> Doubts:
    return patient.once(f"doubts of {split}", lambda: _doubts(patient, split))


def _doubts(patient: Patient, split: str) -> Doubts:
    examples = draw(patient.learned if split == "training" else patient.valid, ASKED).examples
    right, sure = _answered(patient, examples)
    order = sure.argsort(descending=True)[: ceil(len(right) / 2)]
    return Doubts(
        len(right),
        int((~right).sum()),
        len(order),
        int((~right[order]).sum()),
        most_frequent(examples.targets),
    )


def _answered(patient: Patient, examples: Examples) -> tuple[Tensor, Tensor]:
    """Which examples are wholly right, and the log-probability of what the model says instead or also."""
    right, sure = [], []
    for start in range(0, len(examples), 50):
        part = examples[slice(start, start + 50)].to(device_of(patient.model))
        best, said = patient.ask(*part.inputs).log_softmax(dim=-1).max(dim=-1)
        right.append((said == part.targets).reshape(len(said), -1).all(dim=1).cpu())
        sure.append(best.reshape(len(said), -1).sum(dim=1).cpu())
    return torch.cat(right), torch.cat(sure)


def most_frequent(targets: Tensor) -> float:
    """The share of the most frequent answer."""
    _, counts = torch.unique(targets, dim=0, return_counts=True)
    return counts.max().item() / len(targets)


@final
class LabelsWrong(Fault):
    """Some labels are wrong: a model that has learned the task contradicts them where it is surest."""

    kind = "labels-wrong"
    family = "data"
    source = "probe"
    looks_at = (
        "wrong answers among those that the model is surest of, in both splits, and inputs that occur with "
        "different answers"
    )
    limits = (ABOVE_CHANCE, CONTRADICTED, EVEN_ERRORS, ALARM)
    explains = ("memorising", "kept-by-wrong-metric")

    def examine(self, patient: Patient) -> Finding | None:
        if patient.known_spec is not None:
            patient.require_ended()
        found = {split: doubts(patient, split) for split in _splits(patient)}
        if all(each.above_chance < ABOVE_CHANCE.value for each in found.values()):
            raise UncheckedError("the model has not learned enough to contradict labels")
        doubted = {split: each for split, each in found.items() if _doubted(each)}
        if not doubted:
            return None
        sure = "training" not in found or _contradicted(found["training"])
        split, worst = max(doubted.items(), key=lambda item: item[1].share)
        text = f"some {worst.share:.0%} of the {split} labels are wrong: the model contradicts them surely"
        evidence = {
            f"share of surest {split} answers that are wrong": each.share for split, each in found.items()
        }
        evidence |= {f"{split} accuracy": 1 - each.wrong / each.count for split, each in found.items()}
        evidence["share of repeated inputs with different answers"] = _contradictions(patient)
        remedy = Remedy(
            f"look at the {split} examples that the model contradicts most surely, and mend or drop them; "
            "until then smooth labels",
            command="attnlab show RUN --wrong --samples 20",
        )
        if not sure:  # what was learned by heart fails on other examples as well
            return self.finding("warning", 0.3, text, evidence, remedy)
        return self.finding("serious" if worst.share > 0.05 else "warning", 0.75, text, evidence, remedy)


def _splits(patient: Patient) -> list[str]:
    try:
        return ["validation", "training"] if len(patient.learned) else ["validation"]
    except UncheckedError:
        return ["validation"]


def _doubted(each: Doubts) -> bool:
    """Whether wrong answers are as frequent where the model is sure, beyond what chance does."""
    learned = each.above_chance >= ABOVE_CHANCE.value
    return learned and each.even >= EVEN_ERRORS.value and _contradicted(each)


def _contradicted(each: Doubts) -> bool:
    """Whether the model contradicts more answers than a few where it is surest."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    tested = binomtest(each.sure_wrong, each.sure, CONTRADICTED.value, alternative="greater")
    return float(tested.pvalue) <= ALARM.value


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
            "check that inputs and labels stay together wherever they are sorted, shuffled or filtered",
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


def knows(each: Doubts) -> bool:
    """Whether more answers are right than by naming the most frequent one."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    tested = binomtest(each.count - each.wrong, each.count, each.chance, alternative="greater")
    return float(tested.pvalue) <= CHANCE_P.value


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
