"""What is told of one run: the same for every task, from its own numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attnlab.report.page import Section


@dataclass(frozen=True)
class Story:
    """``what`` it is, the sentence that proves it, notes, cards, and the sections, made when asked for."""

    what: str
    proof: str
    good: bool
    notes: Sequence[str]
    cards: Sequence[tuple[str, str]]
    parts: Mapping[str, Callable[[], Section | None]]
