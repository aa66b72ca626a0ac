"""What a model answers to inputs as people write them, and how sure it is."""

from collections.abc import Sequence
from typing import Any

import torch

from attnlab.analysis.answers import answer, probability
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.spec import Task


def predict(task: Task, model: Model, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The answer to each text, its probability, and whether it is right."""
    return [_predict(task, model, task.parse(text)) for text in texts]


@torch.inference_mode()
def _predict(task: Task, model: Model, example: Examples) -> dict[str, Any]:
    shown, said = task.show(example), answer(task, model, example)
    output = task.answer(said[0])
    return {
        "input": shown.name,
        "output": output,
        "probability": probability(task, model, example, said).item(),
        "correct": None if shown.truth is None else torch.equal(said[0], example.targets.flatten()),
    }
