"""How far a model doubts the labels that it is asked about: where it is surest, and how well a label fits.

Wrong labels do not care how sure a model is, while a model makes its own mistakes where it is unsure. So of
the answers that it is surest of hardly any is wrong where labels are right, and as many as labels are wrong
where they are not (compare Northcutt, Jiang and Chuang, "Confident Learning", 2021).

Where answers are sequences there is more to see. A wrong label is the answer to something else, so it fits
no better than those of other examples: its rank among them is any rank. A right label that a model half
knows fits better than most. So the ranks of labels some of which are wrong are a heap at the best rank upon
an even floor, and those of a model that knows little fall from the best rank to the worst.
"""

from dataclasses import dataclass
from math import ceil
from typing import final

import torch
from torch import Tensor

from attnlab.devices import device_of
from attnlab.doctor.limits import (
    ABOVE_CHANCE,
    ALARM,
    CHANCE_P,
    CONTRADICTED,
    EVEN_ERRORS,
    EVEN_FLOOR,
    EVEN_TOP,
)
from attnlab.doctor.patient import Patient
from attnlab.doctor.quick import draw
from attnlab.sets import Examples

ASKED, RANKED, OTHERS, PART = 600, 200, 12, 50
"""Examples that the model answers, those whose labels are ranked, labels of others that each own one is
compared with, and examples asked about at once.
"""


@final
@dataclass(frozen=True)
class Ranks:
    """Of how many labels there are, how many fit better than those of all others that they were compared
    with, and how many are in the worse three, two and one quarters of ranks.
    """

    count: int
    best: int
    below_first: int
    below_second: int
    below_third: int

    @property
    def wrong(self) -> float:
        """The share of labels that fit no better than others do: twice those of the worse half."""
        return min(1.0, 2 * self.below_second / self.count)

    @property
    def doubted(self) -> bool:
        """Whether there is a heap of labels that fit, upon an even floor of some that do not."""
        even = self.below_third >= EVEN_FLOOR.value * self.below_first
        heaped = self.best >= ABOVE_CHANCE.value * self.count
        return even and heaped and _many(self.below_second, self.count)


@final
@dataclass(frozen=True)
class Doubts:
    """Of one split: how many answers are wrong, and how many of those that it is surest of: the surest
    half, and the surest fifth.
    """

    count: int
    wrong: int
    sure: int
    sure_wrong: int
    top: int
    top_wrong: int
    chance: float
    """The share of the most frequent answer."""
    informed: bool
    """Whether labels are likelier by the model than by how frequent they are."""
    ranks: Ranks | None = None
    """How well labels fit, where answers are sequences."""

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

    @property
    def contradicted(self) -> bool:
        """Whether the model contradicts more labels than a few where it is surest, or more fit no better
        than others do.
        """
        return _many(self.sure_wrong, self.sure) or (self.ranks is not None and self.ranks.doubted)

    @property
    def doubted(self) -> bool:
        """Whether wrong answers are as frequent where a model is sure that has learned its task."""
        learned = self.above_chance >= ABOVE_CHANCE.value
        return learned and self.even >= EVEN_ERRORS.value and _many(self.sure_wrong, self.sure)

    @property
    def half_doubted(self) -> bool:
        """Whether that is so of a model that has learned little, which many wrong labels would bring about:
        it is right more often than chance is, and as often wrong where it is surest as where it is sure.
        """
        if self.ranks is not None:
            return self.ranks.doubted
        even = self.top_wrong / self.top >= EVEN_TOP.value * self.share
        return even and self.informed and _many(self.top_wrong, self.top)


