"""Small trainings of the four problems and two examples: seconds each, on one thread, and healthy.

``specs`` gives the base of a task by its name; ``VARIANTS`` are other healthy trainings of it.
"""

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attnlab as al
from attnlab.specs import Spec, with_settings

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL: dict[str, Any] = {"model.width": 32, "model.heads": 4, "model.hidden": 64, "training.threads": 1}
PLAIN: dict[str, Any] = {
    "training.ema": 0.0,
    "training.smoothing": 0.0,
    "training.precision": "float32",
    **{f"task.augment.{name}": 0.0 for name in ("shift", "rotate", "scale", "elastic")},
}
RECIPES: dict[str, tuple[str | Path, str, dict[str, Any]]] = {
    "addition": (
        "addition",
        "default",
        {
            **{"task.digits": 2, "task.order": "least", "task.sampling": "uniform"},
            **{"task.train": 3000, "task.valid": 300, "task.test": 300},
            **{"model.encoder_layers": 1, "model.decoder_layers": 1},
            **{"training.epochs": 12, "training.batch": 64},
        },
    ),
    "reverse": (
        EXAMPLES / "reverse.py",
        "default",
        {
            **{"task.train": 3000, "task.valid": 300, "task.test": 300},
            **{"model.encoder_layers": 1, "model.decoder_layers": 1},
            **{"training.epochs": 5, "training.batch": 64, "training.perfect": 0},
        },
    ),
    "brackets": (
        EXAMPLES / "brackets.py",
        "default",
        {
            **{"task.pairs": 10, "task.train": 3000, "task.valid": 300, "task.test": 300},
            **{"model.layers": 2, "training.epochs": 7, "training.batch": 32, "training.perfect": 0},
        },
    ),
    "sorting": (
        "sorting",
        "default",
        {
            **{"task.low": 4, "task.high": 8, "task.negatives": "reference", "task.sampling": "uniform"},
            **{"task.train": 3200, "task.valid": 300, "task.test": 300, "task.fresh": False},
            **{"model.layers": 2, "training.epochs": 10, "training.batch": 64},
        },
    ),
    "digits": (
        "digits",
        "vit",
        {
            **{"task.train": 4000, "task.valid": 300, "task.test": 300},
            **{"model.patch": 7, "model.stem": "linear", "model.layers": 2},
            **{"training.epochs": 8, "training.batch": 64},
            **PLAIN,
        },
    ),
    "grids": (
        "grids",
        "default",
        {
            **{"task.train": 4000, "task.valid": 300, "task.test": 300, "task.fresh": False},
            **{"model.patch": 14, "model.stem": "linear", "model.dropout": 0.0},
            **{"model.encoder_layers": 2, "model.decoder_layers": 1},
            **{"training.epochs": 7, "training.batch": 64},
            **PLAIN,
        },
    ),
}
LETTERS, EACH = "ABCDEFGH", 250
"""The letters of the task of letters, and the pictures of each."""

SECOND_RECIPES: dict[str, tuple[str | Path, str, dict[str, Any]]] = {
    "maximum": (
        f"{Path(__file__).parent / 'doctor_second_tasks.py'}:maximum",
        "default",
        {
            **{"task.train": 3000, "task.valid": 300, "task.test": 300},
            **{"model.encoder_layers": 1, "model.decoder_layers": 1},
            **{"training.epochs": 8, "training.batch": 64, "training.perfect": 0},
        },
    ),
    "letters": (
        EXAMPLES / "letters.py",
        "default",
        {
            **{"task.train": 1500, "task.valid": 250, "task.test": 250},
            **{"model.patch": 8, "model.layers": 2, "training.epochs": 16, "training.batch": 64},
        },
    ),
    "ends": (
        f"{Path(__file__).parent / 'doctor_second_tasks.py'}:ends",
        "default",
        {
            **{"task.train": 3000, "task.valid": 300, "task.test": 300, "model.layers": 2},
            **{"training.epochs": 8, "training.batch": 64, "training.perfect": 0},
        },
    ),
}
"""Of the second set apart alone; ``ends``, which is learned suddenly, for healthy trainings alone."""

