"""How good a model is on a split, by greedy decoding and by teacher forcing, and where it is weak.

Greedy decoding feeds the model its own answers; teacher forcing feeds it the true ones. A model whose
decoding is deterministic gets an example wholly right by the one exactly when it does by the other:
as long as every argmax is right, both feed the same tokens. So the two exact matches are equal, and a
difference between them is a bug. Token accuracies differ, because a first mistake changes what follows.
"""

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.answers import answer_all
from attnlab.analysis.decoding import BATCH, batches, decode
from attnlab.analysis.statistics import proportion_interval
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import Seq2Seq
from attnlab.problems.addition import Addition
from attnlab.progress import Progress, silent
from attnlab.spec import Split as Split
from attnlab.spec import Task
from attnlab.training.measuring import cross_entropy, measure, right


def evaluate(task: Addition, model: Seq2Seq, *, seed: int, split: Split = "test") -> dict[str, Any]:
    """Measure ``model`` on the split that ``seed`` gives."""
    pairs = dict(zip(("train", "valid", "test"), task.split_pairs(seed), strict=True))[split]
    greedy = decode(task, model, pairs) == task.target(pairs)
    forced, loss = _teacher_forced(task, model, pairs)
    exact = greedy.all(dim=1)
    return {
        "split": split,
        **share("exact_match", exact),
        "token_accuracy": greedy.double().mean().item(),
        "teacher_forced": {
            "exact_match": forced.all(dim=1).double().mean().item(),
            "token_accuracy": forced.double().mean().item(),
            "loss": loss,
        },
        "by_chain": by_chain(task, pairs, exact),
        "by_column": [
            {"column": name, "accuracy": greedy[:, place].double().mean().item()}
            for place, name in enumerate(task.places())
        ],
    }


def evaluate_task(
    task: Task, model: Model, examples: Examples, *, progress: Progress = silent
) -> dict[str, Any]:
    """Measure ``model`` on examples of any task, by stratum and by place of the answer."""
    targets = examples.targets.reshape(len(examples), -1)
    hits = answer_all(task, model, examples, progress=progress) == targets
    exact, forced = hits.all(dim=1), measure(model, examples, batch=BATCH)
    return {
        **share("exact_match", exact),
        "token_accuracy": hits.double().mean().item(),
        "teacher_forced": {
            "exact_match": forced.exact_match,
            "token_accuracy": forced.token_accuracy,
            "loss": forced.loss,
        },
        "by_stratum": [
            {"stratum": name, **share("exact_match", exact[group])}
            for name, group in task.strata(examples).items()
        ],
        "by_place": [
            {"place": name, "accuracy": hits[:, place].double().mean().item()}
            for place, name in enumerate(task.places())
        ],
    }


def by_chain(task: Addition, pairs: Int[Tensor, "N 2"], exact: Bool[Tensor, "N"]) -> list[dict[str, Any]]:
    """Exact match for each length of the longest carry chain."""
    chains = task.chains(pairs)
    return [
        {"chain": chain, **share("exact_match", exact[chains == chain])}
        for chain in range(task.digits + 1)
        if (chains == chain).any()
    ]


@torch.inference_mode()
def _teacher_forced(
    task: Addition, model: Seq2Seq, pairs: Int[Tensor, "N 2"]
) -> tuple[Bool[Tensor, "N T"], float]:
    """Which tokens are right when the true ones before them are given, and the loss."""
    forced, loss = [], 0.0
    for part in batches(pairs):
        examples = task.examples(part)
        logits = model(*examples.inputs)
        forced.append(right(logits, examples.targets))
        loss += cross_entropy(logits, examples.targets).item() * len(part)
    return torch.cat(forced), loss / len(pairs)


def share(name: str, hits: Bool[Tensor, "N"]) -> dict[str, Any]:
    """How many of how many, with a 95% interval, under ``name``."""
    count = int(hits.sum())
    return {
        "examples": len(hits),
        name: count / len(hits),
        f"{name}_interval": proportion_interval(count, len(hits)),
    }
