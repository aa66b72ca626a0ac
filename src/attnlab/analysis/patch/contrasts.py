"""Patching between examples that differ in one thing, for any task that names such pairs.

What is read is the logit of the donor's answer less that of the base's, at the place where the two answers
are compared, each run fed its own true answer up to there. Putting values of the donor into the base is
called denoising, the other way round noising (Heimersheim and Nanda, 2024).
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.analysis.patch.carriers import GOAL, find_carriers
from attnlab.analysis.patch.grids import HEADS, Labels, MeasuredGrid, grids, measure_grids
from attnlab.analysis.patch.runs import QUANTITIES, Patching, head_site
from attnlab.analysis.statistics import proportion_interval
from attnlab.analysis.subjects import batch_size
from attnlab.devices import device_of, to_device_of
from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.model import Model, Side, attentions
from attnlab.progress import Progress, Stages, silent
from attnlab.results import Interval, Result, Row, interval_columns, own_class
from attnlab.runs import RunFolder
from attnlab.sets import Examples, Pairs, one_example
from attnlab.specs import Task
from attnlab.specs.codec import later

PAIRS = 64  # to find with, and as many to test with
FEWEST = 2
MOST = 1000  # all their values are kept in memory
ALONE = "there is one pair, so there are no intervals; give more pairs that differ in this"


@dataclass(frozen=True)
class Words:
    """How pairs are spoken of. ``what`` and ``pairs`` stand before the name of what differs."""

    what: str = ""
    pairs: str = "pairs that differ in"
    several: str = "contrast"
    sides: tuple[str, str] = ("base", "donor")
    called: tuple[str, str] = ("the base", "the donor")
    moved: str = ""
    rest: str = "the tokens themselves"
    written: Callable[[str], Any] = str

    def title(self, name: str) -> str:
        """What differs."""
        return f"{self.what} {name}".strip()


PLAIN = Words()


@dataclass(frozen=True)
class Contrast:
    """What every single site restores of one contrast, in both directions.

    ``difference`` is the mean of what is read, ``example`` the first pair, both by the side of a pair.
    """

    column: int
    name: str
    drawn: int
    pairs: int
    held_out: int
    difference: dict[str, float]
    example: dict[str, Any]
    denoising: list[MeasuredGrid]
    noising: list[MeasuredGrid]
    warning: str | None = later(None)


@dataclass(frozen=True)
class Effect:
    """Share restored, and share of the answers flipped to the donor's."""

    share: float
    interval: Interval
    flipped: float
    flipped_interval: Interval


@dataclass(frozen=True)
class HeldOut:
    """A set of heads on pairs that were not used to find it."""

    column: int
    name: str
    pairs: int
    denoising: Effect
    noising: Effect


@dataclass(frozen=True, kw_only=True)
class CarrierSet:
    """The ``Carriers`` of several contrasts, tested on the pairs held out."""

    columns: list[int]
    goal: float
    heads: tuple[str, ...] | None
    shares: list[float]
    of_all_heads: list[float]
    without: dict[str, float]
    exhausted: int
    others: tuple[tuple[str, ...], ...]
    smallest: bool
    held_out: list[HeldOut]


@dataclass(frozen=True, kw_only=True)
class PatchResult(Result):
    """What sites and sets of heads restore of each contrast; a contrast goes by its number, ``column``.

    ``reach`` and ``digit`` are what the pairs of an adder were asked for.
    """

    shown_by: ClassVar[str] = "attnlab.tables.patch"
    words: ClassVar[Words] = PLAIN

    run: str
    reach: int | None = later(None)
    digit: str | None = later(None)
    columns: list[Contrast]
    carriers: list[CarrierSet]

    def records(self) -> list[Row]:
        """A row for each contrast, direction and site: a quantity of a layer or head, at a position or at
        all of them.
        """
        return [
            {"contrast": contrast.name, "direction": direction, **row}
            for contrast in self.columns
            for direction in ("denoising", "noising")
            for grid in getattr(contrast, direction)
            for row in _grid_rows(grid)
        ]


def _grid_rows(grid: MeasuredGrid) -> list[Row]:
    return [
        {
            "site": site,
            "quantity": column if grid.quantity == HEADS else grid.quantity,
            "position": "all" if grid.quantity == HEADS else column,
            "share": share,
            **interval_columns("share", interval),
        }
        for site, shares, intervals in zip(grid.rows, grid.share, grid.interval, strict=True)
        for column, share, interval in zip(grid.columns, shares, intervals, strict=True)
    ]


class Names(ABC):
    """How pairs are shown."""

    @abstractmethod
    def labels(self, pairs: Pairs) -> Labels:
        """A name for each position at a tap."""

    @abstractmethod
    def example(self, examples: Examples) -> str:
        """The first of them."""


