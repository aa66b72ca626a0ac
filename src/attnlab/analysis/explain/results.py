"""What ``explain`` finds: of one input, and of many."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from attnlab.results import Estimate, Result, Row, estimate_columns
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

    shown_by: ClassVar[str] = "attnlab.tables.explain"

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

    def records(self) -> list[Row]:
        """A row for each place of the answer, method and part, counted from 1."""
        return [
            {
                "place": place.place,
                "answer": place.answer,
                "method": method,
                "at": at,
                "part": part,
                "score": score,
            }
            for place in self.places
            for method, scores in place.scores.items()
            for at, (part, score) in enumerate(zip(self.parts, scores, strict=True), 1)
        ]


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

    shown_by: ClassVar[str] = "attnlab.tables.explain"

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

    def records(self) -> list[Row]:
        """A row for each method, also those to compare with, replacement and kind of curve."""
        return [
            {
                "method": method,
                "replacement": replacement,
                "mode": mode,
                **estimate_columns("advantage", cell),
            }
            for method, replacements in self.advantage.items()
            for replacement, modes in replacements.items()
            for mode, cell in modes.items()
        ]
