"""How well does the encoder-decoder read grids, and what brings it? Whole and in parts."""

from collections.abc import Mapping
from typing import Any

from attnlab.presets import preset
from attnlab.problems.digits.studies import PARTS, STILL, WHOLE, parts_of
from attnlab.studies.study import EXACT_MATCH, VALID_EXACT_MATCH, Study, kept_value

DIGITS = kept_value("digits", "digits of test grids that are right", "evaluate-test", "digit_accuracy")
CELLS = tuple(
    kept_value(f"cell_{n}", f"digits that are right, {cell}", "evaluate-test", "by_cell", n, "accuracy")
    for n, cell in enumerate(("top left", "top right", "bottom left", "bottom right"))
)
"""The four cells of a grid of 2 x 2, one by one."""
SHORT: dict[str, Any] = {"task.train": 15_000, "training.batch": 64, "training.epochs": 2}
"""A training on grids in which parts are told apart; grids are drawn anew, from all digits."""
GRIDS_PARTS: dict[str, Mapping[str, Any]] = {
    WHOLE: {},
    "linear patches": PARTS["linear patches"],
    "images as they are": STILL,
    "the same grids": {"task.fresh": False},
    "one vector a cell": {"model.bridge": "cells"},
    "nothing dropped": {"model.dropout": 0.0},
}

_GRIDS = preset("grids", "default")

STUDIES = (
    Study(
        name="grids-seeds",
        question="How many grids does the encoder-decoder read wholly right?",
        variants={"default": _GRIDS},
        measures=(EXACT_MATCH, DIGITS, *CELLS),
        seeds=3,
    ),
    Study(
        name="grids-parts",
        question="What does each ingredient bring to reading grids in 2 epochs of 15,000?",
        variants=parts_of(_GRIDS, SHORT, GRIDS_PARTS),
        measures=(VALID_EXACT_MATCH,),
        seeds=3,
        baseline=WHOLE,
    ),
)
