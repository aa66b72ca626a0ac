"""Faults of how scores become patterns: the scale, the axis of the softmax, shared or exchanged q and k.

The scale is measured exactly, whatever is added to the scores: with q doubled at one attention, its scores
grow by s q·k, and s times the root of the width of a head is 1 where all is well.
"""

import math
from typing import ClassVar, final

import torch
from torch import Tensor

from attnlab.doctor.causes import BROKEN
from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Finding, Remedy, Severity
from attnlab.doctor.limits import FAINT, GOOD, LINEAR, ROUNDING, ROW_SUM, SAME_QK, SCALE
from attnlab.doctor.patient import InapplicableError, Patient, UncheckedError
from attnlab.taps import edit, record


def scales_of(patient: Patient) -> dict[str, float]:
    """The scale of the scores of each attention times sqrt(K); 1 is right."""
    return patient.once("scales", lambda: _scales(patient))


def _scales(patient: Patient) -> dict[str, float]:
    found = {}
    for site in patient.sites:
        q, k, scores = (patient.seen[f"{site.path}.{part}"] for part in ("q", "k", "scores"))
        name = f"{site.path}.scores"
        with edit(patient.model, {f"{site.path}.q": lambda q: 2 * q}), record(patient.model, name) as seen:
            patient.ask(*patient.inputs)
        scale = _slope(q @ k.transpose(-2, -1), scores, seen[name])
        if scale is not None:
            found[site.path] = scale * math.sqrt(q.shape[-1])
    if not found:
        raise UncheckedError("no attention scores its keys by the product of q and k")
    return found


def _slope(products: Tensor, before: Tensor, after: Tensor) -> float | None:
    """s of after - before = s products, if there is such a number for each query."""
    finite = before.isfinite() & after.isfinite()
    x = products.masked_fill(~finite, 0).double()
    y = (after.double() - before.double()).masked_fill(~finite, 0)
    weight = (x * x).sum(dim=-1, keepdim=True)
    each = (x * y).sum(dim=-1, keepdim=True) / weight.clamp(min=1e-12)
    rest, whole = (y - each * x).square().sum(), y.square().sum()
    if not whole > 0 and weight.sum() > 0:
        return 0.0
    if not whole > 0 or rest / whole > LINEAR.value:
        return None
    return ((each * weight).sum() / weight.sum()).item()


class _Scale(Fault):
    family = "attention"
    source = "probe"
    looks_at = "scores of each attention as q is doubled, against the products of q and k"
    limits = (LINEAR, SCALE, FAINT)
    explains = BROKEN
    power: ClassVar[int]
    """Of sqrt(K), that the scale is away from 1 / sqrt(K)."""
    said: ClassVar[str]

    def examine(self, patient: Patient) -> Finding | None:
        wrong, widths = dict[str, float](), list[int]()
        for path, scale in scales_of(patient).items():
            width = patient.seen[f"{path}.q"].shape[-1]
            if width > 1 and scale > 0:
                away = math.log(scale) / math.log(math.sqrt(width))
                if away * self.power > 1 - SCALE.value and scale * math.sqrt(width) > FAINT.value:
                    wrong[path] = scale
                    widths.append(width)
        if not wrong:
            return None
        text = f"the scores of {', '.join(wrong)} {self.said}"
        evidence = {f"scale · √K at {path}": scale for path, scale in wrong.items()}
        remedy = Remedy(
            "divide the products of q and k by the root of the width of a head, once",
            code=f"scores = q @ k.transpose(-2, -1) / math.sqrt({widths[0]})",
        )
        return self.finding("serious", 0.95, text, evidence, remedy)


@final
class ScaleMissing(_Scale):
    """Scores are q·k without the factor 1/√K, so that the softmax saturates."""

    kind = "scale-missing"
    power = 1
    said = "are q·k without the factor 1/√K, so the softmax starts saturated"


@final
class ScaleTwice(_Scale):
    """Scores are divided by √K twice, so that patterns start almost uniform."""

    kind = "scale-twice"
    power = -1
    said = "are divided by √K twice, so patterns are almost uniform"


