"""How many of an adder's 24 heads can go, one at a time, together, and with a little training after.

    python benchmarks/pruning.py                     # all of it, about an hour on two cores
    python benchmarks/pruning.py --seeds 1           # the shipped adder only
    python benchmarks/pruning.py --again             # only time training again, with nothing beside it

Takes the shipped adder (seed 0) and trains four more. For each: how many heads do no harm when one alone is
taken out, and what is left when all of these go at once; elimination with constants, with refitted maps and
by learned gates; and fine-tuning. Heads are chosen by validation sums, which the curves show. The points
that are asked for are scored over all 1,000,000 pairs. Writes ``results/pruning/seed-N.json``, one file as
soon as a seed is done; what is there is not done again. ``--again`` repeats the trainings that were scored
over all pairs, expects the same weights, and keeps the new times.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tyro
from presets_trained import finish, trained_adder

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import mean_baseline, optimal_baseline, zero_baseline
from attnlab.analysis.prune.cutting import Material
from attnlab.analysis.prune.elimination import Elimination, eliminate_all, load_material
from attnlab.analysis.prune.runs import begin_pruned_run, compare_costs, describe_pruning
from attnlab.analysis.subjects import BATCH, load_subject, score
from attnlab.models import heads
from attnlab.problems.addition import Addition
from attnlab.problems.addition.evaluate import verify_run
from attnlab.runs import (
    RunFolder,
    create_run_from,
    describe_environment,
    load_model,
    load_start,
    open_run,
    weights_fingerprint,
)
from attnlab.specs import to_json
from attnlab.storage import write_json
from attnlab.training import train_run

LOSS = 0.01


@dataclass(frozen=True)
class Options:
    """What to measure."""

    seeds: int = 5
    """So many seeds of the default preset; the first is the shipped adder."""
    first: int = 0
    """The first seed."""
    examples: int = 2000
    """Training sums to fit by, and validation sums to choose by."""
    steps: int = 400
    """Of fine-tuning."""
    removed: tuple[int, ...] = (19, 20)
    """Heads to remove without training, scored over all pairs."""
    finetuned: tuple[int, ...] = (22, 23)
    """Heads to remove before training, scored over all pairs."""
    again: bool = False
    """Time training again."""
    adders: Path = Path("runs/benchmark-addition")
    """Where adders are, or are trained to."""
    runs: Path = Path("runs/benchmark-pruning")
    """Where pruned runs are kept."""
    out: Path = Path("results/pruning")
    """The folder to write."""


def main(options: Options) -> None:
    for folder in (options.adders, options.runs, options.out):
        folder.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first, options.first + options.seeds):
        path = options.out / f"seed-{seed}.json"
        if options.again:
            time_again(path, adder(seed, options.adders), options.runs)
            continue
        if path.exists():
            print(f"{path} is there already", file=sys.stderr)
            continue
        environment = describe_environment().to_json()
        found = measure(adder(seed, options.adders), options)
        command = "python benchmarks/pruning.py"
        write_json(path, {"command": command, "environment": environment, "seed": seed, **found})


def adder(seed: int, folder: Path) -> RunFolder:
    """A trained adder."""
    if seed == 0:
        return open_run("zoo:adder")
    return trained_adder("default", seed, folder)


def measure(run: RunFolder, options: Options) -> dict[str, Any]:
    """Everything about one adder."""
    material = load_material(run, examples=options.examples)
    alone = {name: one_at_a_time(material, name) for name in ("zero", "mean", "optimal")}
    tell(run, "one at a time", {name: (each["heads"], each["together"]) for name, each in alone.items()})
    eliminations = {
        "mean": eliminate_all(material, repair="mean"),
        "refit": eliminate_all(material, repair="refit"),
        "gates": eliminate_all(material, method="gates", repair="refit"),
    }
    total = len(heads(material.model))
    best = eliminations["refit"]
    for name, each in eliminations.items():
        tell(run, name, {"fewest": each.fewest(LOSS), "curve": [p.exact_match for p in each.curve()]})
    trained = [
        finetune(run, best, total - gone, options) for gone in range(min(options.removed), total + 1)
    ]
    tell(run, "finetuned", [(each["kept"], each["exact_match"], each["seconds"]) for each in trained])
    points = {
        "whole": count_pairs(run),
        "without_training": [
            pruned_pairs(child(run, best, total - gone, options.runs, steps=0)) for gone in options.removed
        ],
        "with_training": [
            pruned_pairs(child(run, best, total - gone, options.runs, steps=options.steps))
            for gone in options.finetuned
        ],
    }
    tell(run, "all pairs", points)
    return {
        "run": run.name,
        "spec": to_json(run.spec()),
        "heads": total,
        "examples": options.examples,
        "steps": options.steps,
        "allowed_loss": LOSS,
        "alone": alone,
        "curves": {name: to_json(each.curve()) for name, each in eliminations.items()},
        "fewest_kept": {name: each.fewest(LOSS) for name, each in eliminations.items()},
        "finetuned": trained,
        "all_pairs": points,
    }


def tell(run: RunFolder, what: str, found: object) -> None:
    print(f"{run.name}: {what}: {json.dumps(found, default=str)}", file=sys.stderr, flush=True)


def one_at_a_time(material: Material, name: str) -> dict[str, Any]:
    """How many heads cost less than a point alone, and what is right without all of them."""
    match name:
        case "zero":
            baseline = zero_baseline(material.model)
        case "mean":
            baseline = mean_baseline(material.model, material.train, by_place=False)
        case _:
            baseline = optimal_baseline(material.model, material.train)
    whole = score(material.model, material.subject.examples).exact_match
    names = [str(head) for head in heads(material.model)]
    found = evaluate_without(material.subject, [frozenset([head]) for head in names], baseline)
    harmless = [head for head in names if found[frozenset([head])].exact_match > whole - LOSS]
    gone = frozenset(harmless)
    together = evaluate_without(material.subject, [gone], baseline)[gone]
    return {
        "heads": len(harmless),
        "share": len(harmless) / len(names),
        "together": together.exact_match,
        "harmless": harmless,
    }


def child(run: RunFolder, elimination: Elimination, kept: int, folder: Path, *, steps: int) -> RunFolder:
    """The pruned run, trained to its end."""
    path = child_path(run.name, kept, folder, steps=steps)
    if not path.exists():
        begin_pruned_run(run, elimination.pruned(kept), path, finetune=steps)
    found = open_run(str(path))
    finish(found)
    if found.analysis("prune") is None:
        describe_pruning(run, found, elimination, elimination.pruned(kept), finetune=steps)
    return found


def child_path(parent: str, kept: int, folder: Path, *, steps: int) -> Path:
    return folder / f"{parent.replace(':', '-')}-kept-{kept}-steps-{steps}"


def time_again(path: Path, run: RunFolder, folder: Path) -> None:
    """Repeat the passes and trainings of a result and keep how long they took."""
    found = json.loads(path.read_text(encoding="utf-8"))
    whole = load_subject(run, split="test", count=BATCH)
    times = {}
    for name, steps in (("without_training", 0), ("with_training", found["steps"])):
        for point in found["all_pairs"][name]:
            pruned = open_run(str(child_path(found["run"], len(point["kept"]), folder, steps=steps)))
            point["cost"] = to_json(compare_costs(whole.model, load_model(pruned), whole.examples))
    for point in found["all_pairs"]["with_training"]:
        kept = len(point["kept"])
        before = open_run(str(child_path(found["run"], kept, folder, steps=found["steps"])))
        start = load_start(before)
        assert start is not None
        with TemporaryDirectory() as temporary:
            repeated = create_run_from(Path(temporary) / "run", before.spec(), start)
            summary = train_run(repeated)
            same = _fingerprint(repeated) == _fingerprint(before)
        if summary is None or not same:
            sys.exit(f"{before.path} did not give the same weights again; remove it and {path}")
        point["training"], times[kept] = summary, summary["seconds"]
        print(f"{found['run']}: {kept} heads kept: {summary['seconds']:.1f} s", file=sys.stderr, flush=True)
    for row in found["finetuned"]:
        row["seconds"] = times.get(row["kept"])
    write_json(path, found)


def _fingerprint(run: RunFolder) -> str:
    return weights_fingerprint(load_model(run).state_dict())


def finetune(run: RunFolder, elimination: Elimination, kept: int, options: Options) -> dict[str, Any]:
    """Validation accuracy after training, and the time that took."""
    found = child(run, elimination, kept, options.runs, steps=options.steps)
    summary = found.summary()
    assert summary is not None
    return {
        "kept": kept,
        "exact_match": summary["valid"]["exact_match"],
        "seconds": summary["seconds"],
        "steps": summary["steps"],
    }


def count_pairs(run: RunFolder) -> dict[str, Any]:
    """Every pair decoded, unless that is known of the run already."""
    counted = run.analysis("verify")
    if counted is None:
        task = run.spec().task
        assert isinstance(task, Addition)
        counted = verify_run(task, run).to_json()
    return {key: counted[key] for key in ("correct", "total", "seen", "unseen", "by_chain", "seconds")}


def pruned_pairs(run: RunFolder) -> dict[str, Any]:
    """Every pair decoded, with what the pruned run keeps and costs."""
    told = run.analysis("prune")
    assert told is not None
    chosen = ("kept", "removed", "logit_difference", "test", "cost")
    return count_pairs(run) | {key: told[key] for key in chosen} | {"training": run.summary()}


if __name__ == "__main__":
    main(tyro.cli(Options))
