"""How well do transformers over patches read digits, and what brings it?

``digits-vit`` trains the preset wholly, with convolutions in front of it and without. ``digits-parts``
takes one ingredient after the other away, in shorter trainings, since there are many, and on fewer images,
since what keeps a model from learning them by heart shows then too; on validation images, since choices
follow from it.
"""

from collections.abc import Mapping
from typing import Any

from attnlab.presets import preset
from attnlab.problems.digits.patch_studies import PATCH_STUDIES
from attnlab.spec import Spec, with_settings
from attnlab.studies.measures import ACCURACY, VALID_ACCURACY, kept_value
from attnlab.studies.study import Study

OVER_VIEWS = kept_value(
    "over_views", "test accuracy, averaged over 9 views of each image", "views", "exact_match"
)
ECE = kept_value(
    *("ece", "expected calibration error on test images", "evaluate-test", "calibration", "ece"),
    unit="ratio",
    better="lower",
)

WHOLE = "all parts"
FEW: dict[str, Any] = {"task.train": 10_000, "training.epochs": 4}
"""A training on digits in which parts are told apart."""
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


def parts_of(
    base: Spec, short: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Spec]:
    """``base`` in a ``short`` training, whole and without one part after the other."""
    return {name: with_settings(base, {**short, **changed}) for name, changed in parts.items()}


_VIT = preset("digits", "vit")

STUDIES = (
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
    *PATCH_STUDIES,
)