@final
class SoftmaxAxis(Fault):
    """Rows of a pattern do not sum to 1 over the keys."""

    kind = "softmax-axis"
    family = "attention"
    source = "probe"
    looks_at = "sums of patterns over keys, queries and heads"
    limits = (ROW_SUM,)
    axes: ClassVar[dict[int, str]] = {2: "queries", 1: "heads", 0: "examples"}
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        for site in patient.sites:
            pattern = patient.seen[f"{site.path}.pattern"].double()
            off = _off(pattern, 3)
            if off > ROW_SUM.value:
                other = [name for axis, name in self.axes.items() if _off(pattern, axis) <= ROW_SUM.value]
                instead = f", but over {other[0]} they do" if other else ""
                text = f"the weights of a query of {site.path} do not sum to 1 over the keys{instead}"
                remedy = Remedy(
                    "take the softmax over the keys, the last axis", code="pattern = scores.softmax(dim=-1)"
                )
                return self.finding("serious", 1.0, text, {"distance of a row's sum from 1": off}, remedy)
        return None


def _off(pattern: Tensor, axis: int) -> float:
    """The largest distance of a sum along ``axis`` from 1; what sums to 0 sees nothing."""
    sums = pattern.sum(dim=axis)
    return torch.where(sums == 0, 0.0, (sums - 1).abs()).max().item()


@final
class QueryKeyShared(Fault):
    """Queries and keys of an attention are the same vectors, so it looks at its own token."""

    kind = "query-key-shared"
    family = "attention"
    source = "probe"
    looks_at = "q and k of each self attention"
    limits = (SAME_QK, GOOD)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        same = {}
        for site in patient.sites:
            q, k = (patient.seen[f"{site.path}.{part}"] for part in ("q", "k"))
            if q.shape == k.shape and q.norm() > 0:
                apart = ((q - k).norm() / q.norm()).item()
                if apart < SAME_QK.value:
                    same[site.path] = apart
        if not same:
            return None
        text = f"q and k of {', '.join(same)} are the same, so scores are symmetric"
        remedy = Remedy(
            "give queries and keys weights of their own",
            code="self.key = nn.Linear(width, heads * head_width)",
        )
        evidence = {f"distance of q from k at {path}": apart for path, apart in same.items()}
        severity: Severity = "serious" if patient.accuracy < GOOD.value else "warning"
        return self.finding(severity, 0.9, text, evidence, remedy)


@final
class QueryKeyExchanged(Fault):
    """In a cross attention the keys are made of the answer and the queries of the input."""

    kind = "query-key-exchanged"
    family = "attention"
    source = "probe"
    looks_at = "k of each cross attention, as the tokens of the answer are replaced"
    limits = (ROUNDING,)
    explains = BROKEN

    def examine(self, patient: Patient) -> Finding | None:
        crossing = [site for site in patient.sites if site.kind == "cross"]
        if not crossing:
            raise InapplicableError("there is no cross attention")
        inputs, number = list(patient.inputs), patient.fed
        names = [f"{site.path}.k" for site in crossing]
        inputs[number] = inputs[number].flip(0).roll(1, 1)
        with record(patient.model, *names) as seen:
            patient.ask(*inputs)
        moved = {}
        for name in names:
            before = patient.seen[name]
            away = ((seen[name] - before).abs().max() / before.std().clamp(min=1e-12)).item()
            if away > ROUNDING.value:
                moved[name.removesuffix(".k")] = away
        if not moved:
            return None
        text = f"the keys of {', '.join(moved)} change with the answer, so q and k are exchanged"
        remedy = Remedy(
            "make queries of the answer, keys and values of the input",
            code="attention(x, memory)  # not (memory, x)",
        )
        evidence = {f"change of k at {path}": away for path, away in moved.items()}
        return self.finding("serious", 0.95, text, evidence, remedy)


FAULTS = (ScaleMissing, ScaleTwice, SoftmaxAxis, QueryKeyShared, QueryKeyExchanged)
