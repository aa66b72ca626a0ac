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
mean about every second time (``attnlab.analysis.statistics``).

A random order that is judged as if it were a method must come out at chance; p of "its advantage is 0" is
that of the sign-flip test, Holm-adjusted over all curves.

Many questions: what holds on average, with intervals over inputs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import mean

from attnlab.analysis.explain.curves import CONTROLS, MANY, MODES, RANDOM, Judged, judge_question
from attnlab.analysis.explain.methods import (
    ATTENTION,
    METHODS,
    OCCLUSION,
    ROLLOUT,
    agreement,
    shuffled_ranks,
    shuffled_weights,
    spearman,
)
from attnlab.analysis.explain.perturbation import Background, Question
from attnlab.analysis.explain.results import Judgement, Verdict
from attnlab.analysis.statistics import bootstrap_interval, holm, sign_flip_p
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Estimate

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
    told = sentence(found)
    if found.random_p < OFF_CHANCE:
        told += (
            f" Warning: a random order does not come out at chance here (p = {found.random_p:.4f}, "
            "adjusted for all curves), so advantages over chance are not to be relied on."
        )
    return replace(found, sentence=told)


def judge_method(found: Judgement, method: str) -> Verdict:
    """The answer for one method, and what it rests on; None where that is not known or not asked."""
    if found.inputs < FEWEST:
        return Verdict(answer=FEW, beats_chance=None, agreeing=None, learned=None)
    gains = found.advantage[method]
    beats = [each for each in found.replacements if all(gains[each][m].surely_above(0.0) for m in MODES)]
    agreeing = None
    if method != OCCLUSION:
        rho, above = found.agreement[method][OCCLUSION], found.above_contrast[method]
        agreeing = rho.surely_above(AGREE) and above.surely_above(0.0)
    learned = found.shuffled[method].surely_below(AGREE)
    faithful = len(beats) == len(found.replacements)
    answer = "yes" if faithful and agreeing is not False and learned else "partly" if beats else "no"
    return Verdict(answer=answer, beats_chance=beats, agreeing=agreeing, learned=learned)


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


def explain_many(
    questions: Iterable[Question],
    model: Model,
    backgrounds: Callable[[Model], Background],
    *,
    count: int,
    seed: int = 0,
    progress: Progress = silent,
) -> Judgement:
    """Judge every method on ``count`` questions to ``model``; ``backgrounds`` makes that of any weights.

    Each question is put to shuffled weights of its own, so that inputs stay independent of each other.
    """
    if count < 2:
        raise InputError(f"many is {count}; it must be at least 2, so that there are intervals")
    background = backgrounds(model)
    judged: list[Judged] = []
    ranks: list[dict[str, float]] = []
    for number, question in enumerate(questions):
        each = judge_question(question, background, effort=MANY, seed=seed + number)
        other = shuffled_weights(model, seed=seed + number)
        judged.append(each)
        ranks.append(
            shuffled_ranks(each.scored, question.of(other), backgrounds(other), seed=seed + number)
        )
        progress(number + 1, count)
    return with_verdicts(summary(judged, ranks))


def summary(judged: Sequence[Judged], shuffled: Sequence[dict[str, float]]) -> Judgement:
    """Means over inputs with 95% intervals; the verdicts are still to come."""
    alike = [agreement(each.scored.scores) for each in judged]
    replacements, gains = list(judged[0].curves), [each.advantages() for each in judged]
    chance = [[row[RANDOM][each][mode] for row in gains] for each in replacements for mode in MODES]
    contrast = [spearman(each.contrast, each.scored.scores[OCCLUSION].abs()) for each in judged]
    pairs = {
        (a, b): _estimate([row[a][b] for row in alike])
        for place, a in enumerate(METHODS)
        for b in METHODS[place:]
    }
    return Judgement(
        inputs=len(judged),
        methods=list(METHODS),
        replacements=replacements,
        advantage={
            name: {
                replacement: {
                    mode: _estimate([row[name][replacement][mode] for row in gains]) for mode in MODES
                }
                for replacement in replacements
            }
            for name in (*METHODS, *CONTROLS)
        },
        agreement={a: {b: pairs.get((a, b)) or pairs[b, a] for b in METHODS} for a in METHODS},
        contrast=_estimate(contrast),
        above_contrast={
            name: _estimate([row[name][OCCLUSION] - rho for row, rho in zip(alike, contrast, strict=True)])
            for name in METHODS
            if name != OCCLUSION
        },
        random_p=min(holm([sign_flip_p(values) or 1.0 for values in chance])),
        shuffled={name: _estimate([row[name] for row in shuffled]) for name in METHODS},
        completeness_gap=max(each.scored.gap for each in judged),
        verdicts={},
        sentence="",
        rule=RULE,
    )


def _estimate(values: Sequence[float]) -> Estimate:
    return Estimate(mean(values), bootstrap_interval(values))
