"""The whole ablation of a model: every head towards every baseline, pairs, Shapley values.

Answers are needed of the model without many sets of heads, and little is computed twice.
What a pass computes before the first attention whose heads differ from those of the pass before it, this
pass need not compute again: z and the residual stream up to there are supplied. The sets are walked as the
branches of a tree, first by the heads left out of the first attention that is computed, then by those of
the second, and so on; so the first layers are computed once for all sets that agree on them.

Greedy decoding gets exactly those examples wholly right that teacher forcing does, so one pass is all that
a set needs. Passes are not made wider by several sets at once: from a few dozen examples on, time goes
with rows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import torch

from attnlab.analysis.ablate import effects
from attnlab.analysis.ablate.baselines import (
    Baseline,
    Heads,
    check_heads,
    head_names,
    make_baseline,
    mask_without,
    run_pass,
    until,
)
from attnlab.analysis.choices import BaselineName
from attnlab.analysis.parallel import Tick, in_parallel
from attnlab.analysis.subjects import Answers, Subject, batch_size, join, judge, load_subject
from attnlab.devices import device_of
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.progress import Progress, Stages, silent
from attnlab.results import Result, Row, estimate_columns
from attnlab.runs import RunFolder, save_if_larger
from attnlab.sets import Examples
from attnlab.specs import Split
from attnlab.specs.codec import later

TRAINING = 1000
"""Training examples from which the mean and the optimal constants are made."""


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """What to do. Pairs and Shapley values go towards the first of the baselines.

    ``heads`` are those to take out, none meaning all; ``orders`` is how many orders of the heads Shapley
    values are estimated from, 0 meaning no Shapley values.
    """

    baselines: tuple[BaselineName, ...] = ("optimal", "mean", "zero", "resample")
    heads: tuple[str, ...] = ()
    pairs: bool = False
    orders: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.baselines:
            raise InputError("there is no baseline; name at least one of zero, mean, resample, optimal")
        if self.orders < 0:
            raise InputError(f"shapley is {self.orders}; it must be at least 0")


@dataclass(frozen=True, kw_only=True)
class AblationResult(Result):
    """Every head towards every baseline, on ``examples`` of which the whole model gets ``exact_match``.

    ``run`` and ``split`` are those of a run. ``pairs`` and ``shapley`` go ``towards`` one baseline.
    """

    shown_by: ClassVar[str] = "attnlab.tables.ablate"

    run: str = later("")
    split: Split | None = later(None)
    examples: int
    exact_match: float
    loss: float
    strata: dict[str, int]
    baselines: dict[str, list[effects.Single]]
    hardest_hit: dict[str, list[effects.HardestHit]]
    disagreements: list[effects.Disagreement]
    agreement: str | None
    towards: BaselineName
    pairs: list[effects.Pair] | None = None
    shapley: effects.Shapley | None = None
    only_together: list[effects.Pair] | None = later(None)
    only_in_company: list[str] | None = later(None)

    def records(self) -> list[Row]:
        """A row for each baseline, head and group of examples or place of the answer."""
        return [
            {"baseline": name, "head": row.head, "group": group, **estimate_columns("lost", lost)}
            for name, singles in self.baselines.items()
            for row in singles
            for group, lost in row.groups.items()
        ]

    @property
    def singles(self) -> dict[str, effects.Single]:
        """Heads towards the first baseline, in the order of computation."""
        return {row.head: row for row in self.baselines[self.towards]}


def ablate_run(
    run: RunFolder,
    plan: Ablation,
    *,
    split: Split = "valid",
    count: int = 2000,
    keep: bool = True,
    stages: Stages = lambda _: silent,
) -> AblationResult:
    """Ablate the heads of a run and keep what was found, unless what is kept is from more examples."""
    subject = load_subject(run, split=split, count=count)
    training = load_subject(run, split="train", count=TRAINING).examples
    found = replace(ablate(subject, training, plan, stages=stages), run=run.name, split=split)
    if keep:
        save_if_larger(run, f"ablate-{split}", found, "examples")
    return found


def ablate(
    subject: Subject, training: Examples, plan: Ablation, *, stages: Stages = lambda _: silent
) -> AblationResult:
    """Ablate the heads of any model; ``training`` is what baselines are made from."""
    check_heads(subject.model, plan.heads)
    heads = list(dict.fromkeys(plan.heads)) or head_names(subject.model)
    orders = effects.random_orders(heads, plan.orders, plan.seed)
    singles: dict[str, list[effects.Single]] = {}
    first: dict[Heads, Answers] = {}
    for name in dict.fromkeys(plan.baselines):
        baseline = make_baseline(name, subject, training, plan.seed, stages)
        sets = [frozenset[str](), *(frozenset((head,)) for head in heads)]
        if not first:
            sets += map(frozenset, combinations(heads, 2)) if plan.pairs else []
            sets += [out for order in orders for out in effects.missing_in(order)]
        answers = evaluate_without(subject, sets, baseline, progress=stages(f"taking heads out, {name}"))
        first = first or answers
        whole = answers[frozenset()]
        singles[name] = effects.describe_singles(
            subject, whole, {head: answers[frozenset((head,))] for head in heads}
        )
    apart, alone = effects.disagreements(singles), singles[plan.baselines[0]]
    pairs = effects.describe_pairs(heads, first) if plan.pairs else None
    shapley = effects.describe_shapley(heads, orders, first) if orders else None
    return AblationResult(
        examples=len(subject.examples),
        exact_match=whole.exact_match,
        loss=whole.mean_loss,
        strata={name: int(group.sum()) for name, group in subject.strata.items()},
        baselines=singles,
        hardest_hit={name: effects.hardest_hit(rows) for name, rows in singles.items()},
        disagreements=apart,
        agreement=effects.disagreement_sentence(apart, len(heads)) if len(singles) > 1 else None,
        towards=plan.baselines[0],
        pairs=pairs,
        shapley=shapley,
        only_together=None if pairs is None else effects.only_together(alone, pairs),
        only_in_company=None if shapley is None else effects.only_in_company(alone, shapley),
    )


def evaluate_without(
    subject: Subject, sets: Iterable[Heads], baseline: Baseline, *, progress: Progress = silent
) -> dict[Heads, Answers]:
    """What the model answers without each of the ``sets``; ``progress`` is told of passes."""
    wanted = list(dict.fromkeys(sets))
    check_heads(subject.model, sorted(frozenset[str]().union(*wanted)))
    most, threads = batch_size(subject.model, subject.examples), torch.get_num_threads()
    rounds = math.ceil(len(subject.examples) / (most * threads))
    size = math.ceil(len(subject.examples) / (rounds * threads))  # all threads have as much to do
    parts = [slice(start, start + size) for start in range(0, len(subject.examples), size)]

    @torch.inference_mode()
    def walk(model: Model, part: slice, tick: Tick) -> dict[Heads, Answers]:
        """Answers to a part of the examples, set by set in the order of the tree."""
        examples, towards = subject.examples[part].to(device_of(model)), baseline.rows(part)
        answers = dict[Heads, Answers]()
        logits, values = run_pass(model, examples, {}, {}, towards)
        paths = (name.removesuffix(".z") for name in values if name.endswith(".z"))
        order = [path for path in paths if path in attentions(model)]
        before: list[list[str]] = [[] for _ in order]
        branches = [  # which heads are left out of each attention
            [sorted(head for head in removed if head.rpartition(".")[0] == path) for path in order]
            for removed in wanted
        ]
        for branch, removed in sorted(zip(branches, wanted, strict=True)):
            differing = [path for path, a, b in zip(order, before, branch, strict=True) if a != b]
            if differing:
                mask = {path: kept for path, kept in mask_without(model, removed).items() if path in order}
                logits, values = run_pass(model, examples, until(values, differing[0]), mask, towards)
                before = branch
            answers[removed] = judge(logits, examples.targets)
            tick()
        return answers

    def walk_briefly(model: Model, part: slice, tick: Tick) -> dict[Heads, Answers]:
        with model.brief():
            return walk(model, part, tick)

    found = in_parallel(
        subject.model, parts, walk_briefly, steps=len(parts) * len(wanted), progress=progress
    )
    return {removed: join([part[removed] for part in found]) for removed in wanted}
