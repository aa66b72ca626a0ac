"""What can be changed in a model while it answers, and how it is changed.

    off      a head's z, or the hidden values of a feed-forward part, become zero, their mean over training
             examples, or those of one other example
    scale    the scores of a head are multiplied before the softmax; keys that are not seen stay unseen
    pattern  rows of a head's attention pattern are replaced
    swap     z or hidden values become those that the model has while it answers another input

``at`` names a head (``encoder.0.self.3``), a site (``encoder.0.self``), a feed-forward part
(``encoder.0.feed``) or a layer (``encoder.0``: all its sites and feed-forward parts). Edits act before
heads mix and before hidden values are mapped back, so biases behind them stay, as in ``ablate``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.model import HIDDEN, Model, Site
from attnlab.specs import from_json, to_json
from attnlab.taps import Tap, taps

StandInName = Literal["zero", "mean", "resample"]
"""What takes the place of what is switched off."""

MOST_SCALE = 100.0
"""What scores can be multiplied by at most."""
SUM_TOLERANCE = 1e-3
"""How far the weights of a painted row may be from a sum of 1."""


@dataclass(frozen=True)
class Off:
    """A head, a site, a feed-forward part or a layer switched off."""

    op: ClassVar[str] = "off"
    at: str
    to: StandInName = "zero"


@dataclass(frozen=True)
class Scale:
    """The scores of a head or of all heads of a site, times ``by``."""

    op: ClassVar[str] = "scale"
    at: str
    by: float

    def __post_init__(self) -> None:
        if not 0 <= self.by <= MOST_SCALE:
            raise InputError(f"by is {self.by}; it must be from 0 to {MOST_SCALE:g}")


@dataclass(frozen=True)
class Paint:
    """Rows of a head's pattern, by the number of their query, replaced by these weights, one a key."""

    op: ClassVar[str] = "pattern"
    at: str
    rows: dict[str, list[float]] = field(hash=False)

    def __post_init__(self) -> None:
        for query, weights in self.rows.items():
            if not (query.isascii() and query.isdigit() and len(query) <= 6):
                raise InputError(f"a painted row is named {brief(query)}; it must be the number of a query")
            total = sum(weights)
            if not all(each >= 0 for each in weights) or not abs(total - 1) <= SUM_TOLERANCE:
                raise InputError(
                    f"the painted row {query} sums to {total:.4g}; weights must be at least 0 and sum to 1"
                )


@dataclass(frozen=True)
class Swap:
    """The output of a head, a site, a feed-forward part or a layer comes from the other input."""

    op: ClassVar[str] = "swap"
    at: str


Edit = Off | Scale | Paint | Swap
EDITS: dict[str, type[Edit]] = {each.op: each for each in (Off, Scale, Paint, Swap)}


def read_edit(plain: Any) -> Edit:
    """An edit of its JSON."""
    if isinstance(plain, Off | Scale | Paint | Swap):
        return plain
    kind = EDITS.get(str(plain.get("op"))) if isinstance(plain, dict) else None
    if kind is None:
        raise InputError(f"an edit has no 'op' that is one of {', '.join(EDITS)}")
    try:
        return from_json(kind, {key: value for key, value in plain.items() if key != "op"}, "edit")
    except LabError as error:
        raise InputError(str(error)) from error


def write_edit(edit: Edit) -> dict[str, Any]:
    """The JSON that ``read_edit`` reads."""
    return {"op": edit.op, **to_json(edit)}


# applying them

Values = Mapping[str, Tensor]
"""Values of one example by the names of taps: z (1, H, T, K) and hidden values (1, T, N)."""
Found = Callable[[], Values]
"""Values that may differ from input to input: asked for when there is an output to replace."""
StandIns = Callable[[StandInName], Found]
Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Parts:
    """The parts of a model that edits can name, looked up once."""

    taps: dict[str, Tap]
    sites: dict[str, Site]
    feeds: list[str]
    layers: dict[str, list[str]]

    @staticmethod
    def of(model: Model) -> "Parts":
        sites = {site.path: site for site in model.sites()}
        return Parts(taps(model), sites, model.feeds(), {each.path: each.parts for each in model.layers()})

    def outputs(self) -> list[str]:
        """The taps at which outputs are taken away or swapped: every z and all hidden values."""
        return [self.output(part) for part in (*self.sites, *self.feeds)]

    def output(self, part: str) -> str:
        """The tap at the output of a site or a feed."""
        return f"{part}.z" if part in self.sites else f"{part}{HIDDEN}"

    def head(self, name: str) -> tuple[Site, int] | None:
        """The site and the number of the head called ``name``; None if there is none."""
        path, _, index = name.rpartition(".")
        site = self.sites.get(path)
        return (site, int(index)) if site is not None and name in site.head_names else None

    def named(self, at: str) -> list[tuple[str, int | None]]:
        """The sites and feeds that ``at`` names, with the number of the head if it names one head."""
        head = self.head(at)
        if head is not None:
            return [(head[0].path, head[1])]
        if at in self.sites or at in self.feeds:
            return [(at, None)]
        if at in self.layers:
            return [(path, None) for path in self.layers[at]]
        raise self._unknown(at, [*self.layers, *self.sites, *self.feeds], "head, site, feed or layer")

    def heads_at(self, at: str) -> tuple[Site, int | None]:
        """The one head, or all heads of the site, that ``at`` names."""
        if at in self.sites:
            return self.sites[at], None
        head = self.head(at)
        if head is None:
            raise self._unknown(at, list(self.sites), "head or site")
        return head

    def _unknown(self, at: str, known: list[str], what: str) -> InputError:
        heads = [name for site in self.sites.values() for name in site.head_names]
        return InputError(f"the model has no {what} {brief(at)}{nearest(at, [*known, *heads])}")


