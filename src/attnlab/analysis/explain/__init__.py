"""Attribution: which parts of an input an answer is owed to, by six methods, and which to believe."""

from attnlab.analysis.explain.agreement import agreement, spearman
from attnlab.analysis.explain.asking import wrong_words
from attnlab.analysis.explain.changing import strongest_heads
from attnlab.analysis.explain.curves import MODES
from attnlab.analysis.explain.judging import CONTRAST, CONTROLS, RANDOM, judge_question
from attnlab.analysis.explain.many import explain_many
from attnlab.analysis.explain.methods import METHODS, score
from attnlab.analysis.explain.questions import Patches, Question, Tokens
from attnlab.analysis.explain.replacing import Background, make_background
from attnlab.analysis.explain.results import Explanation, Judgement, Place, Verdict
from attnlab.analysis.explain.runs import (
    explain_asked,
    explain_run,
    explain_split,
    explainable,
    kept_name,
    open_explained,
)
from attnlab.analysis.explain.shuffling import shuffled_ranks, shuffled_weights

__all__ = [
    "CONTRAST",
    "CONTROLS",
    "METHODS",
    "MODES",
    "RANDOM",
    "Background",
    "Explanation",
    "Judgement",
    "Patches",
    "Place",
    "Question",
    "Tokens",
    "Verdict",
    "agreement",
    "explain_asked",
    "explain_many",
    "explain_run",
    "explain_split",
    "explainable",
    "judge_question",
    "kept_name",
    "make_background",
    "open_explained",
    "score",
    "shuffled_ranks",
    "shuffled_weights",
    "spearman",
    "strongest_heads",
    "wrong_words",
]