RATES = {
    "addition": 5e-3,
    "reverse": 5e-3,
    "brackets": 4e-3,
    "sorting": 5e-3,
    "digits": 4e-3,
    "grids": 4e-3,
    "maximum": 5e-3,
    "letters": 4e-3,
    "ends": 5e-3,
}
SGD_RATES = {
    **{"addition": 0.2, "reverse": 0.2, "brackets": 0.05, "sorting": 0.1, "digits": 0.1, "grids": 0.1},
    **{"maximum": 0.2, "letters": 0.1},
}
APART = "sorting"
"""The problem that is set apart whole."""

SEQUENCES = ("addition", "reverse", "grids")
CLASSES = ("brackets", "sorting", "digits")
TOKENS = ("addition", "reverse", "brackets", "sorting")
IMAGES = ("digits", "grids")
TASKS = tuple(RECIPES)
SECOND_TASKS = ("reverse", "maximum", "brackets", "sorting", "letters")
"""Tasks that the plants of the second set apart are planted in, but for a few that need more images."""
SECOND_SEEDS = dict.fromkeys((*SECOND_TASKS, "digits"), 1)
"""Seeds of each plant of the second set apart."""
SEEDS = {"reverse": 5, "addition": 3, "brackets": 2, "sorting": 2, "digits": 1, "grids": 1}
"""Seeds of each plant by its task, the quickest first; images take longest."""


@cache
def letters() -> Path:
    """The folder of pictures of letters, drawn if it is not there."""
    folder = Path("runs/benchmark-doctor-letters").absolute()
    if not folder.exists():
        made = importlib.util.spec_from_file_location("letters", EXAMPLES / "letters.py")
        assert made is not None
        assert made.loader is not None
        module = importlib.util.module_from_spec(made)
        made.loader.exec_module(module)
        module.draw_letters(folder, each=EACH, letters=LETTERS)
    return folder


@cache
def base(task: str, optimiser: str = "adamw") -> Spec:
    """The healthy training of a task, seed 0."""
    start, preset, settings = (RECIPES | SECOND_RECIPES)[task]
    if task == "letters":
        settings = settings | {"task.directory": str(letters())}
    sgd = optimiser == "sgd"
    chosen = {
        "training.optimiser": "sgd:momentum=0.9" if sgd else "adamw",
        "training.lr": (SGD_RATES if sgd else RATES)[task],
        "training.schedule": "onecycle",
        "training.clip": 1.0,
    }
    return with_settings(al.spec(start, preset=preset), {**SMALL, **settings, **chosen})


Change = Callable[[Spec], dict[str, Any]]


def _rate(factor: float) -> Change:
    return lambda spec: {"training.lr": spec.training.lr * factor}


def _fixed(**settings: Any) -> Change:
    return lambda _: {name.replace("__", "."): value for name, value in settings.items()}


VARIANTS: dict[str, Change] = {
    "as it is": _fixed(),
    "rate x 0.7": _rate(0.7),
    "rate x 1.5": _rate(1.5),
    "slow start": lambda spec: {
        "training.lr": spec.training.lr * 0.4,
        "training.epochs": 2 * spec.training.epochs,
        "training.schedule": "cosine:warmup=0.3",
    },
    "cosine": _fixed(training__schedule="cosine"),
    "constant": _fixed(training__schedule="constant:warmup=0.05"),
    "one head": _fixed(model__heads=1),
    "eight heads": _fixed(model__heads=8),
    "width 48": _fixed(model__width=48, model__hidden=96),
    "gelu": _fixed(model__activation="gelu"),
    "dropout": _fixed(model__dropout=0.05),
    "smoothing": _fixed(training__smoothing=0.1),
    "decay": _fixed(training__optimiser="adamw:weight_decay=0.1"),
    "average": _fixed(training__ema=0.98),
    "batch 32": lambda spec: {"training.batch": 32, "training.lr": spec.training.lr * 0.7},
    "muon": lambda spec: {"training.optimiser": "muon", "training.lr": spec.training.lr * 0.7},
}

