"""Is attention an explanation here? A rule, so that the answer follows from the numbers.

Of a method, over many inputs, with 95% intervals of means over inputs:

    faithful    its order beats chance: for deletion and for insertion, with each replacement, the interval
                of the advantage lies above 0
    agreeing    it ranks parts as occlusion does: the interval of rho lies above ``AGREE``, and that of
                rho less the rho of the mere contrast of parts, input by input, lies above 0; no model is
                asked for contrast. Occlusion itself, the yardstick, is not asked this
    learned     it changes when the weights are shuffled: the interval of rho with itself on shuffled
                weights lies below ``AGREE``

    yes      if it is faithful, agreeing and learned
    partly   if it is not, but beats chance with at least one replacement, for deletion and insertion
    no       otherwise

The answer for attention is the better one of raw attention's and rollout's. Of fewer than ``FEWEST`` inputs
there is no answer: a bootstrap interval of few values is too narrow, and one of two values holds the true
mean about every second time (``attnlab.analysis.seeds``).

A random order that is judged as if it were a method must come out at chance; p of "its advantage is 0" is
that of the sign-flip test, Holm-adjusted over all curves.
"""

from dataclasses import replace

from attnlab.analysis.explain.curves import MODES
from attnlab.analysis.explain.methods import ATTENTION, OCCLUSION, ROLLOUT
from attnlab.analysis.explain.results import Judgement, Verdict

AGREE = 0.5
FEWEST = 20
FEW = "too few inputs"
ANSWERS = ("no", "partly", "yes")
OFF_CHANCE = 0.05
RULE = (
    "yes: both curves beat chance with every replacement, ranks agree with occlusion's (rho above "
    f"{AGREE:g} and above that of mere contrast, input by input; not asked of occlusion itself) and change "
    f"with shuffled weights (rho below {AGREE:g}), each by its whole 95% interval; partly: both curves "
    f"beat chance with one replacement at least; no: otherwise; {FEW}: below {FEWEST}, since intervals of "
    "few values are too narrow"
)


def with_verdicts(found: Judgement) -> Judgement:
    """``found`` with the verdict on each method, and what that says of attention."""
    found = replace(found, verdicts={name: judge_method(found, name) for name in found.methods})
    return replace(found, sentence=" ".join(filter(None, (sentence(found), warning(found)))))


def judge_method(found: Judgement, method: str) -> Verdict:
    """The answer for one method, and what it rests on; None where that is not known or not asked."""
    if found.inputs < FEWEST:
        return Verdict(answer=FEW, beats_chance=None, agreeing=None, learned=None)
    gains = found.advantage[method]
    beats = [each for each in found.replacements if all(gains[each][m].surely_above(0.0) for m in MODES)]
    agreeing = None if method == OCCLUSION else _agreeing(found, method)
    learned = found.shuffled[method].surely_below(AGREE)
    faithful = len(beats) == len(found.replacements)
    answer = "yes" if faithful and agreeing is not False and learned else "partly" if beats else "no"
    return Verdict(answer=answer, beats_chance=beats, agreeing=agreeing, learned=learned)


def _agreeing(found: Judgement, method: str) -> bool:
    rho, above = found.agreement[method][OCCLUSION], found.above_contrast[method]
    return rho.surely_above(AGREE) and above.surely_above(0.0)


def sentence(found: Judgement) -> str:
    """One sentence about attention, from ``found`` with its verdicts."""
    if found.inputs < FEWEST:
        return (
            f"Is attention an explanation here? {FEW.capitalize()}: there are {found.inputs}, and 95% "
            f"intervals of fewer than {FEWEST} are too narrow to judge by."
        )
    told = [_about(found, ATTENTION, "raw attention"), _about(found, ROLLOUT, "rollout")]
    best = max((found.verdicts[name].answer for name in (ATTENTION, ROLLOUT)), key=ANSWERS.index)
    told.append(f"the contrast of parts, with no model asked, has rho {found.contrast.value:.2f}")
    return f"Is attention an explanation here? {best.capitalize()}: {'; '.join(told)}."


def warning(found: Judgement) -> str | None:
    """One sentence if a random order does not come out at chance."""
    if found.random_p >= OFF_CHANCE:
        return None
    return (
        f"Beware: a random order does not come out at chance here (p = {found.random_p:.4f}, adjusted "
        "for all curves), so advantages over chance are not to be relied on."
    )


def _about(found: Judgement, method: str, name: str) -> str:
    verdict = found.verdicts[method]
    beats = verdict.beats_chance or []
    every = len(found.replacements)
    how = {0: "beats chance with no replacement", every: "beats chance with every replacement"}
    first = how.get(len(beats), f"beats chance with {' and '.join(beats)} replacement only")
    rho, own = found.agreement[method][OCCLUSION], found.shuffled[method]
    agrees = rho.surely_above(AGREE)
    ranks = "ranks parts as occlusion does" if agrees else "does not rank parts as occlusion does"
    if agrees and not verdict.agreeing:
        ranks += ", but not surely better than mere contrast"
    learned = "changes" if verdict.learned else "does not surely change"
    low, high = rho.ends
    return (
        f"{name} {first}, {ranks} (rho {rho.value:.2f}, 95%: {low:.2f} to "
        f"{high:.2f}) and {learned} when weights are shuffled (rho {own.value:.2f})"
    )
