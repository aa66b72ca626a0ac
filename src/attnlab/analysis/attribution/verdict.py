"""Is attention an explanation here? A rule, so that the answer follows from the numbers.

Of a method, over many inputs, with 95% intervals of means over inputs:

    faithful    its order beats chance: for deletion and for insertion, with each replacement, the interval
                of the advantage lies above 0
    agreeing    it ranks parts as occlusion does: the interval of rho lies above ``AGREE``, and above the
                rho of the mere contrast of parts, for which no model is asked
    learned     it changes when the weights are shuffled: the interval of rho with itself on shuffled
                weights lies below ``AGREE``

    yes      if it is faithful, agreeing and learned
    partly   if it is not, but beats chance with at least one replacement, for deletion and insertion
    no       otherwise

The answer for attention is the better one of raw attention's and rollout's.
"""

from typing import Any

from attnlab.analysis.attribution.curves import MODES
from attnlab.analysis.attribution.methods import ATTENTION, OCCLUSION, ROLLOUT

AGREE = 0.5
ANSWERS = ("no", "partly", "yes")
RULE = (
    "yes: both curves beat chance with every replacement, ranks agree with occlusion's (rho above "
    f"{AGREE:g} and above that of mere contrast) and change with shuffled weights (rho below {AGREE:g}), "
    "each by its whole 95% interval; partly: both curves beat chance with one replacement at least; "
    "no: otherwise"
)


def judge_method(found: dict[str, Any], method: str) -> dict[str, Any]:
    """The answer for one method, and what it rests on."""
    gains = found["advantage"][method]
    beats = [
        replacement
        for replacement in found["replacements"]
        if all(gains[replacement][mode]["interval"][0] > 0 for mode in MODES)
    ]
    needed = max(AGREE, found["contrast"]["value"])
    agreeing = found["agreement"][method][OCCLUSION]["interval"][0] > needed
    learned = found["shuffled"][method]["interval"][1] < AGREE
    faithful = len(beats) == len(found["replacements"])
    answer = "yes" if faithful and agreeing and learned else "partly" if beats else "no"
    return {"answer": answer, "beats_chance": beats, "agreeing": agreeing, "learned": learned}


def sentence(found: dict[str, Any]) -> str:
    """One sentence about attention, from ``found`` with its verdicts."""
    told = [_about(found, ATTENTION, "raw attention"), _about(found, ROLLOUT, "rollout")]
    best = max((found["verdicts"][name]["answer"] for name in (ATTENTION, ROLLOUT)), key=ANSWERS.index)
    told.append(f"the contrast of parts, with no model asked, has rho {found['contrast']['value']:.2f}")
    return f"Is attention an explanation here? {best.capitalize()}: {'; '.join(told)}."


def _about(found: dict[str, Any], method: str, name: str) -> str:
    verdict = found["verdicts"][method]
    beats = verdict["beats_chance"]
    every = len(found["replacements"])
    how = {0: "beats chance with no replacement", every: "beats chance with every replacement"}
    first = how.get(len(beats), f"beats chance with {' and '.join(beats)} replacement only")
    rho, own = found["agreement"][method][OCCLUSION], found["shuffled"][method]
    low, high = rho["interval"]
    ranks = "ranks parts as occlusion does" if low > AGREE else "does not rank parts as occlusion does"
    if low > AGREE and not verdict["agreeing"]:
        ranks += ", but no better than mere contrast"
    learned = "changes" if verdict["learned"] else "does not surely change"
    return (
        f"{name} {first}, {ranks} (rho {rho['value']:.2f}, 95%: {low:.2f} to "
        f"{high:.2f}) and {learned} when weights are shuffled (rho {own['value']:.2f})"
    )
