"""A first visit to a run in the explorer; tests/test_tours.py holds what it says of the shipped runs."""

from dataclasses import replace

from attnlab.specs.task import TourStep

ADDER, LONG_ADDER = "zoo:adder", "zoo:long-adder"
SUM, CARRIED, PLAIN = "374+814", "999+1", "999+0"
HEAD, LAYER, CROSS = "encoder.0.self.0", "decoder.0", "decoder.0.cross"
LONG, LONG_HEAD, LONG_LAYER = f"{'9' * 30}+1", "decoder.0.cross.1", "decoder.1"


def _type(text: str, slot: str = "input") -> dict[str, object]:
    return {"type": slot, "input": {"text": text}}


def _choose(head: str) -> dict[str, object]:
    return {"type": "choose", "head": head}


TOUR = (
    TourStep(
        "Type a sum",
        f"Type {CARRIED} and watch the answer: a [carry] has to travel through every column.",
        "input",
        {"text": CARRIED},
        (_type(CARRIED),),
        {ADDER: "It says 0, 0, 0, 1: the ones first. That is 1000, and right."},
    ),
    TourStep(
        "Watch the answer form",
        "The [decoder] says one [token] after the other and reads again what it has said. Step through the "
        "answer, or play it.",
        "answer",
        {"step": "any"},
        ({"type": "step", "step": 0},),
    ),
    TourStep(
        "Look through a head",
        f"Type {SUM} and choose the [head] {HEAD}. Rows are [queries|query], columns are [keys|key].",
        "overview",
        {"text": SUM, "head": HEAD},
        ({"type": "step", "step": None}, _type(SUM), {"type": "view", "view": "heads"}, _choose(HEAD)),
        {ADDER: "Each digit looks at the same column of the other number: 3 at 8, 7 at 1, 4 at 4."},
    ),
    TourStep(
        "Switch it off",
        f"Switch {HEAD} off: that is [ablation]. Is the answer another one now?",
        "edits",
        {"edit": {"op": "off", "at": HEAD}},
        ({"type": "edit", "edit": {"op": "off", "at": HEAD, "to": "zero"}},),
        {ADDER: "The answer stays 1188. The other heads make up for it; that is common."},
    ),
    TourStep(
        "Switch more off",
        f"Now switch off the whole [layer] {LAYER}, and nothing else.",
        "edits",
        {"edit": {"op": "off", "at": LAYER}},
        ({"type": "clear"}, {"type": "edit", "edit": {"op": "off", "at": LAYER, "to": "zero"}}),
        {ADDER: "Without this layer alone it says 1288 instead of 1188: the hundreds are wrong."},
    ),
    TourStep(
        "Mix two sums",
        f"Type {CARRIED} again. Add a second input, {PLAIN}, and take all of {CROSS} from it: press the B "
        "beside these heads. That is [patching].",
        "other",
        {"text": CARRIED, "edit": {"op": "swap", "at": CROSS}},
        (
            {"type": "clear"},
            _type(CARRIED),
            _type(PLAIN, "other"),
            {"type": "edit", "edit": {"op": "swap", "at": CROSS}},
        ),
        {ADDER: "With this swap alone it answers the other sum, 999: here the answer hears of the input."},
    ),
    TourStep(
        "Stop early",
        f"Type {SUM} again, take all changes back and open “Guesses”: the [early guess] after each layer.",
        "views",
        {"text": SUM, "edits": "none", "view": "guesses"},
        ({"type": "clear"}, _type(SUM), {"type": "view", "view": "guesses"}),
        {ADDER: "After layer 1 it would have said 1298; the last layer puts tens and hundreds right."},
    ),
)

LONG_TOUR = (
    TourStep(
        "Type a long sum",
        "Type thirty nines and then +1: a [carry] has to travel through every column.",
        "input",
        {"text": LONG},
        (_type(LONG),),
        {LONG_ADDER: "It says 0 thirty times, then 1: right. It learned from sums of up to 10 digits."},
    ),
    TOUR[1],
    TourStep(
        "Look through a head",
        f"Type {SUM} and choose the [head] {LONG_HEAD}. Rows are [queries|query]: the answer, ones first. "
        "Columns are [keys|key]: both numbers, ones first too.",
        "overview",
        {"text": SUM, "head": LONG_HEAD},
        (
            {"type": "step", "step": None},
            _type(SUM),
            {"type": "view", "view": "heads"},
            _choose(LONG_HEAD),
        ),
        {
            LONG_ADDER: "The tens look most at the ones, the hundreds at the tens, and so on: at the "
            "column that a carry may come from."
        },
    ),
    TourStep(
        "Switch it off",
        f"Switch {LONG_HEAD} off: that is [ablation]. Is the answer another one now?",
        "edits",
        {"edit": {"op": "off", "at": LONG_HEAD}},
        ({"type": "edit", "edit": {"op": "off", "at": LONG_HEAD, "to": "zero"}},),
        {LONG_ADDER: "It says 8, 8, 1, 1 as before, and then another 1 where the answer should end."},
    ),
    TourStep(
        "Switch more off",
        f"Now switch off the whole [layer] {LONG_LAYER}, and nothing else.",
        "edits",
        {"edit": {"op": "off", "at": LONG_LAYER}},
        ({"type": "clear"}, {"type": "edit", "edit": {"op": "off", "at": LONG_LAYER, "to": "zero"}}),
        {LONG_ADDER: "Without this layer alone it says 1169 instead of 1188: ones and tens are wrong."},
    ),
    replace(TOUR[5], facts={LONG_ADDER: TOUR[5].facts[ADDER]}),
    replace(
        TOUR[6],
        facts={
            LONG_ADDER: "After layer 1 it would have said 1129; the last layer puts ones and tens right."
        },
    ),
)
