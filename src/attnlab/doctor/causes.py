"""Causes and symptoms: which finding explains which, and the order that follows.

A fault class names in ``explains`` the kinds that it brings about. A finding of such a kind stands below
its cause and says so; the cause stands where the gravest of what it explains would. So no confidence has
to be tuned for the sake of the order. What was there before the first step is explained by nothing that
came with training.
"""

from collections.abc import Mapping
from dataclasses import replace

from attnlab.doctor.findings import SEVERITIES, Finding
from attnlab.doctor.limits import CAUSE

Explains = Mapping[str, tuple[str, ...]]
"""By the kind of a cause, the kinds of its symptoms."""

SHALLOW = ("constant-predictor", "majority-class", "loss-stuck")
"""What every fault of learning ends in."""
UNFORMED = ("heads-uniform", *SHALLOW)
"""What a training leaves that moved too little."""
RESTING = ("heads-dead", "units-dead", "input-ignored", *UNFORMED)
"""Parts of the model that do nothing, which training has left so or made so."""
UNLEARNED = ("diverged", "rate-too-low", "rate-too-high", "clipped-mostly", *RESTING)
"""How a training looks that cannot succeed, whatever its rate."""
MISJUDGED = ("memorising", "kept-by-wrong-metric", "decoding-disagrees", "labels-wrong")
"""What measures what was learned."""
MISLED = (*MISJUDGED, *UNLEARNED)
"""How a training looks that is given or computes the wrong thing."""
BROKEN = ("parameters-frozen", *MISLED)
"""The same, where a part of the model is not what it should be."""
UNREACHED = ("parameters-frozen", "rate-too-low", "clipped-mostly", *MISJUDGED, *UNFORMED)
"""What parts that do nothing from the start bring about."""


def ranked(findings: list[Finding], explains: Explains | None = None) -> list[Finding]:
    """The gravest first, and of these the most certain; causes above what they explain."""
    causes = {each.kind: _causes(each, findings, explains or {}) for each in findings}
    left = sorted(findings, key=lambda each: (_gravity(each, findings, causes), -each.confidence))
    order = list[Finding]()
    while left:
        waiting = {each.kind for each in left}
        ready = (each for each in left if not waiting & set(causes[each.kind]))
        following = next(ready, left[0])
        left.remove(following)
        above = [each.kind for each in order if each.kind in causes[following.kind]]
        order.append(replace(following, explained_by=above[0] if above else ""))
    return order


def _causes(symptom: Finding, findings: list[Finding], explains: Explains) -> list[str]:
    """Kinds of the findings that explain it, and are sure and grave enough to do so."""
    return [
        each.kind
        for each in findings
        if symptom.kind in explains.get(each.kind, ())
        and each.confidence >= CAUSE.value
        and each.severity != "note"
        and (each.from_start or not symptom.from_start)
    ]


def _gravity(cause: Finding, findings: list[Finding], causes: Mapping[str, list[str]]) -> int:
    """The place of its severity, or of the gravest that it explains."""
    own = [cause.severity, *(each.severity for each in findings if cause.kind in causes[each.kind])]
    return min(map(SEVERITIES.index, own))
