"""What runs that read text get wrong, the most confident mistakes first.

The probability of an answer is that of all its tokens: for a sum the product over the digits that greedy
decoding gives, each after those before it.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.decoding import batches, decode, fed
from attnlab.analysis.digits import answers
from attnlab.analysis.evaluation import Split
from attnlab.models import Classifier, Seq2Seq
from attnlab.spec import PAD
from attnlab.tasks import Addition, Examples, Sorting
from attnlab.tasks.sorting import CLASSES

KEPT = 100
"""Mistakes that are told one by one."""


def slips_of_sums(task: Addition, model: Seq2Seq, pairs: Int[Tensor, "N 2"]) -> dict[str, Any]:
    """Sums that are not wholly right."""
    emitted = decode(task, model, pairs)
    wrong = (emitted != task.target(pairs)).any(dim=1)
    sure = _spoken(task, model, pairs[wrong], emitted[wrong])
    told = [
        {
            "input": f"{a}+{b}",
            "truth": str(a + b),
            "answer": task.answer(tokens),
            "probability": chance,
        }
        for (a, b), tokens, chance in zip(pairs[wrong].tolist(), emitted[wrong], sure.tolist(), strict=True)
    ]
    return _told(len(pairs), told)


@torch.inference_mode()
def _spoken(
    task: Addition, model: Seq2Seq, pairs: Int[Tensor, "N 2"], emitted: Int[Tensor, "N T"]
) -> Float[Tensor, "N"]:
    parts = [torch.zeros(0)]
    for rows in batches(torch.cat((pairs, emitted), dim=1)):
        said = rows[:, 2:]
        logits = model(task.source(rows[:, :2]), fed(task, said))
        each = logits.log_softmax(dim=-1).gather(-1, said[..., None])[..., 0]
        parts.append(each.sum(dim=1).exp())
    return torch.cat(parts)


def slips_of_lists(task: Sorting, model: Classifier, *, seed: int, split: Split = "test") -> dict[str, Any]:
    """Lists whose order is told wrongly."""
    examples: Examples = getattr(task.splits(seed), split)
    sure, said = answers(model, examples).softmax(dim=1).max(dim=1)
    told = [
        {
            "input": " ".join(task.symbols(examples.inputs[0][place][examples.inputs[0][place] != PAD])),
            "truth": CLASSES[int(examples.targets[place])],
            "answer": CLASSES[int(said[place])],
            "probability": float(sure[place]),
        }
        for place in (said != examples.targets).nonzero()[:, 0].tolist()
    ]
    return _told(len(examples), told)


def _told(examples: int, told: list[dict[str, Any]]) -> dict[str, Any]:
    worst = sorted(told, key=lambda row: -float(row["probability"]))
    return {"examples": examples, "count": len(told), "worst": worst[:KEPT]}
