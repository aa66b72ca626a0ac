"""Many questions: what holds on average, with intervals over inputs."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import Any

from attnlab.analysis.explain.agreement import agreement, spearman
from attnlab.analysis.explain.curves import MODES
from attnlab.analysis.explain.judging import CONTROLS, MANY, RANDOM, Judged, judge_question
from attnlab.analysis.explain.methods import METHODS, OCCLUSION
from attnlab.analysis.explain.questions import Question
from attnlab.analysis.explain.replacing import Background
from attnlab.analysis.explain.shuffling import shuffled_ranks, shuffled_weights
from attnlab.analysis.explain.verdict import RULE, judge_method, sentence, warning
from attnlab.analysis.seeds import bootstrap_interval, holm, sign_flip_p
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Progress, silent

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
) -> dict[str, Any]:
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
    found = summary(judged, ranks)
    found["verdicts"] = {name: judge_method(found, name) for name in METHODS}
    return {**found, "sentence": " ".join(filter(None, (sentence(found), warning(found)))), "rule": RULE}


def summary(judged: Sequence[Judged], shuffled: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Means over inputs with 95% intervals."""
    alike = [agreement(each.scored.scores) for each in judged]
    replacements = judged[0].replacements
    gains = {
        (replacement, mode): [each.advantages(replacement, mode) for each in judged]
        for replacement in replacements
        for mode in MODES
    }
    contrast = [spearman(each.contrast, each.scored.scores[OCCLUSION].abs()) for each in judged]
    pairs = {
        (a, b): _cell([row[a][b] for row in alike])
        for place, a in enumerate(METHODS)
        for b in METHODS[place:]
    }
    return {
        "inputs": len(judged),
        "methods": list(METHODS),
        "replacements": replacements,
        "advantage": {
            name: {
                replacement: {
                    mode: _cell([row[name] for row in gains[replacement, mode]]) for mode in MODES
                }
                for replacement in replacements
            }
            for name in (*METHODS, *CONTROLS)
        },
        "agreement": {a: {b: pairs.get((a, b)) or pairs[b, a] for b in METHODS} for a in METHODS},
        "contrast": _cell(contrast),
        "above_contrast": {
            name: _cell([row[name][OCCLUSION] - rho for row, rho in zip(alike, contrast, strict=True)])
            for name in METHODS
            if name != OCCLUSION
        },
        "random_p": min(
            holm([sign_flip_p([row[RANDOM] for row in each]) or 1.0 for each in gains.values()])
        ),
        "shuffled": {name: _cell([row[name] for row in shuffled]) for name in METHODS},
        "completeness_gap": max(each.scored.gap for each in judged),
    }


def _cell(values: Sequence[float]) -> dict[str, Any]:
    interval = bootstrap_interval(values)
    return {"value": mean(values), "interval": None if interval is None else list(interval)}
