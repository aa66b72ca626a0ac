"""Activation patching: a model's run on one input, with some of its values taken from its run on another.

Both runs are recorded once. A patched run computes only what comes after the first site: every tap that
fired before it is unchanged, so its recorded value is supplied. Of a number m that is read from the logits,
the share that a patch restores is

    (mean m(patched) - mean m(base)) / (mean m(donor) - mean m(base)),

0 if nothing changes and 1 if the patched run answers as the donor does (Vig et al., 2020; Wang et al.,
2022; Heimersheim and Nanda, 2024). It can lie outside of 0 to 1. It is not additive: shares of single sites
need not sum to 1.
"""

import warnings
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.heads import draws
from attnlab.analysis.subjects import BATCH, NUMBERS, require_attention
from attnlab.devices import to_device_of
from attnlab.errors import LabError, brief, nearest
from attnlab.model import Model
from attnlab.results import Interval
from attnlab.taps import SUPPLIED, Edit, edit, record, supply, taps

Read = Callable[..., Tensor]
"""From what the model gives to one number a pair, such as the difference of two logits."""

QUANTITIES = ("q", "k", "v", "pattern", "z", "out")
"""Last names of the taps that are recorded: those of attentions, and ``out`` of residual sums."""

RESAMPLES = 1000
_ENDS = torch.tensor([0.025, 0.975], dtype=torch.double)


class SmallDifferenceWarning(UserWarning):
    """Base and donor hardly differ in what is read, so shares of that difference mean little."""


@final
@dataclass(frozen=True, order=True)
class Site:
    """``Site("encoder.1.self.z", head=3)`` is one head's output at every position.

    ``head`` is for taps (B, H, T, ...), ``position`` for these and for (B, T, D). At ``k`` and ``v`` a
    position is a key's, at ``pattern`` a query's: its whole row is put in. None takes all there are.
    """

    tap: str
    head: int | None = None
    position: int | None = None

    def index(self, value: Tensor) -> tuple[slice | int, ...]:
        """Where in ``value`` this site lies."""
        if self.head is not None and value.ndim != 4:
            raise LabError(f"tap {brief(self.tap)} has no heads to choose head {self.head} from")
        axes = (self.head, self.position) if value.ndim == 4 else (self.position,)
        names = ("head", "position") if value.ndim == 4 else ("position",)
        sizes = value.shape[1 : 1 + len(axes)]
        for name, place, size in zip(names, axes, sizes, strict=True):
            if place is not None and not 0 <= place < size:
                raise LabError(
                    f"tap {brief(self.tap)} has {size} {name}s from 0 on, so none is {name} {place}"
                )
        return (slice(None), *(slice(None) if place is None else place for place in axes))


def tap_name(path: str, quantity: str) -> str:
    """The tap of a quantity of the attention at ``path``; the empty path is the model itself."""
    return f"{path}.{quantity}" if path else quantity


def head_site(head: str, quantity: str = "z") -> Site:
    """A quantity of the head ``path.index``, at every position."""
    path, _, index = head.rpartition(".")
    return Site(tap_name(path, quantity), head=int(index))


@final
@dataclass(frozen=True)
class Share:
    """A ratio of means and its 95% interval."""

    value: float
    interval: Interval

    def rounded(self, decimals: int) -> "Share":
        """To so many decimals."""
        low, high = self.interval
        return Share(round(self.value, decimals), (round(low, decimals), round(high, decimals)))


def shares(
    patched: Float[Tensor, "M N"], base: Float[Tensor, "N"], donor: Float[Tensor, "N"]
) -> list[Share]:
    """(mean patched - mean base) / (mean donor - mean base) of each row.

    The interval is that of the bootstrap over pairs (percentiles; Efron, 1979): numerator and denominator
    are drawn together, and every row sees the same draws.
    """
    moved, whole = (patched - base).double(), (donor - base).double()
    if not abs(float(whole.mean())) > 1e-9 * (1 + float(base.abs().max())):
        raise LabError("base and donor do not differ in what is read, so there is nothing to restore")
    weights = _draws(len(base))  # (R, N)
    spread = (moved @ weights.T) / (whole @ weights.T)  # (M, R)
    ends = spread.quantile(_ENDS, dim=1)
    values = moved.mean(dim=1) / whole.mean()
    return [
        Share(value, (low, high)) for value, low, high in zip(values.tolist(), *ends.tolist(), strict=True)
    ]


