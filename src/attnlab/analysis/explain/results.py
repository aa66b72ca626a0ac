"""What ``explain`` finds: of one input, and of many."""

from dataclasses import dataclass
from typing import Any, Literal

from attnlab.results import Estimate, Result
from attnlab.specs import Split

Mode = Literal["deletion", "insertion"]
Replacement = Literal["zero", "mean", "resample", "repeat"]
Matrix = dict[str, dict[str, Estimate]]
"""rho of every method with every method."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One thing that the model said: ``answer`` at ``place``, whose right sign is ``truth`` if it is known.

    ``scores`` have a number for each part, by method; ``heads`` the evidence lost without each. A curve
    has the probability at each of ``shares``, by replacement, mode and method; beside methods there is
    chance, with where 95% of its orders lie. ``advantage`` is by method, replacement and mode.
    """

    place: str
    answer: str
    truth: str | None
    probability: float
    evidence: float
    scores: dict[str, list[float]]
    heads: dict[str, float]
    completeness_gap: float
    agreement: Matrix
    shuffled: dict[str, Estimate]
    replacements: list[Replacement]
    shares: list[float]
    curves: dict[str, dict[str, dict[str, list[float]]]]
    advantage: dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True, kw_only=True)
class Explanation(Result):
    """One input: ``parts`` are its tokens or patches; ``image`` has rows of pixels from 0 to 1."""

    run: str
    input: str
    output: str
    truth: str | None
    correct: bool | None
    parts: list[str]
    image: list[list[Any]] | None
    methods: list[str]
    replacements: list[Replacement]
    places: list[Place]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a method explains, and what that rests on; None where it is not known or not asked."""

    answer: str
    beats_chance: list[Replacement] | None
    agreeing: bool | None
    learned: bool | None


@dataclass(frozen=True, kw_only=True)
class Judgement(Result):
    """Many inputs: means with intervals over inputs, and the verdict on each method.

    ``place`` is None where each input was asked about any of its places.
    """

    run: str = ""
    split: Split | None = "test"
    place: str | None = None
    inputs: int
    methods: list[str]
    replacements: list[Replacement]
    advantage: dict[str, dict[str, dict[str, Estimate]]]
    agreement: Matrix
    contrast: Estimate
    above_contrast: dict[str, Estimate]
    random_p: float
    shuffled: dict[str, Estimate]
    completeness_gap: float
    verdicts: dict[str, Verdict]
    sentence: str
    rule: str
