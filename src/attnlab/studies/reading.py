"""How well do transformers over patches read digits, and what brings it?

``digits-vit`` trains the preset wholly, with convolutions in front of it and without. ``digits-parts``
takes one ingredient after the other away, in shorter trainings, since there are many, and on fewer images,
since what keeps a model from learning them by heart shows then too; on validation images, since choices
follow from it. ``grids-seeds`` and ``grids-parts`` do the same with the encoder-decoder that reads grids.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from attnlab.presets import preset
from attnlab.spec import Spec, with_settings
from attnlab.studies.measures import (
    ACCURACY,
    DIGITS,
    ECE,
    EXACT_MATCH,
    OVER_VIEWS,
    VALID_ACCURACY,
    VALID_EXACT_MATCH,
    kept_share,
)
from attnlab.studies.study import Study

CELLS = tuple(
    kept_share(
        f"cell_{place}",
        f"digits that are right, {row} {column}",
        "evaluate-test",
        "by_cell",
        place,
        "accuracy",
    )
    for place, (row, column) in enumerate(product(("top", "bottom"), ("left", "right")))
)
"""The four cells of a grid of 2 x 2, one by one."""
WHOLE = "all parts"
FEW: dict[str, Any] = {"task.train": 10_000, "training.epochs": 4}
"""A training on digits in which parts are told apart."""
SHORT: dict[str, Any] = {"task.train": 15_000, "training.batch": 64, "training.epochs": 2}
"""A training on grids in which parts are told apart; grids are drawn anew, from all digits."""
STILL: dict[str, Any] = {f"task.augment.{name}": 0.0 for name in ("shift", "rotate", "scale", "elastic")}
PARTS: dict[str, Mapping[str, Any]] = {
    WHOLE: {},
    "linear patches": {"model.stem": "linear"},
    "images as they are": STILL,
    "AdamW": {"training.optimiser": "adamw:beta2=0.99", "training.lr": 1e-3},
    "constant rate": {"training.schedule": "constant", "training.lr": 1e-3},
    "last weights": {"training.ema": 0.0},
    "hard labels": {"training.smoothing": 0.0},
    "float32": {"training.precision": "float32"},
}
"""What stands in the place of one ingredient. Without Muon or a schedule a lower rate is the better one."""
GRIDS_PARTS: dict[str, Mapping[str, Any]] = {
    WHOLE: {},
    "linear patches": PARTS["linear patches"],
    "images as they are": STILL,
    "the same grids": {"task.fresh": False},
    "one vector a cell": {"model.bridge": "cells"},
    "nothing dropped": {"model.dropout": 0.0},
}


def parts_of(
    base: Spec, short: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Spec]:
    """``base`` in a ``short`` training, whole and without one part after the other."""
    return {name: with_settings(base, {**short, **changed}) for name, changed in parts.items()}


_VIT, _GRIDS = preset("digits", "vit"), preset("grids", "default")

READING_STUDIES = (
    Study(
        name="digits-vit",
        question="How many digits does a small vision transformer read, and how many without convolutions?",
        variants={"vit": _VIT, "linear patches": with_settings(_VIT, PARTS["linear patches"])},
        measures=(ACCURACY, OVER_VIEWS, ECE),
        seeds=3,
    ),
    Study(
        name="digits-parts",
        question="What does each ingredient bring in 4 epochs of 10,000 digits?",
        variants=parts_of(_VIT, FEW, PARTS),
        measures=(VALID_ACCURACY,),
        seeds=3,
        baseline=WHOLE,
    ),
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
