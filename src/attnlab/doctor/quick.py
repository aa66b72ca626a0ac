"""What a quick classifier reads off inputs, and exact tests of whether it reads anything, without a model.

A ridge classifier (scikit-learn) is given simple numbers of each input: which token stands where, how often
each token occurs, the length, how often a token is larger than the one before; of inputs that are no tokens
the numbers themselves, up to a few hundred mixtures of them. p-values are shares of permutations (scipy),
so they hold whatever the classifier is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from attnlab.doctor.patient import Patient, UncheckedError
from attnlab.sets import Examples

MANY = 4_096
"""Numbers of an input that are read, at most."""
MIXED = 300
"""Mixtures that stand for more than that."""
FEWEST = 40
"""Examples below which no test is worth its name."""
PERMUTATIONS, GLANCE, PLAIN = 4_999, 199, 0.05
"""Permutations of a test; so many come first, and are all where their p-value is above that."""
_PART = 250
_SEED = 26


@final
@dataclass(frozen=True)
class Sample:
    """Some examples drawn at random; ``padding`` fills up shorter inputs."""

    examples: Examples
    padding: int | None = None

    @cached_property
    def first(self) -> Tensor:
        """The first input of each."""
        return self.examples.inputs[0]

    @property
    def is_tokens(self) -> bool:
        return self.first.dim() == 2 and not self.first.is_floating_point()

    @cached_property
    def own(self) -> Bool[Tensor, "N T"]:
        """Where a token is no padding."""
        return (
            torch.ones_like(self.first, dtype=torch.bool)
            if self.padding is None
            else self.first.ne(self.padding)
        )

    @property
    def lengths(self) -> Int[Tensor, "N"]:
        return self.own.sum(dim=1)


def draw(examples: Examples, count: int, padding: int | None = None) -> Sample:
    """Up to ``count`` of the examples, the same each time."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(_SEED))
    return Sample(examples[order[:count]], padding)


def sampled(patient: Patient, split: str, count: int) -> Sample:
    """Examples of the training or the validation split; at least enough of them for a test."""

    def make() -> Sample:
        whole = patient.learned if split == "train" else patient.valid
        if len(whole) < FEWEST:
            raise UncheckedError(f"there are {len(whole)} {split} examples, and a test needs {FEWEST}")
        return draw(whole, count, patient.padding)

    return patient.once(f"{split} sample of {count}", make)


def counted(samples: list[Sample]) -> list[ndarray]:
    """How large a share of its tokens each kind of token is, a row for each example."""
    kinds = 1 + max(int(each.first.max()) for each in samples)
    found = []
    for each in samples:
        shares = torch.zeros(len(each.first), kinds).scatter_add_(
            1, each.first.clamp(min=0), each.own.float()
        )
        found.append((shares / each.lengths.clamp(min=1)[:, None]).numpy())
    return found


def numbers(samples: list[Sample]) -> list[ndarray]:
    """What the classifier is given, a row for each example, in the same columns for all samples."""
    if not all(each.is_tokens for each in samples):
        return _mixed([each.first.double().flatten(1).numpy() for each in samples])
    longest, bags = max(each.first.shape[1] for each in samples), counted(samples)
    kinds, found = bags[0].shape[1], []
    for each, bag in zip(samples, bags, strict=True):
        tokens, own = each.first, each.own
        both = own[:, 1:] & own[:, :-1]
        rises = ((tokens[:, 1:] > tokens[:, :-1]) & both).sum(dim=1)
        falls = ((tokens[:, 1:] < tokens[:, :-1]) & both).sum(dim=1)
        parts = [
            bag,
            np.stack([each.lengths / longest, rises / longest, falls / longest, falls > 0], axis=1),
        ]
        if longest * kinds <= MANY:
            places = torch.zeros(len(tokens), longest, kinds)
            places[:, : tokens.shape[1]].scatter_(
                2, tokens.clamp(min=0)[:, :, None], own[:, :, None].float()
            )
            parts.append(places.flatten(1).numpy())
        found.append(np.concatenate(parts, axis=1))
    return _mixed(found)


def _mixed(rows: list[ndarray]) -> list[ndarray]:
    if rows[0].shape[1] <= MANY:
        return rows
    mixture = np.random.default_rng(_SEED).standard_normal((rows[0].shape[1], MIXED))
    return [each @ mixture for each in rows]


def classify(
    rows: Float[ndarray, "N F"], labels: Int[ndarray, "N"], others: Float[ndarray, "M F"]
) -> Int[ndarray, "M"]:
    """What a ridge classifier that learns ``labels`` from ``rows`` says of ``others``."""
    from sklearn.linear_model import RidgeClassifier  # here: it takes a second to import

    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    kept = spread > 1e-9 * max(1.0, float(spread.max(initial=0.0)))
    if not kept.any() or len(np.unique(labels)) < 2:
        return np.full(len(others), np.bincount(labels).argmax())
    scaled = [(each[:, kept] - mean[kept]) / spread[kept] for each in (rows, others)]
    said: ndarray = RidgeClassifier(alpha=float(kept.sum())).fit(scaled[0], labels).predict(scaled[1])
    return said


def crossed(rows: Float[ndarray, "N F"], labels: Int[ndarray, "N"]) -> Int[ndarray, "N"]:
    """What is said of each half by the classifier that learned the other."""
    half = np.arange(len(rows)) % 2 == 0
    said = np.empty(len(rows), dtype=labels.dtype)
    for part in (half, ~half):
        said[part] = classify(rows[~part], labels[~part], rows[part])
    return said


def hits_by_chance(said: Int[ndarray, "N"], labels: Int[ndarray, "N"]) -> tuple[float, float, float]:
    """The share of ``labels`` that were said, its mean if labels are dealt out anew, and the p-value."""

    def share(dealt: ndarray, axis: int) -> Any:
        return (dealt == said).mean(axis=axis)

    found = _permuted((labels,), share, "pairings")
    return float(found.statistic), float(found.null_distribution.mean()), float(found.pvalue)


def apart(first: Float[ndarray, "N F"], second: Float[ndarray, "M F"]) -> tuple[float, float]:
    """How far two samples' mean shares are apart beyond what chance does, from 0 to 1 (total variation),
    and the p-value if examples are dealt out to the two anew.
    """
    every = np.concatenate((first, second)).astype(np.float32)

    def distance(one: ndarray, other: ndarray, axis: int) -> Any:
        weights = np.zeros((*one.shape[:-1], len(every)), dtype=np.float32)
        np.put_along_axis(weights, one.astype(int), 1 / one.shape[-1], axis=-1)
        np.put_along_axis(weights, other.astype(int), -1 / other.shape[-1], axis=-1)
        return np.abs(weights @ every).sum(axis=-1) / 2

    found = _permuted((np.arange(len(first)), np.arange(len(first), len(every))), distance, "independent")
    return float(found.statistic - found.null_distribution.mean()), float(found.pvalue)


def _permuted(data: tuple[ndarray, ...], statistic: Callable[..., Any], kind: str) -> Any:
    """A test against ``statistic`` being as large by chance. Whoever fails the first look is not tested on,
    which can only lower the chance of a false alarm.
    """
    from scipy.stats import permutation_test  # here: it takes half a second to import

    for count in (GLANCE, PERMUTATIONS):
        found = permutation_test(
            data,
            statistic,
            permutation_type=kind,
            n_resamples=count,
            alternative="greater",
            vectorized=True,
            batch=_PART,
            rng=_SEED,
        )
        if found.pvalue > PLAIN:
            break
    return found
