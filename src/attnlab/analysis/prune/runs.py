"""A pruned model as an ordinary run: it begins with the weights that were left, and may learn on."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.prune.choosing import CurvePoint, Elimination
from attnlab.analysis.prune.cost import Costs, compare_costs
from attnlab.analysis.prune.elimination import Pruned
from attnlab.analysis.statistics import proportion_interval
from attnlab.analysis.subjects import BATCH, Answers, answers_to, load_subject
from attnlab.results import Interval, Result
from attnlab.runs import Run, create_run_from, load_model, weights_fingerprint
from attnlab.spec import Spec

LR_SHARE = 0.5  # of the learning rate that trained the whole model, for those few steps


@dataclass(frozen=True)
class Scored:
    """How many examples are wholly right."""

    examples: int
    exact_match: float
    exact_match_interval: Interval


@dataclass(frozen=True)
class BeforeAndAfter:
    """Test examples, with all heads and with those that were kept."""

    before: Scored
    after: Scored


@dataclass(frozen=True, kw_only=True)
class PruningResult(Result):
    """What was done to the run ``parent``, and what it cost."""

    run: str
    parent: str
    method: PruningMethod
    repair: Repair
    finetune: int
    kept: list[str]
    removed: list[str]
    heads: int
    logit_difference: float
    valid_curve: list[CurvePoint]
    valid_examples: int
    test: BeforeAndAfter
    cost: Costs


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
) -> PruningResult:
    """What was done and what it cost, with test examples scored once; kept in the pruned run."""
    before = load_subject(run, split="test", count=10**9)
    after = load_model(child)
    some = before.examples[slice(0, BATCH)]
    found = PruningResult(
        run=child.name,
        parent=run.name,
        method=elimination.method,
        repair=elimination.repair,
        finetune=finetune,
        kept=[str(head) for head in elimination.order[len(pruned.removed) :]][::-1],
        removed=[str(head) for head in pruned.removed],
        heads=elimination.heads,
        logit_difference=pruned.difference,
        valid_curve=elimination.curve(),
        valid_examples=len(elimination.material.subject.examples),
        test=BeforeAndAfter(_scored(answers_to(before)), _scored(answers_to(before, after))),
        cost=compare_costs(before.model, after, some),
    )
    child.keep("prune", found)
    return found


def _scored(answers: Answers) -> Scored:
    count, total = int(answers.exact.sum()), len(answers.exact)
    return Scored(total, count / total, proportion_interval(count, total))
