"""A first visit to a run in the explorer; tests/test_tours.py holds what it says of the shipped run."""

from attnlab.specs.task import TourStep

DIGIT = "zoo:digit"
SEVEN = [[[0.28, 0.18], [0.72, 0.18], [0.45, 0.85]]]
ONE = [[[0.5, 0.15], [0.5, 0.85]]]
HEAD, SITE = "encoder.0.self.0", "encoder.0.self"


def _draw(strokes: list[list[list[float]]], slot: str = "input") -> dict[str, object]:
    return {"type": "draw", "slot": slot, "cells": [strokes]}


def _edit(op: str, at: str, **more: str) -> dict[str, object]:
    return {"type": "edit", "edit": {"op": op, "at": at, **more}}


TOUR = (
    TourStep(
        "Draw a digit",
        "Draw a 7 with mouse, finger or pen. Next to it is the picture that the [model] gets: scaled and "
        "centred, as the digits were that it has learned from.",
        "input",
        {"input": "pixels"},
        (_draw(SEVEN),),
        {DIGIT: "“Show me” draws a 7 too, and the model says 7."},
    ),
    TourStep(
        "Look through a head",
        f"The picture is cut into [patches|patch], and each looks at the others. Choose the [head] {HEAD}, "
        "and point at a patch to see where it looks.",
        "overview",
        {"head": HEAD},
        ({"type": "view", "view": "heads"}, {"type": "choose", "head": HEAD}),
    ),
    TourStep(
        "Watch the guess form",
        "Open “Guesses”: the [early guess] after each [layer].",
        "views",
        {"view": "guesses"},
        ({"type": "view", "view": "guesses"},),
        {DIGIT: "Of the 7 that “Show me” draws it is surer after every layer."},
    ),
    TourStep(
        "Switch a head off",
        f"Go back to “Heads” and switch {HEAD} off: that is [ablation].",
        "edits",
        {"edit": {"op": "off", "at": HEAD}},
        (
            {"type": "view", "view": "heads"},
            _edit("off", HEAD, to="zero"),
        ),
        {DIGIT: "The 7 that “Show me” draws stays a 7, whichever single head is off."},
    ),
    TourStep(
        "Take it back",
        "Undo brings the head back. All changes are listed, and they are in the address of the page.",
        "edits",
        {"edits": "none"},
        ({"type": "clear"},),
    ),
    TourStep(
        "Mix two digits",
        f"Draw a 7. Add a second input, a 1, and take all of {SITE} from it: press the B beside these "
        "heads. That is [patching].",
        "other",
        {"edit": {"op": "swap", "at": SITE}},
        (
            {"type": "clear"},
            _draw(SEVEN),
            _draw(ONE, "other"),
            _edit("swap", SITE),
        ),
        {DIGIT: "The 7 that “Show me” draws is then read as a 1: what the first attention saw decides."},
    ),
    TourStep(
        "Find what it gets wrong",
        "Open “Examples” and choose the group “wrong” to step through digits that the model misreads.",
        "input",
        {"input": "example"},
        ({"type": "clear"}, {"type": "find", "split": "test", "stratum": "wrong"}),
        {DIGIT: "“Show me” takes the first of them: a 6 that the model reads as a 0."},
    ),
)
