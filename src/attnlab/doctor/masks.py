"""Faults of what attention may see: later tokens of the answer, and padding.

Whether a later token changes an earlier logit is an identity that holds exactly or not at all. Which
mistake it was is read off the patterns: weight on the next token only, on later tokens only, or on all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.doctor.causes import BROKEN
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy
from attnlab.doctor.limits import ROUNDING
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError, distinct, own_tokens
from attnlab.model import Site

PLACES = 16
"""Tokens of the answer that are replaced, at most."""


@final
@dataclass(frozen=True)
class Reach:
    """``changes[i, t]``: how far the logits at t move if token ``places[i]`` of the answer is another."""

    places: list[int]
    changes: Float[Tensor, "P T"]

    def ahead(self, least: int = 1, most: int | None = None) -> float:
        """The largest change at tokens that stand ``least`` to ``most`` before the replaced one."""
        return self._largest(lambda distance: least <= distance and (most is None or distance <= most))

    def behind(self) -> float:
        """The largest change at tokens behind the replaced one."""
        return self._largest(lambda distance: distance < 0)

    def _largest(self, wanted: Callable[[int], bool]) -> float:
        count = self.changes.shape[1]
        rows = [
            self.changes[row, t].item()
            for row, place in enumerate(self.places)
            for t in range(count)
            if wanted(place - t)
        ]
        return max(rows, default=0.0)

    def curve(self) -> Curve:
        """The largest change by the distance from the replaced token."""
        count = self.changes.shape[1]
        offsets = range(1 - count, count)
        largest = [self._largest(partial(eq, -at)) for at in offsets]
        return Curve(
            "tokens behind the replaced one",
            "change of logits",
            [float(at) for at in offsets],
            {"change": largest},
        )


def reach_of(patient: Patient) -> Reach:
    """Replace tokens of the answer one by one."""
    return patient.once("reach", lambda: _reach(patient))


def _reach(patient: Patient) -> Reach:
    number = patient.fed
    inputs, fed = list(patient.inputs), patient.inputs[number]
    length = fed.shape[1]
    if patient.logits.dim() != 3 or patient.logits.shape[1] != length or length < 2:
        raise UncheckedError("its logits do not stand at the tokens of the answer")
    known = distinct(fed.flatten())
    if len(known) < 2:
        raise UncheckedError("all tokens of the answers are alike")
    step = max(1, -(-length // PLACES))
    places, rows = list(range(length - 1, 0, -step)), []
    for place in places:
        other = fed.clone()
        number_of = torch.searchsorted(known, fed[:, place].contiguous())
        other[:, place] = known[(number_of + 1) % len(known)]
        changed = patient.change(*inputs[:number], other, *inputs[number + 1 :])
        rows.append(changed.amax(dim=(0, 2)).cpu())
    return Reach(places, torch.stack(rows))


def causal_fault(patient: Patient) -> str:
    """The kind of mistake in the causal mask; empty where there is none."""
    reach = reach_of(patient)
    if not reach.ahead() > ROUNDING.value:
        return ""
    masses = [_masses(patient.seen[f"{site.path}.pattern"]) for site in _own(patient)]
    if masses:
        ahead = [each for each in masses if max(each[1:]) > ROUNDING.value]
        masses = ahead or masses  # where some look ahead, others do not count
        before, near, far = (max(each) for each in zip(*masses, strict=True))
    else:
        before, near, far = reach.behind(), reach.ahead(), reach.ahead(least=2)
    if max(near, far) <= ROUNDING.value:
        return AnswerLeaks.kind
    if not before > ROUNDING.value:
        return CausalMaskInverted.kind
    return CausalMaskMissing.kind if far > ROUNDING.value else CausalMaskOffByOne.kind


def _own(patient: Patient) -> list[Site]:
    """Attentions among the tokens of the answer."""
    own = [site for site in patient.model.sites() if site.kind == "self"]
    return own if patient.fed == 0 else [site for site in own if site.queries == "answer"]


def _masses(pattern: Float[Tensor, "B H T S"]) -> tuple[float, float, float]:
    """The most weight on a key before the query, on the next one, and on keys behind that."""
    far = pattern.triu(2)
    return pattern.tril(-1).amax().item(), (pattern.triu(1) - far).amax().item(), far.amax().item()


class _Causal(Fault):
    family = "attention"
    source = "probe"
    looks_at = "logits of the answer, as each later token is replaced by another; patterns"
    limits = (ROUNDING,)
    explains = ("memory-ignored", "cache-disagrees", *BROKEN)
    said: ClassVar[str]
    sure: ClassVar[float] = 1.0

    def examine(self, patient: Patient) -> Finding | None:
        if causal_fault(patient) != self.kind:
            return None
        reach = reach_of(patient)
        evidence = {"change before the replaced token": reach.ahead(), "change behind it": reach.behind()}
        remedy = Remedy(
            "let each token of the answer see itself and what stands before it",
            code="visible = torch.ones(T, T, dtype=torch.bool).tril()  # true where a query may look",
        )
        text = f"a later token of the answer changes an earlier logit: {self.said}"
        return self.finding("serious", self.sure, text, evidence, remedy, reach.curve())


@final
class CausalMaskMissing(_Causal):
    """A later token of the answer changes an earlier logit, at any distance: there is no causal mask."""

    kind = "causal-mask-missing"
    said = "each token sees all that come after it"


@final
class CausalMaskInverted(_Causal):
    """Tokens of the answer see what comes after them and not what stands before."""

    kind = "causal-mask-inverted"
    said = "tokens see what comes after them and nothing of what stands before, so the mask is inverted"


@final
class CausalMaskOffByOne(_Causal):
    """Each token of the answer sees the one after it."""

    kind = "causal-mask-off-by-one"
    said = "each token sees exactly one token too far"


@final
class AnswerLeaks(_Causal):
    """A later token of the answer changes an earlier logit although no attention looks ahead."""

    kind = "answer-leaks"
    said = "no attention looks ahead, so something else mixes the tokens, such as a norm over all of them"
    sure = 0.8


@final
class PaddingSeen(Fault):
    """The logits of an example change with the padding behind it."""

    kind = "padding-seen"
    family = "attention"
    source = "probe"
    looks_at = "logits of an example with padding and without"
    limits = (ROUNDING,)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        patient.require_still()
        worst = max(_padding_changes(patient))
        if not worst > ROUNDING.value:
            return None
        remedy = Remedy(
            "give the attention and the pool a mask that is false at padding",
            code="visible = (tokens != padding)[:, None, None]  # (B, 1, 1, S)",
        )
        text = "the padding behind an example changes its logits"
        return self.finding("serious", 1.0, text, {"change without padding": worst}, remedy)


def _padding_changes(patient: Patient) -> list[float]:
    model, inputs = patient.model, patient.inputs
    mask = own_tokens(patient)
    if mask is None:
        raise InapplicableError("inputs have no padding")
    some = torch.nonzero(~mask.all(dim=1)).flatten().tolist()
    if not some:
        raise UncheckedError("none of the probed examples has padding")
    found = []
    for row in some:
        alone = tuple(each[row : row + 1] for each in inputs)
        own = mask[row]
        short = model.unpadded(alone)
        if short[0].shape == alone[0].shape:
            short = (alone[0][:, own], *alone[1:])
        bare = patient.ask(*short)
        full = patient.logits[row : row + 1]
        if full.dim() == 3 and full.shape[1] != bare.shape[1]:
            full = full[:, own]
        found.append(((bare - full).abs().max() / patient.spread).item())
    return found


FAULTS = (CausalMaskMissing, CausalMaskInverted, CausalMaskOffByOne, AnswerLeaks, PaddingSeen)
