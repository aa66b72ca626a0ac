"""What runs that read tokens get wrong, the most confident mistakes first."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from attnlab.analysis.answers import answer_all, in_parts, probability
from attnlab.analysis.decoding import BATCH
from attnlab.examples import Examples, one_example
from attnlab.model import Model
from attnlab.spec import Task

KEPT = 100
"""Mistakes that are told one by one."""


def slips_of(task: Task, model: Model, examples: Examples) -> dict[str, Any]:
    """Examples whose answer is not wholly right."""
    said = answer_all(task, model, examples)
    wrong = (said != examples.targets.reshape(said.shape)).any(dim=1)
    missed, answers = examples[wrong], said[wrong]
    parts = zip(
        in_parts(missed), torch.split(answers, BATCH), strict=False
    )  # nothing missed is still one part
    sure = torch.cat([torch.zeros(0), *(probability(task, model, *part) for part in parts)])
    worst = sure.argsort(descending=True, stable=True)[:KEPT].tolist()
    rows = [_told(task, one_example(missed, place, task.padding), answers[place]) for place in worst]
    return {
        "examples": len(examples),
        "count": len(missed),
        "worst": [
            {**row, "probability": sure[place].item()} for row, place in zip(rows, worst, strict=True)
        ],
    }


def _told(task: Task, example: Examples, said: Int[Tensor, "T"]) -> dict[str, Any]:
    shown = task.show(example)
    return {"input": shown.name, "truth": shown.truth, "answer": task.answer(said)}