SECOND_VARIANTS: dict[str, Change] = {
    "rate x 0.5": _rate(0.5),
    "rate x 1.8": _rate(1.8),
    "slower start": lambda spec: {
        "training.lr": spec.training.lr * 0.3,
        "training.epochs": 2 * spec.training.epochs,
        "training.schedule": "cosine:warmup=0.5",
    },
    "two heads": _fixed(model__heads=2),
    "width 40": _fixed(model__width=40, model__hidden=120),
    "post-norm": _fixed(model__norm="post"),
    "more decay": _fixed(training__optimiser="adamw:weight_decay=0.3"),
    "linear end": _fixed(training__schedule="onecycle:peak=0.15"),
}
"""Healthy trainings of the second set apart."""
SECOND_HEALTHY = {
    "addition": 2,
    "reverse": 2,
    "brackets": 2,
    "sorting": 2,
    "maximum": 2,
    "letters": 2,
    "ends": 2,
}
"""Their seeds."""

HEALTHY_SEEDS = {"addition": 3, "reverse": 4, "brackets": 3, "sorting": 2, "digits": 2, "grids": 2}
HEALTHY_EPOCHS = {
    "addition": 1.5,
    "reverse": 1.5,
    "brackets": 1.5,
    "sorting": 2.0,
    "digits": 1.5,
    "grids": 1.5,
    "maximum": 1.5,
    "letters": 1.5,
    "ends": 1.5,
}
"""Times the epochs of the base, so that what is called healthy has nearly learned what it can."""
LEAST = {
    **{"addition": 0.9, "reverse": 0.97, "brackets": 0.9, "sorting": 0.9, "digits": 0.82, "grids": 0.6},
    **{"maximum": 0.9, "letters": 0.82, "ends": 0.9},
}
"""The test accuracy that a healthy run has to reach; set before any of them was diagnosed."""

_FEW = {"task.train": 4000, "task.valid": 300, "task.test": 300, "training.threads": 1}
_THIN = {"model.width": 32, "model.heads": 4, "model.hidden": 64}
_LAYERS = {"model.encoder_layers": 1, "model.decoder_layers": 1}
REDUCED: dict[str, dict[str, dict[str, Any]]] = {
    "addition": {
        "default": {
            **_FEW,
            **_THIN,
            **_LAYERS,
            "task.digits": 2,
            "training.epochs": 8,
            "training.lr": 5e-3,
        },
        "reference": {
            **_FEW,
            **_THIN,
            **_LAYERS,
            "task.digits": 2,
            "training.epochs": 30,
            "training.lr": 5e-3,
        },
    },
    "sorting": {
        "default": {**_FEW, **_THIN, "task.low": 4, "task.high": 8, "task.negatives": "reference"},
        "global": {**_FEW, **_THIN, "task.low": 4, "task.high": 8, "task.negatives": "reference"},
    },
    "digits": {
        "small": {**_FEW, "task.train": 6_000, "training.epochs": 14},
        "mlp": {**_FEW, "task.train": 10_000, "training.lr": 0.1, "model.hidden": 64},
        "cnn": {**_FEW, "task.train": 6_000, "training.lr": 0.1},
        "vit-reference": {
            **{**_FEW, **_THIN, "model.patch": 7, "model.layers": 2},
            **{"training.lr": 3e-3, "training.epochs": 14},
        },
    },
}
"""Presets at a size of seconds."""


def reduced(task: str, preset: str) -> Spec:
    """A preset at a size of seconds."""
    return with_settings(al.spec(task, preset=preset), REDUCED[task][preset])


def healthy(task: str, variant: str) -> Spec:
    """A healthy training: a preset at a reduced size, or a variant of the base."""
    if variant in REDUCED.get(task, {}):
        return reduced(task, variant)
    spec = base(task)
    spec = with_settings(spec, {"training.epochs": round(HEALTHY_EPOCHS[task] * spec.training.epochs)})
    return with_settings(spec, (VARIANTS | SECOND_VARIANTS)[variant](spec))


def healthy_variants(task: str) -> list[str]:
    return [*VARIANTS, *REDUCED.get(task, {})]