@contextmanager
def changed(
    parts: Parts, edits: Sequence[Edit], stand_ins: StandIns, other: Values | None = None
) -> Iterator[None]:
    """Apply ``edits`` to a model while the context is open: scores first, then patterns, then outputs.

    ``stand_ins`` gives what takes the place of what is off, ``other`` are values of the other input.
    """
    with ExitStack() as stack:
        for name, change in changes(parts, edits, stand_ins, other):
            stack.enter_context(parts.taps[name].applying(change))
        yield


def changes(
    parts: Parts, edits: Sequence[Edit], stand_ins: StandIns, other: Values | None = None
) -> list[tuple[str, Change]]:
    """What is done to the value at which tap."""
    found: list[tuple[str, Change]] = []
    for edit in edits:
        match edit:
            case Scale():
                site, head = parts.heads_at(edit.at)
                found.append((f"{site.path}.scores", _scaled(edit.by, head)))
            case Paint():
                site, head = parts.heads_at(edit.at)
                if head is None:
                    raise InputError(f"a pattern is painted for one head, but {edit.at} is a site")
                found.append((f"{site.path}.pattern", _painted(edit, site, head)))
            case Off():
                values = stand_ins(edit.to)
                found += [
                    (name := parts.output(part), _replaced(name, head, values, own_beyond=False))
                    for part, head in parts.named(edit.at)
                ]
            case Swap():
                if other is None:
                    raise InputError(f"to swap {edit.at}, another input is needed; give one as other")
                found += [
                    (
                        name := parts.output(part),
                        _replaced(name, head, partial(_same, other), own_beyond=True),
                    )
                    for part, head in parts.named(edit.at)
                ]
    return found


def _scaled(by: float, head: int | None) -> Change:
    def scale(scores: Tensor) -> Tensor:
        times = scores.new_ones(scores.shape[1], 1, 1)
        times[slice(None) if head is None else head] = by
        return torch.where(scores.isinf(), scores, scores * times)

    return scale


def _painted(edit: Paint, site: Site, head: int) -> Change:
    grows = site.queries == site.keys == "answer"  # keys that an answer in the making does not have yet
    rows = {int(query): torch.tensor(weights) for query, weights in edit.rows.items()}
    for query, weights in rows.items():
        if grows and bool((weights[query + 1 :] > 0).any()):
            raise InputError(f"the painted row {query} of {edit.at} looks at tokens that come later")

    def paint(pattern: Tensor) -> Tensor:
        queries, keys = pattern.shape[2:]
        pattern = pattern.clone()
        for query, weights in rows.items():
            if not (len(weights) == keys or (grows and len(weights) > keys)):
                raise InputError(
                    f"the painted row {query} of {edit.at} has {len(weights)} weights for {keys} keys"
                )
            if query < queries:
                pattern[:, head, query] = weights[:keys].to(pattern)
        return pattern

    return paint


def _same(values: Values) -> Values:
    return values


def _replaced(name: str, head: int | None, values: Found, *, own_beyond: bool) -> Change:
    """What puts ``values`` in the place of the output at a tap, of one head or of all; a place beyond those
    of ``values`` keeps its own value, or takes the last.
    """
    places = -2

    def replace(value: Tensor) -> Tensor:
        given = values()[name]
        count, known = value.shape[places], given.shape[places]
        beyond = max(0, count - known) if known > 1 or own_beyond else 0
        new = given if known == 1 and not beyond else given.narrow(places, 0, min(count, known))
        new = new.to(value)
        if beyond:
            own = value.narrow(places, known, beyond)
            last = new.narrow(places, known - 1, 1)
            rest = own if own_beyond else last.expand(*last.shape[:-2], beyond, last.shape[-1])
            new = torch.cat((new.expand(len(rest), *new.shape[1:]), rest), dim=places)
        if head is None:
            return new.expand_as(value)
        chosen = torch.arange(value.shape[1], device=value.device)[:, None, None] == head
        return torch.where(chosen, new, value)

    return replace
