"""What recordings are made of: commands in groups, each group in a folder of its own.

The commands of a group run one after the other, so that those behind a training ask the run that it made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Case:
    """One command; ``files`` are patterns of files that it writes and that are recorded too."""

    name: str
    words: str
    """As in a shell."""
    files: tuple[str, ...] = ()
    stdin: str = ""
    kept: bool = False
    """Whether its recording is kept in the repository and tested."""


SWEEP = """
name: golden
method: grid
set:
  {task.digits: 1, task.train: 40, task.valid: 7, task.test: 5, model.width: 8, model.hidden: 8,
   training.epochs: 1, training.optimiser: sgd, training.clip: 0}
search: {training.lr: [0.1, 0.01], model.heads: [2, 3]}
"""
BAYES = """
goal: minimize valid_loss
set:
  {task.digits: 1, task.train: 40, task.valid: 7, task.test: 5, model.width: 8, model.hidden: 8,
   training.epochs: 2}
search:
  training.lr: log 1e-3 .. 1e-1
  model.dropout: 0.0 .. 0.2
  model.positions: ["learned:length=32,scale=1.0", "rotary:base=500", none]
count: 3
"""
INPUTS = {"grid.yaml": SWEEP, "bayes.yaml": BAYES}
"""Files that lie in the folder of every group, beside ``seven.png``, a picture of a digit."""

KINDS = (
    *("none", "sinusoidal", "learned:length=16", "rotary:base=100", "alibi", "relative:buckets=8"),
    *("randomised", "interpolated", "grid-learned", "grid-sinusoidal", "grid-rotary", "grid-start"),
)
SMALL = "--model.width=16 --model.hidden=32"
STEPS = "--training.threads=1 --training.epochs=2 --training.steps=6 --training.batch=16"
FEW_LISTS = "--task.low=3 --task.high=6 --task.train=64 --task.valid=20 --task.test=30"
FEW_IMAGES = "--task.train=64 --task.valid=20 --task.test=30"
ONE_LAYER = "--model.heads=2 --model.encoder-layers=1"
FEW_GRIDS = "--task.train=48 --task.valid=10 --task.test=12"
SEVERAL_SUMS = "--task.digits=2 --task.train=96 --task.valid=20 --task.test=30"
TRAININGS: dict[str, str] = {
    "addition/default": f"{SEVERAL_SUMS} {SMALL} --model.heads=2 --training.lr=0.003",
    "addition/reference": f"{SEVERAL_SUMS} {SMALL} --model.heads=2",
    "digits/default": FEW_IMAGES,
    "digits/small": FEW_IMAGES,
    "digits/patch-attention": FEW_IMAGES,
    "digits/mlp": FEW_IMAGES,
    "digits/cnn": FEW_IMAGES,
    "digits/vit": f"{FEW_IMAGES} {SMALL} --model.layers=2 --training.precision=float32",
    "digits/vit-reference": f"{FEW_IMAGES} {SMALL} --model.layers=2",
    "grids/default": f"{FEW_GRIDS} {SMALL} {ONE_LAYER} --training.precision=float32",
    "grids/reference": f"{FEW_GRIDS} {SMALL} {ONE_LAYER} --model.decoder-layers=1",
    "sorting/default": f"{FEW_LISTS} {SMALL} --model.heads=2",
    "sorting/global": f"{FEW_LISTS} {SMALL} --model.heads=2",
    "sorting/reference": f"{FEW_LISTS} {SMALL} --model.heads=2",
}
"""Flags that make each preset small. ``auto`` would choose a precision by the processor."""

ASKED = {
    "addition": ("37+85", "7+8"),
    "sorting": ('"1 2 2 5"', '"3 1 2 9"'),
    "digits": ("test:7", "seven.png"),
    "grids": ("test:3", "valid:1"),
}
"""Two inputs of each task."""


OTHER = {
    "run": "other",
    "zoo:adder": "zoo:sorter",
    "zoo:sorter": "zoo:adder",
    "zoo:digit": "zoo:grid",
    "zoo:grid": "zoo:digit",
}
"""A second run beside each."""


def follow_ups(
    run: str, task: str, name: str, *, without: Sequence[str] = (), kept: Sequence[str] = ()
) -> list[Case]:
    """Every command that takes a run, whether it has an answer for this one or a refusal."""
    first, second = ASKED[task]
    figures = f"figures-{name}"
    cases = {
        "metrics": (f"metrics {run} --json", ()),
        "evaluate": (f"evaluate {run} --json", ()),
        "predict": (f"predict {run} {first} {second} --json", ()),
        "heads": (f"heads {run} --examples 10 --json", ()),
        "heads-figure": (f"heads {run} --examples 7 --places --out {figures}/heads", ("heads/*",)),
        "patterns": (f"patterns {run} --example {first} --out {figures}/one --json", ("one/*",)),
        "patterns-head": (
            f"patterns {run} --head encoder.0.self.0 --examples 3 --out {figures}/head --json",
            ("head/*",),
        ),
        "positions": (f"positions {run} --out {figures}/positions --json", ("positions/*.svg",)),
        "maps": (f"maps {run} --samples 2 --out {figures}/maps --json", ("maps/*",)),
        "maps-rollout": (f"maps {run} --view rollout --out {figures}/rollout --json", ("rollout/*",)),
        "show": (f"show {run} --samples 2 --json", ()),
        "show-dots": (f"show {run} --samples 2", ()),
        "project": (
            f"project {run} --samples 30 --method pca-kmeans --out {figures}/points --json",
            ("points/*",),
        ),
        "project-taps": (f"project {run} --tap list", ()),
        "lengths": (
            f"lengths {run} --lengths 5,11 --examples 20 --out {figures}/lengths --json",
            ("lengths/*",),
        ),
        "ablate": (f"ablate {run} --baselines mean zero --examples 20 --json", ()),
        "ablate-all": (
            f"ablate {run} --baselines resample --heads encoder.0.self.0 encoder.0.self.1 --pairs"
            f" --shapley 2 --examples 10 --out {figures}/ablate --json",
            ("ablate/*",),
        ),
        "explain": (f"explain {run} {first} --out {figures}/why.svg --json", ("why.*",)),
        "explain-many": (f"explain {run} --many 3 --out {figures}/many.svg --json", ("many.*",)),
        "patch": (f"patch {run} --column 1 --pairs 3 --json", ()),
        "prune": (f"prune {run} --keep 3 --examples 20 --out pruned-{name} --json", ()),
        "prune-mean": (
            f"prune {run} --keep 3 --examples 20 --repair mean --finetune 2 --out repaired-{name} --json",
            (),
        ),
        "pruned-predict": (f"predict pruned-{name} {first} --json", ()),
        "timelapse": (
            f"timelapse {run} --examples 10 --samples 20 --out {figures}/moved --json",
            ("moved/*",),
        ),
        "export": (f"export {run} --onnx {name}.onnx --json", ()),
        "ensemble": (f"ensemble {run} {OTHER[run]} --out ensemble-{name} --json", ()),
        "report": (f"report {run} --samples 20 --out {figures}/page.html --json", ("page.html",)),
    }
    return [
        Case(
            f"{name}-{what}",
            words,
            tuple(f"{figures}/{pattern}" for pattern in files),
            kept=what in kept,
        )
        for what, (words, files) in cases.items()
        if what not in without
    ]


def training(task_and_preset: str, *, kept: bool) -> list[Case]:
    """A short training of a preset and all that can be asked of it."""
    task, _, preset = task_and_preset.partition("/")
    name = f"{task}-{preset}"
    words = f"train {task} --preset {preset} {TRAININGS[task_and_preset]} {STEPS} --training.snapshots=3"
    extra = [Case(f"{name}-verify", "verify run --json")]
    return [
        Case(f"{name}-train", f"{words} --out run --json", kept=kept),
        Case(f"{name}-train-again", f"{words} --seed 1 --out other --json", kept=name in PAIRS),
        Case(f"{name}-train-spec", "train --spec run/spec.json --out same --json"),
        Case(f"{name}-resume", "train --resume run --json"),
        *follow_ups(
            "run",
            task,
            name,
            without=() if name in ASKED_ALL else DEAR,
            kept=KEPT_AFTER_TRAINING.get(name, ()) if kept else (),
        ),
        *(extra if task == "addition" else []),
        Case(f"{name}-valid", "evaluate run --split valid --json"),
        Case(f"{name}-calibrate", "calibrate run --json", kept=name == "sorting-default"),
        Case(f"{name}-compare", "compare run other --samples 20 --json", kept=name == "sorting-default"),
        Case(f"{name}-runs", "runs . --json", kept=name == "sorting-default"),
    ]


ASKED_ALL = ("addition-default", "digits-vit", "grids-default", "sorting-default")
DEAR = (
    *("heads-figure", "patterns-head", "maps-rollout", "show-dots", "project-taps", "ablate-all"),
    *("explain-many", "prune-mean", "pruned-predict", "export", "report"),
)
"""What takes long, or differs little from preset to preset of one task."""
PAIRS = ("digits-vit-reference", "sorting-default")
"""Whose second runs are asked by kept cases."""
PRUNING = ("prune", "prune-mean", "pruned-predict")

KEPT_AFTER_TRAINING: dict[str, tuple[str, ...]] = {
    "addition-default": ("metrics", "evaluate", "prune", "export"),
    "addition-reference": ("metrics",),
    "digits-patch-attention": ("metrics",),
    "digits-mlp": ("metrics", "heads"),
    "digits-cnn": ("metrics",),
    "digits-vit": ("metrics", "project", "report"),
    "digits-vit-reference": ("metrics", "ensemble"),
    "grids-default": ("metrics", "evaluate"),
    "grids-reference": ("metrics",),
    "sorting-default": ("metrics", "patterns", "explain", "timelapse"),
    "sorting-global": ("metrics", "evaluate"),
    "sorting-reference": ("metrics",),
}

ADDER = [
    Case("adder-predict-many", "predict zoo:adder - --json", stdin="374+814\n999+1\n0+0\n", kept=True),
    Case("adder-predict-wrong", "predict zoo:adder 3x4", kept=True),
    Case("adder-predict-text", "predict zoo:adder 374+814 999+1"),
    Case("adder-csv", "metrics zoo:adder --csv --every"),
    Case("adder-place", "explain zoo:adder 374+814 --place 10^1 --out why.svg --json"),
    Case(
        "adder-cross", "patterns zoo:adder --head decoder.1.cross.2 --examples 2 --out f --json", ("f/*",)
    ),
    Case("adder-patch-any", "patch zoo:adder --column 2 --pairs 3 --digit any --out g --json", ("g/*",)),
    Case("adder-compare", "compare zoo:adder zoo:adder --samples 20 --json"),
    Case("adder-compare-page", "compare zoo:adder zoo:adder --samples 20 --out both.html", ("both.html",)),
]
SORTER = [
    Case(
        "sorter-far", "lengths zoo:sorter --lengths 8,64,...,256 --examples 20 --seed 1 --json", kept=True
    ),
    Case("sorter-doctor", "doctor zoo:sorter --json", kept=True),
    Case("sorter-shuffle", "lengths zoo:sorter --lengths 8 --negatives shuffle --examples 20 --json"),
    Case("sorter-gates", "prune zoo:sorter --keep 4 --method gates --examples 30 --out gates --json"),
    Case("sorter-optimal", "ablate zoo:sorter --baselines optimal --examples 20 --json"),
]
DIGIT = [
    Case("digit-views", "evaluate zoo:digit --views 5 --split valid --json"),
    Case("digit-wrong", "show zoo:digit --samples 3 --wrong --json"),
    Case("digit-tsne", "project zoo:digit --samples 60 --out points --json", ("points/*",)),
    Case("digit-patches", "project zoo:digit --tap patches --token 3,2 --samples 60 --out p.svg --json"),
    Case(
        "digit-hdbscan",
        "project zoo:digit --tap block:1 --method pca-hdbscan --samples 60 --out h.svg --json",
    ),
    Case("digit-both", "project zoo:digit zoo:grid --samples 40 --out both.html --json", ("both.html",)),
    Case(
        "digit-sent",
        "maps zoo:digit test:7 --view sent --patch 3,2 --layer 1 --out sent --json",
        ("sent/*",),
    ),
    Case("digit-train-split", "predict zoo:digit train:3 valid:4 --json", kept=True),
]
GRID = [
    Case("grid-cell", "explain zoo:grid test:1 --place 0,1 --out why.svg --json"),
    Case(
        "grid-mean", "maps zoo:grid test:0 --view digits --heads mean --out m --json", ("m/*",), kept=True
    ),
]
LISTS = [
    Case("help", "--help"),
    Case("study-list", "study list --json", kept=True),
    Case("data-status", "data status --json", kept=True),
    Case("data-fetch", "data fetch"),
    Case("runs-none", "runs", kept=True),
    Case("gradcheck", "gradcheck --width 8 --hidden 8 --batch 2 --threads 1 --entries 5 --json", kept=True),
    *(
        Case(
            f"positions-{kind.partition(':')[0]}",
            f"positions {kind} --length 8 --trained 4 --width 8 --heads 2 --columns 2 --out {number}"
            " --json",
            kept=kind in ("sinusoidal", "alibi", "grid-sinusoidal"),
        )
        for number, kind in enumerate(KINDS)
    ),
]
REFUSALS = [
    Case("refuse-command", "tran", kept=True),
    Case("refuse-run", "evaluate nowhere", kept=True),
    Case("refuse-zoo", "evaluate zoo:addr", kept=True),
    Case("refuse-task", "train additon", kept=True),
    Case("refuse-preset", "train addition --preset defalt", kept=True),
    Case("refuse-key", "train addition --model.widht 8", kept=True),
    Case("refuse-value", "train addition --model.heads 7", kept=True),
    Case("refuse-engine", "train digits --preset mlp --engine explicit", kept=True),
    Case("refuse-directory", "train digits --task.directory nowhere", kept=True),
    Case("refuse-head", "ablate zoo:adder --heads decoder.7.cross.0", kept=True),
    Case("refuse-study", "study run addition-ordr", kept=True),
    Case("refuse-show", "study show addition-order", kept=True),
    Case("refuse-compare", "compare zoo:adder zoo:sorter --json", kept=True),
    Case("refuse-verify", "verify zoo:grid", kept=True),
    Case("refuse-ensemble", "ensemble zoo:adder zoo:digit", kept=True),
]
STUDY = [
    Case("study-run", "study run tiny --catalogue CATALOGUE --workers 1 --out result --json"),
    Case("study-kept", "study show tiny --catalogue CATALOGUE --out result --json", ("result/*",)),
    Case("study-collected", "study show tiny --catalogue CATALOGUE --out nowhere --json"),
    Case("study-markdown", "study show tiny --catalogue CATALOGUE --out result --markdown"),
    Case("study-report", "report result --out page.html --json", ("page.html",)),
]
SWEEPS = [
    Case("sweep-grid", "sweep grid.yaml --workers 1 --count 2 --out sweep --json", kept=True),
    Case("sweep-more", "sweep grid.yaml --workers 1 --count 4 --out sweep --json", ("sweep/*.json",)),
    Case("sweep-bayes", "sweep bayes.yaml --workers 1 --out bayes --json"),
]
DEMO = [
    Case(
        "demo",
        "demo --task.digits=1 --task.train=40 --task.valid=7 --task.test=5 --model.width=8 --model.heads=2"
        " --model.hidden=8 --training.threads=1 --training.epochs=1 --out made --json",
        kept=True,
    ),
    Case("demo-verify", "verify made --json", kept=True),
]

GROUPS: dict[str, list[Case]] = {
    "lists": LISTS,
    "refusals": REFUSALS,
    "demo": DEMO,
    "adder": [
        *follow_ups(
            "zoo:adder",
            "addition",
            "adder",
            without=PRUNING,
            kept=("metrics", "predict", "patch"),
        ),
        *ADDER,
    ],
    "sorter": [
        *follow_ups(
            "zoo:sorter", "sorting", "sorter", kept=("metrics", "evaluate", "predict", "heads", "ablate")
        ),
        *SORTER,
    ],
    "digit": [
        *follow_ups("zoo:digit", "digits", "digit", without=PRUNING, kept=("metrics", "predict")),
        *DIGIT,
    ],
    "grid": [
        *follow_ups("zoo:grid", "grids", "grid", without=PRUNING, kept=("metrics", "predict", "show")),
        *GRID,
    ],
    "sweep": SWEEPS,
    "study": STUDY,
    **{
        name.replace("/", "-"): training(name, kept=name not in ("digits/default", "digits/small"))
        for name in TRAININGS
    },
}
"""Hand-written kernels take long to compile, so their two trainings are not kept; ``gradcheck`` is."""