def denominator(base: Float[Tensor, "N"], donor: Float[Tensor, "N"]) -> Share:
    """What shares are of: mean donor - mean base, with the interval of the same draws."""
    whole = (donor - base).double()
    low, high = (whole @ _draws(len(base)).T / len(base)).quantile(_ENDS).tolist()
    return Share(whole.mean().item(), (low, high))


def _draws(count: int) -> Float[Tensor, "R N"]:
    """How often each of ``count`` pairs is drawn, in each resample."""
    return draws(count, RESAMPLES, torch.Generator().manual_seed(0))


@final
@dataclass(frozen=True)
class Watched:
    """One run: what went in, the value at every tap in the order of firing, what came out, and what was
    read from it, on the CPU.
    """

    inputs: tuple[Tensor, ...]
    seen: dict[str, Tensor]
    given: Tensor
    values: Float[Tensor, "N"]

    def __getitem__(self, part: slice) -> "Watched":
        seen = {name: value[part] for name, value in self.seen.items()}
        return Watched(
            tuple(value[part] for value in self.inputs), seen, self.given[part], self.values[part]
        )


@final
@dataclass(frozen=True)
class Patching:
    """Runs of ``model`` on the base's input in which chosen values are the donor's.

    ``read(given, *known)`` makes numbers (N) of what the model gives; ``known`` are tensors (N, ...) that
    it needs beside, such as the right answers.
    """

    model: Model
    base: Watched
    donor: Watched
    read: Read
    known: tuple[Tensor, ...] = ()

    @classmethod
    def between(
        cls,
        model: Model,
        base: tuple[Tensor, ...],
        donor: tuple[Tensor, ...],
        read: Read,
        *,
        known: tuple[Tensor, ...] = (),
        quantities: Sequence[str] = QUANTITIES,
    ) -> "Patching":
        """Run ``model(*base)`` and ``model(*donor)`` and keep what is needed to mix them."""
        if model.training:
            raise LabError(
                "the model is in training mode, where no two runs are alike; call its eval() first"
            )
        if not len(base[0]):
            raise LabError("there are no pairs of inputs to patch; give at least 1")
        if any(mine.shape != yours.shape for mine, yours in zip(base, donor, strict=True)):
            raise LabError("base and donor must have the same shapes, since their values trade places")
        require_attention(model)
        names = [name for name in taps(model) if name.rpartition(".")[2] in quantities]
        base, donor, known = (to_device_of(model, *each) for each in (base, donor, known))
        mine, yours = (
            _watch(model, inputs, names, lambda given: read(given, *known)) for inputs in (base, donor)
        )
        return cls(model, mine, yours, read, known)

    def __len__(self) -> int:
        return len(self.base.values)

    def __getitem__(self, part: slice) -> "Patching":
        known = tuple(value[part] for value in self.known)
        return replace(self, base=self.base[part], donor=self.donor[part], known=known)

    @property
    def copies(self) -> int:
        """How often all pairs fit into one batch."""
        ready = (value for name, value in self.base.seen.items() if name.rpartition(".")[2] in SUPPLIED)
        rows = len(self) * NUMBERS // max(1, sum(map(Tensor.numel, ready)))
        return max(1, min(BATCH, rows) // len(self))

    def turned(self) -> "Patching":
        """The other direction: the donor's run with values of the base."""
        return replace(self, base=self.donor, donor=self.base)

    def given(self, sites: Sequence[Site]) -> Tensor:
        """What the model gives for the base's input with the donor's values at ``sites``."""
        return Copies(self, 1).given([sites])

    def values(self, sites: Sequence[Site]) -> Float[Tensor, "N"]:
        """What is read, for every pair."""
        return self.read(self.given(sites), *self.known).cpu()

    def share(self, sites: Sequence[Site]) -> Share:
        """How much of the way from base to donor ``sites`` bring, with a 95% interval over pairs."""
        return self.shares(self.values(sites)[None])[0]

    def shares(self, values: Float[Tensor, "M N"]) -> list[Share]:
        """The shares that several patches restore, from what was read of each.

        There is a ``SmallDifferenceWarning`` where base and donor may not differ.
        """
        found = shares(values, self.base.values, self.donor.values)
        if self.warning is not None:
            warnings.warn(self.warning, SmallDifferenceWarning, stacklevel=3)
        return found

    @cached_property
    def warning(self) -> str | None:
        """What to say where the interval of the denominator, donor minus base, has zero in it."""
        whole = denominator(self.base.values, self.donor.values)
        low, high = whole.interval
        if not low <= 0 <= high:
            return None
        return (
            f"base and donor differ by {whole.value:.3g} (95%: {low:.3g} to {high:.3g}) in what is read, "
            "which may be nothing, so shares of that difference mean little; take more pairs or others"
        )

    def check(self, site: Site) -> None:
        """Refuse a site that is not there."""
        if site.tap not in self.base.seen:
            raise LabError(f"no tap {brief(site.tap)} was recorded{nearest(site.tap, self.base.seen)}")
        site.index(self.base.seen[site.tap])


@final
class Copies:
    """The same pairs several times over in one batch, so that one pass tries several patches."""

    def __init__(self, patching: Patching, count: int) -> None:
        self._patching = patching
        self._pairs = len(patching)
        self._inputs = [_tile(value, count) for value in patching.base.inputs]
        self._ready = {
            name: _tile(value, count)
            for name, value in patching.base.seen.items()
            if name.rpartition(".")[2] in SUPPLIED
        }

    @torch.inference_mode()
    def given(self, patches: Sequence[Sequence[Site]]) -> Tensor:
        """What the model gives under each of the patches, one after the other along the batch."""
        chosen: dict[str, list[tuple[int, Site]]] = {}
        for copy, sites in enumerate(patches):
            for site in sites:
                self._patching.check(site)
                chosen.setdefault(site.tap, []).append((copy, site))
        rows = len(patches) * self._pairs
        ready = {name: self._ready[name][:rows] for name in self._before(chosen)}
        edits = {tap: self._put(tap, places) for tap, places in chosen.items()}
        with supply(self._patching.model, ready), edit(self._patching.model, edits):
            return self._patching.model(*(value[:rows] for value in self._inputs))

    def values(self, patches: Sequence[Sequence[Site]]) -> Float[Tensor, "M N"]:
        """What is read under each patch, for every pair."""
        given = self.given(patches)
        parts = given.reshape(len(patches), self._pairs, *given.shape[1:])
        return torch.stack([self._patching.read(part, *self._patching.known) for part in parts]).cpu()

    def _put(self, tap: str, places: list[tuple[int, Site]]) -> Edit:
        donor = self._patching.donor.seen[tap]

        def change(value: Tensor) -> Tensor:
            mixed = value.clone()
            for copy, site in places:
                part = mixed[copy * self._pairs : (copy + 1) * self._pairs]
                part[site.index(donor)] = donor[site.index(donor)]
            return mixed

        return change

    def _before(self, edited: Container[str]) -> list[str]:
        """Taps that no edit can reach, and the first edited one, which is edited after it was supplied."""
        found = []
        for name in self._patching.base.seen:
            if name in self._ready:
                found.append(name)
            if name in edited:
                break
        return found


def _tile(value: Tensor, count: int) -> Tensor:
    return value if count == 1 else value.repeat(count, *[1] * (value.ndim - 1))


@torch.inference_mode()
def _watch(model: Model, inputs: tuple[Tensor, ...], names: list[str], read: Read) -> Watched:
    with record(model, *names) as seen:
        given = model(*inputs)
    return Watched(inputs, dict(seen), given, read(given).cpu())
