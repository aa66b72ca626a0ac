"""How well do transformers over patches read digits, what brings it, and why did one head stay at 38%?

``digits-vit`` trains the preset wholly, with convolutions in front of it and without. ``digits-parts``
takes one ingredient after the other away, in shorter trainings, since there are many, and on fewer images,
since what keeps a model from learning them by heart shows then too; on validation images, since choices
follow from it.

The original investigation of the one-head classifier looked at one thing at a time, with one seed, and
stopped raising the learning rate at 0.01. Here every way to start the positions meets every learning rate,
on five seeds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from attnlab.presets import preset
from attnlab.specs import (
    GridStart,
    PatchAttentionModel,
    SinusoidalStart,
    Spec,
    StartSpec,
    UniformStart,
    XavierStart,
    ZeroStart,
    with_settings,
)
from attnlab.studies.study import ACCURACY, VALID_ACCURACY, Measure, Study, kept_value, last_probe

ENTROPY = Measure(
    *("entropy", "entropy of attention after training (1 = uniform)", "ratio", "lower"),
    read=lambda run: last_probe(run, "entropy"),
)
MOVED = Measure(
    *("moved", "answer moved by shuffling the patches (total variation)", "ratio", "higher"),
    read=lambda run: last_probe(run, "moved"),
)

STARTS: dict[str, StartSpec] = {
    "uniform 0.1": UniformStart(limit=0.1),
    "uniform 0.5": UniformStart(limit=0.5),
    "sinusoidal": SinusoidalStart(),
    "zero": ZeroStart(),
    "xavier": XavierStart(),
    "sinusoidal-2d": GridStart(),
}
ORIGINAL_STARTS = tuple(STARTS)
STARTS |= {f"uniform {limit:g}": UniformStart(limit=limit) for limit in (1.0, 2.0)}
RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
LOW_RATES = (0.001, 0.003, 0.005)
SMALL, LARGE = (16, 32), (64, 128)


def _variants(
    size: tuple[int, int],
    starts: Iterable[str],
    rates: Iterable[float],
    *,
    epochs: int = 5,
    gain: float = 1.0,
) -> dict[str, Spec]:
    """The original's model and training, by the hand-written engine, by name: each start with each rate."""
    base = preset("digits", "patch-attention")
    more = (", 8 epochs" if epochs == 8 else "") + (f", gain {gain:g}" if gain != 1 else "")
    return {
        f"{size[0]}/{size[1]}, {start}, lr {lr:g}{more}": replace(
            base,
            model=PatchAttentionModel(width=size[0], hidden=size[1], positions=STARTS[start], gain=gain),
            training=replace(base.training, lr=lr, epochs=epochs, watch="valid"),
            engine="explicit",
        )
        for start in starts
        for lr in rates
    }


def _investigation() -> dict[str, Spec]:
    return {
        **_variants(SMALL, ("uniform 0.1", "sinusoidal"), RATES),
        **_variants(LARGE, ("uniform 0.1",), LOW_RATES),
        **_variants(LARGE, ORIGINAL_STARTS, RATES),
        **_variants(LARGE, ("sinusoidal",), (0.01,), epochs=8),
    }


def _scales() -> dict[str, Spec]:
    """Scale of the positions and gain of queries and keys, each with three learning rates, at width 16."""
    rates = (0.01, 0.1, 0.3)
    scales = _variants(SMALL, ("uniform 0.1", "uniform 0.5", "uniform 1", "uniform 2"), rates)
    gains = (_variants(SMALL, ("uniform 0.1",), rates, gain=gain) for gain in (2.0, 4.0))
    return scales | next(gains) | next(gains)


def _parts() -> dict[str, Spec]:
    """What the original left for later, on top of the best plain model, and its two other networks."""
    plain = replace(preset("digits", "default"), engine="torch")
    heads = {"model.heads": 4}
    flags = {name: {f"model.{name}": True} for name in ("projection", "residual", "norm")}
    together = heads | flags["projection"] | flags["residual"] | flags["norm"]
    changes: dict[str, dict[str, Any]] = {"plain": {}, "4 heads": heads, **flags, "all four": together}
    others = {
        f"{name}, lr {lr:g}": with_settings(
            preset("digits", name), {"training.lr": lr, "training.watch": "valid"}
        )
        for name in ("mlp", "cnn")
        for lr in (0.01, 0.1)
    }
    return {name: with_settings(plain, change) for name, change in changes.items()} | others


PATCH_STUDIES = (
    Study(
        name="patch-attention",
        question="Why did one attention head over 49 patches stay at 38%?",
        variants=_investigation(),
        measures=(ACCURACY, ENTROPY, MOVED),
    ),
    Study(
        name="patch-attention-scales",
        question="Do scale of positions, gain of queries and keys and learning rate act together?",
        variants=_scales(),
        measures=(ACCURACY, ENTROPY, MOVED),
    ),
    Study(
        name="patch-attention-best",
        question="How far does the unchanged architecture get with plain SGD, batch 32 and 5 epochs?",
        variants={"64/128": preset("digits", "default"), "16/32": preset("digits", "small")},
        measures=(ACCURACY, ENTROPY, MOVED),
    ),
    Study(
        name="patch-attention-parts",
        question="What do heads, output projection, residual sums and layer norm bring, each and together?",
        variants=_parts(),
        measures=(ACCURACY,),
        baseline="plain",
    ),
)


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