@final
@dataclass(frozen=True)
class TaskNames(Names):
    """Positions of the input as the pairs name them, those of the answer as the task does."""

    task: Task
    model: Model

    def labels(self, pairs: Pairs) -> Labels:
        def labels(tap: str, length: int) -> list[str]:
            if tap_side(self.model, tap) == "answer":
                return self.task.places_of(pairs.base.answer_length)[:length]
            count = length if self.task.images else pairs.base.inputs[0].shape[1]
            names = pairs.labels or [str(number + 1) for number in range(count)]
            return ["cls"] * (length - len(names)) + list(names[:length])

        return labels

    def example(self, examples: Examples) -> str:
        task = self.task
        if task.images:
            return task.answer(examples.targets[0])
        return task.show(one_example(examples, 0, task.padding)).name


def tap_side(model: Model, tap: str) -> Side:
    """Whether positions at ``tap`` are those of the input or of the answer: keys may be of another side."""
    path, _, quantity = tap.rpartition(".")
    site = next((site for site in model.sites() if site.path == path), None)
    return site.keys if site is not None and quantity in ("k", "v") else model.side(tap)


@dataclass(frozen=True)
class Chosen:
    """Pairs that the model gets right on both sides, some to find with and as many to test with."""

    drawn: int
    finding: Pairs
    held_out: Pairs


