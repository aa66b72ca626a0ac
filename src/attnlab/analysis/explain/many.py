"""Many questions: what holds on average, with intervals over inputs."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from attnlab.analysis.explain.agreement import agreement, spearman
from attnlab.analysis.explain.curves import MODES
from attnlab.analysis.explain.judging import CONTROLS, MANY, RANDOM, Judged, judge_question
from attnlab.analysis.explain.methods import METHODS, OCCLUSION
from attnlab.analysis.explain.questions import Question
from attnlab.analysis.explain.replacing import Background
from attnlab.analysis.explain.results import Judgement
from attnlab.analysis.explain.shuffling import shuffled_ranks, shuffled_weights
from attnlab.analysis.explain.verdict import RULE, with_verdicts
from attnlab.analysis.seeds import bootstrap_interval, holm, sign_flip_p
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Estimate

Backgrounds = Callable[[Model], Background]
"""Makes the background of a model: that of the run, or one with shuffled weights."""


def explain_many(
    questions: Iterable[Question],
    model: Model,
    backgrounds: Backgrounds,
    *,
    count: int,
    seed: int = 0,
    progress: Progress = silent,
) -> Judgement:
    """Judge every method on ``count`` questions to ``model``.

    Each question is put to shuffled weights of its own, so that inputs stay independent of each other.
    """
    if count < 2:
        raise InputError(f"--many is {count}; it must be at least 2, so that there are intervals")
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
    replacements = judged[0].replacements
    gains = {each: [one.advantages(*each) for one in judged] for each in judged[0].curves}
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
                    mode: _estimate([row[name] for row in gains[replacement, mode]]) for mode in MODES
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
        random_p=min(holm([sign_flip_p([row[RANDOM] for row in each]) or 1.0 for each in gains.values()])),
        shuffled={name: _estimate([row[name] for row in shuffled]) for name in METHODS},
        completeness_gap=max(each.scored.gap for each in judged),
        verdicts={},
        sentence="",
        rule=RULE,
    )


def _estimate(values: Sequence[float]) -> Estimate:
    return Estimate(mean(values), bootstrap_interval(values))