def _many(wrong: int, count: int) -> bool:
    """Whether so many are more than a few, beyond what chance does."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    tested = binomtest(wrong, count, CONTRADICTED.value, alternative="greater")
    return float(tested.pvalue) <= ALARM.value


def knows(each: Doubts) -> bool:
    """Whether more answers are right than by naming the most frequent one."""
    from scipy.stats import binomtest  # here: it takes half a second to import

    tested = binomtest(each.count - each.wrong, each.count, each.chance, alternative="greater")
    return float(tested.pvalue) <= CHANCE_P.value


def doubts(patient: Patient, split: str) -> Doubts:
    return patient.once(f"doubts of {split}", lambda: _doubts(patient, split))


def _doubts(patient: Patient, split: str) -> Doubts:
    examples = draw(patient.learned if split == "training" else patient.valid, ASKED).examples
    right, sure, fits = _answered(patient, examples)
    order = sure.argsort(descending=True)
    half, fifth = (~right[order[: ceil(len(right) * share)]] for share in (0.5, 0.2))
    return Doubts(
        len(right),
        int((~right).sum()),
        len(half),
        int(half.sum()),
        len(fifth),
        int(fifth.sum()),
        most_frequent(examples.targets),
        _informed(fits, examples.targets),
        _ranks(patient, examples[slice(0, RANKED)], ~right[:RANKED]),
    )


def _answered(patient: Patient, examples: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """Which examples are wholly right, the log-probability of what the model says instead or also, and that
    of the label.
    """
    right, sure, fits = [], [], []
    for start in range(0, len(examples), PART):
        part = examples[slice(start, start + PART)].to(device_of(patient.model))
        known = patient.ask(*part.inputs).log_softmax(dim=-1)
        best, said = known.max(dim=-1)
        right.append((said == part.targets).reshape(len(said), -1).all(dim=1).cpu())
        sure.append(best.reshape(len(said), -1).sum(dim=1).cpu())
        fits.append(known.gather(-1, part.targets[..., None]).reshape(len(said), -1).sum(dim=1).cpu())
    return torch.cat(right), torch.cat(sure), torch.cat(fits)


def _informed(fits: Tensor, targets: Tensor) -> bool:
    """Whether labels are likelier than by their frequency: by a t-test of the difference of logarithms."""
    from scipy.stats import ttest_1samp  # here: it takes half a second to import

    _, kinds, counts = torch.unique(targets, dim=0, return_inverse=True, return_counts=True)
    gain = fits.double() - (counts[kinds] / len(targets)).log()
    if gain.std() < 1e-9:  # all the same
        return bool(gain.mean() > 0)
    return bool(ttest_1samp(gain.numpy(), 0.0, alternative="greater").pvalue <= CHANCE_P.value)


def _ranks(patient: Patient, examples: Examples, wrong: Tensor) -> Ranks | None:
    """The ranks of labels among those of the examples that come after; None where answers are no sequences
    that the model is fed, or hardly differ. A label that the model says itself is the best.
    """
    if examples.targets.dim() != 2 or len(examples) <= OTHERS:
        return None
    if most_frequent(examples.targets) > 1 / OTHERS or len(patient.inputs) < 2:
        return None
    rows, better = torch.nonzero(wrong).flatten(), torch.zeros(len(examples))
    own = _fits(patient, examples, rows, 0)
    for by in range(1, OTHERS + 1):
        better[rows] += (_fits(patient, examples, rows, by) > own).float()
    below = ((better >= quarter * OTHERS).sum() for quarter in (0.25, 0.5, 0.75))
    return Ranks(len(examples), int((better == 0).sum()), *(int(each) for each in below))


def _fits(patient: Patient, examples: Examples, rows: Tensor, by: int) -> Tensor:
    """Of some inputs: the log-probability of the label of the example that comes ``by`` later."""
    found, device, fed = [torch.zeros(0)], device_of(patient.model), patient.fed
    for start in range(0, len(rows), PART):
        some = rows[start : start + PART]
        part, other = (examples[at].to(device) for at in (some, (some + by) % len(examples)))
        inputs = [*part.inputs]
        inputs[fed] = other.inputs[fed]
        known = patient.ask(*inputs).log_softmax(dim=-1).gather(-1, other.targets[..., None])
        found.append(known.flatten(1).sum(dim=1).cpu())
    return torch.cat(found)


def most_frequent(targets: Tensor) -> float:
    """The share of the most frequent answer."""
    _, counts = torch.unique(targets, dim=0, return_counts=True)
    return counts.max().item() / len(targets)