def choose_pairs(
    model: Model, drawn: Pairs, pairs: int, words: Words = PLAIN, *, few: bool = False
) -> Chosen:
    """Up to ``pairs`` pairs of each kind; if a ``few`` will do, those there are to find with and none to
    test with.
    """
    if not len(drawn):
        raise LabError(f"no {words.pairs} {drawn.name} were found; `contrasts` of the task makes them")
    place = drawn.compared()
    right, answers = torch.ones(len(drawn), dtype=torch.bool), list[Tensor]()
    for side in (drawn.base, drawn.donor):
        answers.append(_at(side.targets, place, sequence=1))
        right &= _answered(model, side, place) == answers[-1]
    kept = drawn[right & (answers[0] != answers[1])]
    half = min(pairs, len(kept) // 2)
    if few and 0 < len(kept) < 2 * FEWEST:
        return Chosen(len(drawn), kept[:pairs], kept[:0])
    if half < FEWEST:
        raise LabError(
            f"of {len(drawn)} {words.pairs} {drawn.name} the model gets {len(kept)} right on both sides, "
            f"but {2 * FEWEST} are needed; ask for more or train longer"
        )
    return Chosen(len(drawn), kept[:half], kept[half : 2 * half])


def _answered(model: Model, examples: Examples, place: Int[Tensor, "N"]) -> Int[Tensor, "N"]:
    """What the model answers at ``place``, fed the true answer up to there."""
    length, numbers = int(place.max()) + 1, torch.arange(len(examples))

    def answer(some: Int[Tensor, "M"]) -> Int[Tensor, "M"]:
        fed = to_device_of(model, *model.fed(examples[some].inputs, length))
        return said(model(*fed).cpu(), place[some])

    parts = torch.split(numbers, batch_size(model, examples))
    return torch.cat(list(in_order(answer, parts, device=device_of(model))))


def patch_pairs(model: Model, pairs: Pairs, *, quantities: Sequence[str] = QUANTITIES) -> Patching:
    """Each side fed its own true answer up to the place that is compared."""
    place = pairs.compared()
    length = int(place.max()) + 1
    (base, less), (donor, more) = (
        (model.fed(each.inputs, length), _at(each.targets, place, sequence=1))
        for each in (pairs.base, pairs.donor)
    )
    known = more, less, place
    return Patching.between(model, base, donor, logit_difference, known=known, quantities=quantities)


def _at(values: Tensor, place: Int[Tensor, "N"], *, sequence: int) -> Tensor:
    """What stands at ``place``; where there are no places, as ``sequence`` further axes tell, all."""
    return values[_rows(values), place] if values.ndim > sequence else values


def _rows(values: Tensor) -> Int[Tensor, "N"]:
    return torch.arange(len(values), device=values.device)


def logit_difference(
    logits: Float[Tensor, "N *T V"], more: Int[Tensor, "N"], less: Int[Tensor, "N"], place: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """Logit of ``more`` minus logit of ``less`` at ``place``."""
    at, row = _at(logits, place, sequence=2), _rows(logits)
    return at[row, more] - at[row, less]


def said(logits: Float[Tensor, "N *T V"], place: Int[Tensor, "N"]) -> Int[Tensor, "N"]:
    """The answer at ``place``."""
    return _at(logits, place, sequence=2).argmax(dim=-1)


def measure_contrast(
    model: Model,
    chosen: Chosen,
    names: Names,
    *,
    words: Words = PLAIN,
    most: int | None = None,
    progress: Progress = silent,
) -> Contrast:
    """What every single site restores, in both directions; ``most`` as ``grids`` takes it."""
    pairs = chosen.finding
    patching = patch_pairs(model, pairs)
    sites = grids(patching, names.labels(pairs), most=most)
    measured = {
        direction: measure_grids(run, sites, progress=_half(progress, half))
        for half, (direction, run) in enumerate(_both_ways(patching).items())
    }
    shown = (names.example(each) for each in (pairs.base, pairs.donor))
    means = (float(each.values.mean()) for each in (patching.base, patching.donor))
    return Contrast(
        pairs.number,
        pairs.name,
        chosen.drawn,
        len(pairs),
        len(chosen.held_out),
        difference=dict(zip(words.sides, means, strict=True)),
        example=dict(zip(words.sides, map(words.written, shown), strict=True)),
        **measured,
        warning=ALONE if len(pairs) == 1 else patching.warning,
    )


def measure_carriers(
    model: Model, contrasts: Sequence[Chosen], *, goal: float = GOAL, progress: Progress = silent
) -> CarrierSet:
    """The smallest set of heads that carries what differs, tested on the pairs held out."""
    seen = ("z", "out")
    groups = [patch_pairs(model, each.finding, quantities=seen) for each in contrasts]
    found = find_carriers(groups, goal=goal, progress=progress)
    return CarrierSet(
        columns=[each.finding.number for each in contrasts],
        goal=goal,
        **vars(found),
        smallest=found.smallest,
        held_out=[
            _tested(model, each.held_out, found.heads, seen)
            for each in contrasts
            if found.heads and len(each.held_out)
        ],
    )


def _tested(model: Model, pairs: Pairs, heads: Sequence[str], quantities: Sequence[str]) -> HeldOut:
    patching = patch_pairs(model, pairs, quantities=quantities)
    more, less, place = patching.known
    effects = {}
    for (direction, run), answer in zip(_both_ways(patching).items(), (more, less), strict=True):
        given = run.given([head_site(head) for head in heads])
        (share,) = run.shares(run.read(given, *run.known).cpu()[None])
        flipped = int((said(given, place) == answer).sum())
        effects[direction] = Effect(
            share.value, share.interval, flipped / len(run), proportion_interval(flipped, len(run))
        )
    return HeldOut(pairs.number, pairs.name, len(pairs), **effects)


def _half(progress: Progress, before: int) -> Progress:
    """The first half of some work, or the second where one is ``before`` it."""
    return lambda done, of: progress(before * of + done, 2 * of)


def _both_ways(patching: Patching) -> dict[str, Patching]:
    return {"denoising": patching, "noising": patching.turned()}


def measure_contrasts(
    model: Model,
    contrasts: Sequence[Chosen],
    names: Names,
    *,
    words: Words = PLAIN,
    most: int | None = None,
    stages: Stages = lambda _: silent,
) -> tuple[list[Contrast], list[CarrierSet]]:
    """Every contrast, and the sets of heads that carry each and, if there are several, all of them."""
    found, carriers = list[Contrast](), list[CarrierSet]()
    for each in contrasts:
        progress = stages(f"patching, {words.title(each.finding.name)}")
        found.append(measure_contrast(model, each, names, words=words, most=most, progress=progress))
    alone = [[each] for each in contrasts]
    for group in [*alone, contrasts] if len(contrasts) > 1 else alone:
        progress = stages(f"trying sets of heads, {', '.join(each.finding.name for each in group)}")
        carriers.append(measure_carriers(model, group, progress=progress))
    return found, carriers


def patch_run(
    run: RunFolder, *, pairs: int = PAIRS, stages: Stages = lambda _: silent, **options: Any
) -> PatchResult:
    """Patch between pairs of each contrast of the task, and keep it in the run.

    ``options`` are what the task's ``contrasts`` takes beside their number and the seed.
    """
    if not 1 < pairs <= MOST:
        raise InputError(f"pairs is {pairs}; it must be from 2 to {MOST:,}")
    task, model = run.spec().task, run.model
    drawn = draw_contrasts(task, 2 * pairs, run.spec().seed, **options)
    if not attentions(model):
        raise LabError(f"run {run.name} has no attention left, so it has no heads to patch")
    kind = own_class(task, PatchResult)
    words = kind.words
    chosen = [choose_pairs(model, each, pairs, words) for each in drawn]
    columns, carriers = measure_contrasts(model, chosen, TaskNames(task, model), words=words, stages=stages)
    kept = {each.name for each in fields(kind)}
    asked = {name: value for name, value in options.items() if name in kept}
    return run.keep("patch", kind(run=run.name, columns=columns, carriers=carriers, **asked))


def draw_contrasts(task: Task, count: int, seed: int, **options: Any) -> Sequence[Pairs]:
    """The contrasts of ``task``; a task without any is refused."""
    known = inspect.signature(task.contrasts).parameters
    drawn = task.contrasts(count, seed, **{name: value for name, value in options.items() if name in known})
    if drawn is None:
        raise LabError(
            f"the task {brief(task.kind)} has no `contrasts`, pairs of examples that differ in one thing; "
            "give it this method to patch its runs"
        )
    if unknown := [name for name in options if name not in known]:
        offered = nearest(unknown[0], [name for name in known if name not in ("count", "seed")])
        raise InputError(
            f"contrasts of the task {brief(task.kind)} have no choice of {brief(unknown[0])}{offered}"
        )
    return [drawn] if isinstance(drawn, Pairs) else drawn
