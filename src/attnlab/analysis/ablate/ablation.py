"""The whole ablation of a model: every head towards every baseline, pairs, Shapley values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnlab.analysis.ablate.agreement import disagreement_sentence, disagreements
from attnlab.analysis.ablate.baselines import (
    Baseline,
    mean_baseline,
    resample_baseline,
    zero_baseline,
)
from attnlab.analysis.ablate.constants import optimal_baseline
from attnlab.analysis.ablate.masks import check_heads, head_names
from attnlab.analysis.ablate.pairs import describe_pairs, only_together, pairs_of
from attnlab.analysis.ablate.shapley import describe_shapley, missing_in, only_in_company, random_orders
from attnlab.analysis.ablate.singles import describe_singles, hardest_hit
from attnlab.analysis.ablate.without import Heads, evaluate_without
from attnlab.analysis.choices import BaselineName
from attnlab.analysis.evaluation import Split
from attnlab.analysis.subjects import Answers, Subject, load_subject
from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.progress import Progress, silent
from attnlab.runs import Run, save_if_larger

TRAINING = 1000
"""Training examples from which the mean and the optimal constants are made."""

Stages = Callable[[str], Progress]
"""Gives the progress of a stage by its name."""


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
            raise InputError(f"--shapley is {self.orders}; it must be at least 0")


def ablate_run(
    run: Run,
    plan: Ablation,
    *,
    split: Split = "valid",
    count: int = 2000,
    stages: Stages = lambda _: silent,
) -> dict[str, Any]:
    """Ablate the heads of a run and keep what was found, unless what is kept is from more examples."""
    subject = load_subject(run, split=split, count=count)
    training = load_subject(run, split="train", count=TRAINING).examples
    found = {"run": run.name, "split": split, **ablate(subject, training, plan, stages=stages)}
    save_if_larger(run, f"ablate-{split}", found, "examples")
    return found


def ablate(
    subject: Subject, training: Examples, plan: Ablation, *, stages: Stages = lambda _: silent
) -> dict[str, Any]:
    """Ablate the heads of any model; ``training`` is what baselines are made from."""
    check_heads(subject.model, plan.heads)
    heads = list(dict.fromkeys(plan.heads)) or head_names(subject.model)
    orders = random_orders(heads, plan.orders, plan.seed)
    singles: dict[str, list[dict[str, Any]]] = {}
    first: dict[Heads, Answers] = {}
    for name in dict.fromkeys(plan.baselines):
        baseline = make_baseline(name, subject, training, seed=plan.seed, stages=stages)
        sets = [frozenset[str](), *(frozenset((head,)) for head in heads)]
        if not first:
            sets += pairs_of(heads) if plan.pairs else []
            sets += [out for order in orders for out in missing_in(order)]
        answers = evaluate_without(subject, sets, baseline, progress=stages(f"taking heads out, {name}"))
        first = first or answers
        whole = answers[frozenset()]
        singles[name] = describe_singles(
            subject, whole, {head: answers[frozenset((head,))] for head in heads}
        )
    apart = disagreements(singles)
    return {
        "examples": len(subject.examples),
        "exact_match": whole.exact.double().mean().item(),
        "loss": whole.loss.double().mean().item(),
        "strata": {name: int(group.sum()) for name, group in subject.strata.items()},
        "baselines": singles,
        "hardest_hit": {name: hardest_hit(rows) for name, rows in singles.items()},
        "disagreements": apart,
        "agreement": disagreement_sentence(apart, len(heads)) if len(singles) > 1 else None,
        **_interactions(heads, orders, plan, singles, first),
    }


def _interactions(
    heads: list[str],
    orders: list[list[str]],
    plan: Ablation,
    singles: dict[str, list[dict[str, Any]]],
    answers: dict[Heads, Answers],
) -> dict[str, Any]:
    alone = singles[plan.baselines[0]]
    found: dict[str, Any] = {"towards": plan.baselines[0], "pairs": None, "shapley": None}
    if plan.pairs:
        found["pairs"] = describe_pairs(heads, answers)
        found["only_together"] = only_together(alone, found["pairs"])
    if orders:
        found["shapley"] = describe_shapley(heads, orders, answers)
        found["only_in_company"] = only_in_company(alone, found["shapley"])
    return found


def make_baseline(
    name: BaselineName,
    subject: Subject,
    training: Examples,
    *,
    seed: int = 0,
    stages: Stages = lambda _: silent,
) -> Baseline:
    """A baseline by its name: from training examples, or (resample) from the subject's own."""
    match name:
        case "zero":
            return zero_baseline(subject.model)
        case "mean":
            return mean_baseline(subject.model, training)
        case "resample":
            return resample_baseline(subject.model, subject.examples, seed=seed)
        case "optimal":
            progress = stages("fitting optimal constants")
            return optimal_baseline(subject.model, training, seed=seed, progress=progress)
