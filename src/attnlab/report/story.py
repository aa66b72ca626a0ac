"""What is told of one run: the same for every task, from its own numbers, and what its task adds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.analysis.evaluate import Evaluation
from attnlab.examples import Examples
from attnlab.report.page import Section

Part = Callable[[], Section | None]


def no_example(example: Examples) -> dict[str, Part]:
    """Of a page that shows no example of the task's choice."""
    return {}


@dataclass(frozen=True)
class Story:
    """``what`` it is, the sentence that proves it, notes, cards, and the sections, made when asked for.

    ``one`` gives the sections on a single example, so that a task may choose which.
    """

    what: str
    proof: str
    good: bool
    notes: Sequence[str]
    cards: Sequence[tuple[str, str]]
    parts: Mapping[str, Part]
    evaluation: Evaluation | None = None
    one: Callable[[Examples], Mapping[str, Part]] = no_example

    def with_parts(self, parts: Mapping[str, Part]) -> "Story":
        """With these ``parts`` in the place of those of the same name."""
        return replace(self, parts={**self.parts, **parts})
