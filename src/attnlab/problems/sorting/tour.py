"""A first visit to a run in the explorer; tests/test_tours.py holds what it says of the shipped run."""

from attnlab.specs.task import TourStep

SORTER = "zoo:sorter"
SORTED, UNSORTED, LATE = "3 8 15 23 42 67 80 91", "3 8 15 42 23 67 80 91", "1 2 3 4 5 6 8 7"
HEAD = "encoder.1.self.0"


def _type(text: str, slot: str = "input") -> dict[str, object]:
    return {"type": slot, "input": {"text": text}}


TOUR = (
    TourStep(
        "Type a list",
        f"Type {SORTED}. Is the list sorted?",
        "input",
        {"text": SORTED},
        (_type(SORTED),),
        {SORTER: "It says “sorted”, and is as good as certain."},
    ),
    TourStep(
        "Exchange two neighbours",
        f"Now exchange 23 and 42: {UNSORTED}. One pair is enough to change the answer.",
        "input",
        {"text": UNSORTED},
        (_type(UNSORTED),),
        {SORTER: "It says “unsorted”."},
    ),
    TourStep(
        "Look through a head",
        f"Choose the [head] {HEAD}. Each row is a [query]: the number that looks; each column a [key].",
        "overview",
        {"head": HEAD},
        ({"type": "view", "view": "heads"}, {"type": "choose", "head": HEAD}),
        {SORTER: "Every number but the last looks at its right neighbour with nearly all its weight."},
    ),
    TourStep(
        "Switch it off",
        f"Type {LATE}, where only the last two are wrong, and switch {HEAD} off: that is [ablation].",
        "edits",
        {"text": LATE, "edit": {"op": "off", "at": HEAD}},
        (_type(LATE), {"type": "edit", "edit": {"op": "off", "at": HEAD, "to": "zero"}}),
        {SORTER: "Without this head alone it takes this list for sorted: this head is needed."},
    ),
    TourStep(
        "Take it back",
        "Undo brings the head back. All changes are listed, and they are in the address of the page.",
        "edits",
        {"edits": "none"},
        ({"type": "clear"},),
    ),
    TourStep(
        "Mix two lists",
        f"Type {UNSORTED}. Add a second input, {SORTED}, and drag its {HEAD}, in the row B, onto the one "
        "above. That is [patching].",
        "other",
        {"text": UNSORTED, "edit": {"op": "swap", "at": HEAD}},
        (
            {"type": "clear"},
            _type(UNSORTED),
            _type(SORTED, "other"),
            {"type": "edit", "edit": {"op": "swap", "at": HEAD}},
        ),
        {SORTER: "With what this one head saw in the sorted list, the answer becomes “sorted”."},
    ),
    TourStep(
        "Stop early",
        f"Type {LATE} again, take all changes back and open “Guesses”: the [early guess] after each layer.",
        "views",
        {"text": LATE, "edits": "none", "view": "guesses"},
        ({"type": "clear"}, _type(LATE), {"type": "view", "view": "guesses"}),
        {SORTER: "After layer 1 it would have said “sorted”; the second layer finds the pair."},
    ),
)
