"""One pair of different neighbours exchanged in lists of one length after another: margins and falls.

**Margin.** The evidence of a list x is s(x) = logit of "sorted" minus logit of "unsorted". With x a sorted
list of n numbers and x' the same with one pair of different neighbours exchanged, the margin is

    m(n) = mean over lists of |s(x) - s(x')|

What pooling keeps of one token decides how m falls with n. A mean over n tokens moves by 1/n of what its
tokens move, so where an exchange changes few tokens, m(n) ~ n^-1; a minimum over tokens does not thin out,
m(n) ~ n^0. The exponent is the slope of log m over log n by least squares.

**Fall.** In x' there is x_i > x_(i+1) at one place i, its fall. The weight that a head puts on it is the
mean over lists and all queries of pattern[query, i]: 1/n if the head looks everywhere alike, at most
(2 w + 1)/n with a window of w, and near 1 if every token finds the fall, wherever it is.

What a list costs grows with its length n, as n for margins and as n^2 for falls. A batch holds as many
lists as a budget allows; progress goes by cost, so that an estimate of the time left does not mislead.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import linear_regression
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.devices import to_device_of
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.problems.sorting.evaluate import evidence
from attnlab.problems.sorting.task import Sorting
from attnlab.problems.sorting.words import UNSORTED
from attnlab.progress import Progress, silent
from attnlab.results import Result, Row, plain_fields
from attnlab.runs import RunFolder
from attnlab.specs.codec import later
from attnlab.taps import record

Found = TypeVar("Found")
R = TypeVar("R", bound=Result)


@dataclass(frozen=True)
class Exchanges:
    """So many ``lists`` of each of the ``lengths``."""

    lengths: tuple[int, ...]
    lists: int
    seed: int = 0

    def measure(
        self, task: Sorting, look: Callable[[Tensor], Found], *, power: int, most: int, progress: Progress
    ) -> Iterator[tuple[int, list[Found]]]:
        """Each length n with what ``look`` finds in each batch (N, n) of its lists. One costs n ** power, a
        batch at most ``most``; it holds an even number, since half of all lists that are drawn are sorted.
        """
        done, costs = 0, [length**power for length in self.lengths]
        for length, cost in zip(self.lengths, costs, strict=True):
            at_once = max(2, most // cost // 2 * 2)
            drawn = task.draws(2 * self.lists, length, "swap", seed=self.seed, most=at_once)
            yield length, [look(part.inputs[0][part.targets == UNSORTED]) for part in drawn]
            done += cost
            progress(done, sum(costs))


MARGINS = Exchanges(lengths=(16, 32, 64, 128, 256, 512, 1024), lists=100)
FALLS = Exchanges(lengths=(16, 64, 256, 1024), lists=40)


@dataclass(frozen=True, kw_only=True)
class _Exchanged(Result):
    """Which lists were asked."""

    run: str = later("")
    lists: int
    seed: int


@dataclass(frozen=True)
class Margin:
    """The mean margin at one length, and its standard error."""

    length: int
    margin: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Margins(_Exchanged):
    """Margins by length, and their exponent."""

    rows: list[Margin]
    exponent: float | None

    def records(self) -> list[Row]:
        """A row for each length."""
        return [plain_fields(each) for each in self.rows]


def measure_margins(
    task: Sorting, model: Model, asked: Exchanges = MARGINS, *, run: str = "", progress: Progress = silent
) -> Margins:
    """The margin at each length, and its exponent."""
    rows, look = [], partial(exchange_margins, model)
    for length, parts in asked.measure(task, look, power=1, most=2**15, progress=progress):
        moved = torch.cat(parts).double()
        error = moved.std().item() / math.sqrt(len(moved))
        rows.append(Margin(length, moved.mean().item(), error))
    return Margins(run=run, lists=asked.lists, seed=asked.seed, rows=rows, exponent=exponent(rows))


@torch.inference_mode()
def exchange_margins(model: Model, exchanged: Int[Tensor, "N L"]) -> Float[Tensor, "N"]:
    """|s(x) - s(x')| of each list x'; its sorted list x holds the same numbers."""
    return (evidence(model, exchanged.sort(dim=1).values) - evidence(model, exchanged)).abs()


def exponent(rows: Sequence[Margin]) -> float | None:
    """The slope of log margin over log length; None if a margin is zero."""
    if any(row.margin == 0 for row in rows):
        return None
    lengths, margins = ([math.log(row.length) for row in rows], [math.log(row.margin) for row in rows])
    return linear_regression(lengths, margins).slope


@dataclass(frozen=True)
class Fall:
    """Weights on the fall at one length: of every head, and of the head that has most."""

    length: int
    head: str
    weight: float
    heads: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Falls(_Exchanged):
    """Weights on the fall by length."""

    rows: list[Fall]

    def records(self) -> list[Row]:
        """A row for each length."""
        return [plain_fields(each) for each in self.rows]


def measure_falls(
    task: Sorting, model: Model, asked: Exchanges = FALLS, *, run: str = "", progress: Progress = silent
) -> Falls:
    """At each length the weight of every head on the fall, and the head that has most."""
    rows, look = [], partial(fall_weights, model)
    for length, parts in asked.measure(task, look, power=2, most=2**21, progress=progress):
        weights = {head: torch.cat([part[head] for part in parts]).mean().item() for head in parts[0]}
        head = max(weights, key=lambda name: weights[name])
        rows.append(Fall(length, head, weights[head], weights))
    return Falls(run=run, lists=asked.lists, seed=asked.seed, rows=rows)


def exchanges_run(
    task: Sorting, name: str, measure: Callable[..., R], run: RunFolder, *, progress: Progress = silent
) -> R:
    """Measure the model of ``run`` and keep the result under ``name``."""
    return run.keep(name, measure(task, run.model, run=run.name, progress=progress))


@torch.inference_mode()
def fall_weights(model: Model, lists: Int[Tensor, "N L"]) -> dict[str, Float[Tensor, "N"]]:
    """For every head the weight on the fall of each list, which has one, as a mean over queries."""
    falls = (lists[:, 1:] < lists[:, :-1]).double().argmax(dim=1)
    paths = list(attentions(model))
    with record(model, *(f"{path}.pattern" for path in paths)) as seen:
        model(*to_device_of(model, lists))
    weights: dict[str, Tensor] = {}
    for path in paths:
        received = seen[f"{path}.pattern"].cpu().double().mean(dim=2)  # (N, H, S), over queries
        front = received.shape[2] - lists.shape[1]  # a token that stands in front of the numbers
        at_fall = received.take_along_dim((falls + front)[:, None, None], dim=2)[:, :, 0]
        weights |= {f"{path}.{head}": at_fall[:, head] for head in range(at_fall.shape[1])}
    return weights
