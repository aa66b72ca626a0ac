"""The explorer's part of the course: what to do in each lesson, as states that the page's address holds.

``docs/course_handouts.py`` makes links of them; ``benchmarks/course.py`` writes down what the model says in
each of them, which the lessons' pages show.
"""

from dataclasses import dataclass
from typing import final

from attnlab.explorer.page_state import PageState


@final
@dataclass(frozen=True)
class Step:
    """One thing to do: a sentence, the state to begin with, and what to look at."""

    do: str
    state: dict[str, str]
    look: str

    @property
    def fragment(self) -> str:
        """What follows the address of a hand-out."""
        return PageState(self.state).write()

    @property
    def run(self) -> str:
        return self.state["run"]


def adder(text: str, **more: str) -> dict[str, str]:
    return {
        "run": "zoo:adder",
        "text": text,
        **{name.replace("_", "-"): value for name, value in more.items()},
    }


def sorter(text: str, **more: str) -> dict[str, str]:
    return {"run": "zoo:sorter", "text": text, **more}


ALL_CROSS, HEAD, PAIRING = "decoder.0.cross", "decoder.0.cross.0", "encoder.0.self.0"
SORTED, LATE = "3 8 15 23 42 67 80 91", "1 2 3 4 5 6 8 7"
COMPARING = "encoder.1.self.0"

STEPS: dict[str, tuple[Step, ...]] = {
    "lesson1": (
        Step(
            "Read one head",
            adder("498+198", head=HEAD),
            "Rows are queries: the tokens that go into the decoder, the start ⊢ first. Columns "
            "are keys: the digits "
            "of the input, ones first. Open *Numbers*: each row sums to 1.",
        ),
        Step(
            "Make all scores equal",
            adder("498+198", edits=f"scale~{ALL_CROSS}~0", head=HEAD),
            "Scores times 0: the softmax gives every key the same weight, and the decoder reads "
            "the mean of all digits.",
        ),
        Step(
            "Double all scores",
            adder("498+198", edits=f"scale~{ALL_CROSS}~2", head=HEAD),
            "The softmax gets sharper; this is what a missing scale does.",
        ),
    ),
    "lesson2": (
        Step(
            "Find the pairs",
            adder("374+814", head=PAIRING),
            "Each digit of the input looks at the digit of the other number in its own column.",
        ),
        Step(
            "Switch this head off",
            adder("374+814", edits=f"off~{PAIRING}~zero", to="zero", head=PAIRING),
            "Is the answer another one? Where a head looks does not say that the model needs it here.",
        ),
        Step(
            "Lose a carry",
            adder("498+198", edits=f"off~{HEAD}~mean", to="mean", head=HEAD),
            "One head less, its mean in its place. Which digit is wrong, and by how much?",
        ),
    ),
    "lesson3": (
        Step(
            "What attention shows",
            adder("498+198", head=HEAD, step="2"),
            "The row that writes the hundreds. Write down the three digits with the largest weights.",
        ),
        Step(
            "Take the carry away",
            adder("498+198", other_text="491+198", head=HEAD),
            "Only the ones differ (8 and 1), and with them the carry into the tens. Which digits of the "
            "answer change?",
        ),
        Step(
            "Swap the heads",
            adder("999+1", other_text="999+0", edits=f"swap~{ALL_CROSS}", head=HEAD),
            "The first cross attention takes its values from the other sum: is the answer that of "
            "A or of B?",
        ),
    ),
    "lesson4": (
        Step(
            "A sorted list",
            sorter(SORTED, head=COMPARING),
            "Every number looks at the next one. Which row is different, and why?",
        ),
        Step(
            "One exchanged pair at the end",
            sorter(LATE, head=COMPARING),
            "One pair out of order is enough.",
        ),
        Step(
            "Without the head that compares",
            sorter(LATE, edits=f"off~{COMPARING}~zero", to="zero", head=COMPARING),
            "Which answer does the model give now, and to which lists is it right?",
        ),
    ),
}
"""The steps of each lesson; lessons 5 and 6 hand out runs that the class trains."""
