"""A pruned model as an ordinary run: it begins with the weights that were left, and may learn on."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.analysis.evaluation import share
from attnlab.analysis.prune.choosing import Elimination
from attnlab.analysis.prune.cost import compare_costs
from attnlab.analysis.prune.elimination import Pruned
from attnlab.analysis.subjects import BATCH, answers_to, load_subject
from attnlab.runs import Run, create_run_from, load_model, weights_fingerprint
from attnlab.spec import Spec

LR_SHARE = 0.5  # of the learning rate that trained the whole model, for those few steps


def begin_pruned_run(run: Run, pruned: Pruned, path: Path, *, finetune: int = 0) -> Run:
    """A new run that begins with the pruned weights and has ``finetune`` steps before it."""
    spec = pruned_spec(run.spec(), pruned, finetune=finetune)
    return create_run_from(path, spec, pruned.model.state_dict())


def pruned_spec(spec: Spec, pruned: Pruned, *, finetune: int) -> Spec:
    """The experiment of the pruned run."""
    per_epoch = math.ceil(spec.task.train / spec.training.batch)
    training = replace(
        spec.training,
        epochs=math.ceil(finetune / per_epoch),
        steps=finetune,
        lr=spec.training.lr * LR_SHARE,
        patience=0,
    )
    start = weights_fingerprint(pruned.model.state_dict())
    return replace(spec, model=pruned.spec, training=training, engine="torch", start=start)


def describe_pruning(
    run: Run, child: Run, elimination: Elimination, pruned: Pruned, *, finetune: int
) -> dict[str, Any]:
    """What was done and what it cost, with test examples scored once; kept in the pruned run."""
    before = load_subject(run, split="test", count=10**9)
    after = load_model(child)
    some = before.examples[slice(0, BATCH)]
    found = {
        "run": child.name,
        "parent": run.name,
        "method": elimination.method,
        "repair": elimination.repair,
        "finetune": finetune,
        "kept": [str(head) for head in elimination.order[len(pruned.removed) :]][::-1],
        "removed": [str(head) for head in pruned.removed],
        "heads": elimination.heads,
        "logit_difference": pruned.difference,
        "valid_curve": elimination.curve(),
        "valid_examples": len(elimination.material.subject.examples),
        "test": {
            "before": share("exact_match", answers_to(before).exact),
            "after": share("exact_match", answers_to(before, after).exact),
        },
        "cost": compare_costs(before.model, after, some),
    }
    child.keep_analysis("prune", found)
    return found
