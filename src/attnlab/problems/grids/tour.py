"""A first visit to a run in the explorer; tests/test_tours.py holds what it says of the shipped run."""

from attnlab.specs.task import TourStep

Strokes = list[list[list[float]]]

GRID = "zoo:grid"
HEAD, SITE = "decoder.0.cross.0", "decoder.0.cross"
ONE: Strokes = [[[0.5, 0.15], [0.5, 0.85]]]
SEVEN: Strokes = [[[0.28, 0.18], [0.72, 0.18], [0.45, 0.85]]]
FOUR: Strokes = [[[0.35, 0.15], [0.28, 0.52], [0.7, 0.52]], [[0.6, 0.2], [0.58, 0.85]]]
"""Digits of straight lines, as somebody would draw them."""


def _draw(*cells: Strokes, slot: str = "input") -> dict[str, object]:
    return {"type": "draw", "slot": slot, "cells": list(cells)}


TOUR = (
    TourStep(
        "Draw four digits",
        "Draw a digit in each cell with mouse, finger or pen: 1 and 7 above, 4 and 1 below.",
        "input",
        {"input": "pixels"},
        (_draw(ONE, SEVEN, FOUR, ONE),),
        {GRID: "“Show me” draws them too, and the model reads 1741."},
    ),
    TourStep(
        "Watch the answer form",
        "The [decoder] says one digit after the other. Step through the answer, or play it.",
        "answer",
        {"step": "any"},
        ({"type": "step", "step": 0},),
    ),
    TourStep(
        "Look through a head",
        f"Choose the [head] {HEAD}: its [queries|query] are the digits that are said, its [keys|key] the "
        "[patches|patch] of the picture.",
        "overview",
        {"head": HEAD},
        (
            {"type": "step", "step": None},
            {"type": "view", "view": "heads"},
            {"type": "choose", "head": HEAD},
        ),
        {GRID: "For each digit it looks into the cell where this digit stands, and nowhere else."},
    ),
    TourStep(
        "Switch the view of the picture off",
        f"Switch off all of {SITE}: that is [ablation]. Only there the decoder sees the picture.",
        "edits",
        {"edit": {"op": "off", "at": SITE}},
        ({"type": "edit", "edit": {"op": "off", "at": SITE, "to": "zero"}},),
        {GRID: "With this alone switched off it says 8189, whatever is drawn."},
    ),
    TourStep(
        "Look everywhere alike",
        f"Take that back, choose {HEAD} and pull its [scores|score] down to 0: all patches become alike.",
        "head",
        {"edit": {"op": "scale", "at": HEAD, "by": 0}},
        (
            {"type": "clear"},
            {"type": "choose", "head": HEAD},
            {"type": "edit", "edit": {"op": "scale", "at": HEAD, "by": 0}},
        ),
        {GRID: "What “Show me” draws is still read as 1741: five other heads know where to look."},
    ),
    TourStep(
        "Mix two pictures",
        f"Add a second input, draw there, and take all of {SITE} from it: press the B beside these heads. "
        "That is [patching].",
        "other",
        {"other": "given", "edit": {"op": "swap", "at": SITE}},
        (
            {"type": "clear"},
            _draw(FOUR, FOUR, ONE, SEVEN, slot="other"),
            {"type": "edit", "edit": {"op": "swap", "at": SITE}},
        ),
        {GRID: "With this swap alone it reads the second picture, digit by digit."},
    ),
    TourStep(
        "Find what it gets wrong",
        "Open “Examples” and choose the group “wrong” to step through grids that the model misreads.",
        "input",
        {"input": "example"},
        ({"type": "clear"}, {"type": "find", "split": "test", "stratum": "wrong"}),
        {GRID: "“Show me” takes the first of them. Which cell is it, and does its head look there?"},
    ),
)
