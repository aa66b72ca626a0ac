"""A pruned model as an ordinary run: it begins with the weights that were left, and may learn on.

Its costs are parameters, multiplications and time.
"""

import math
import time
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from attnlab.analysis.choices import PruningMethod, Repair
from attnlab.analysis.evaluate import proportion
from attnlab.analysis.prune.cutting import Pruned
from attnlab.analysis.prune.elimination import CurvePoint, Elimination
from attnlab.analysis.subjects import BATCH, load_subject, score
from attnlab.devices import device_of
from attnlab.model import Model
from attnlab.results import Interval, Result, Row, plain_fields
from attnlab.runs import RunFolder, create_run_from, weights_fingerprint
from attnlab.sets import Examples

ROUNDS = 15


@dataclass(frozen=True)
class Cost:
    """Learned numbers, multiplications with addition an example, and the median time of a pass."""

    parameters: int
    multiply_adds: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """Two models, each timed on so many ``examples`` a pass."""

    examples: int
    threads: int
    before: Cost
    after: Cost


@torch.no_grad()
def multiply_adds(model: Model, examples: Examples) -> int:
    """Multiplications with addition in the matrix products of one example's pass."""
    counter = FlopCounterMode(display=False)
    still = deepcopy(model).requires_grad_(False)  # the counter cannot follow parameters that are viewed
    with counter:
        still(*examples[slice(0, 1)].to(device_of(model)).inputs)
    return int(counter.get_total_flops()) // 2


def compare_costs(before: Model, after: Model, examples: Examples) -> Costs:
    """Both models' costs; passes over ``examples`` are timed in turns, and the median counts."""
    times: dict[Model, list[float]] = {before: [], after: []}
    inputs = examples.to(device_of(before)).inputs
    for _ in range(ROUNDS):
        for model, own in times.items():
            began = time.perf_counter()
            with torch.inference_mode():
                model(*inputs).cpu()  # which waits for an accelerator
            own.append(time.perf_counter() - began)
    costs = (
        Cost(sum(map(Tensor.numel, model.parameters())), multiply_adds(model, examples), median(own))
        for model, own in times.items()
    )
    return Costs(len(examples), torch.get_num_threads(), *costs)


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

    shown_by: ClassVar[str] = "attnlab.tables.prune"

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

    def records(self) -> list[Row]:
        """A row for each number of heads kept: validation examples, before any training."""
        return [plain_fields(point) for point in self.valid_curve]


def begin_pruned_run(run: RunFolder, pruned: Pruned, path: Path, *, finetune: int = 0) -> RunFolder:
    """A new run that begins with the pruned weights and has ``finetune`` steps before it."""
    spec, weights = run.spec(), pruned.model.state_dict()
    examples = spec.task.splits(spec.seed).train  # a small task has fewer than its spec asks for
    per_epoch = math.ceil(len(examples) / spec.training.batch)
    training = replace(
        spec.training,
        epochs=math.ceil(finetune / per_epoch),
        steps=finetune,
        lr=spec.training.lr * LR_SHARE,
        patience=0,
    )
    start = weights_fingerprint(weights)
    assert pruned.spec is not None
    spec = replace(spec, model=pruned.spec, training=training, engine="torch", start=start)
    return create_run_from(path, spec, weights)


def describe_pruning(
    run: RunFolder, child: RunFolder, elimination: Elimination, pruned: Pruned, *, finetune: int
) -> PruningResult:
    """What was done and what it cost, with test examples scored once; kept in the pruned run."""
    before = load_subject(run.on_cpu(), split="test", count=10**9)
    after = child.on_cpu().model
    test = (Scored(*proportion(score(each, before.examples).exact)) for each in (before.model, after))
    found = PruningResult(
        run=child.name,
        parent=run.name,
        method=elimination.method,
        repair=elimination.repair,
        finetune=finetune,
        kept=elimination.kept(pruned),
        removed=list(pruned.removed),
        heads=elimination.heads,
        logit_difference=pruned.difference,
        valid_curve=elimination.curve(),
        valid_examples=len(elimination.material.subject.examples),
        test=BeforeAndAfter(*test),
        cost=compare_costs(before.model, after, before.examples[slice(0, BATCH)]),
    )
    return child.keep("prune", found)
