"""What a model answers to given inputs, and how sure it is."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.decoding import batches, decode, fed
from attnlab.models import Seq2Seq
from attnlab.tasks import Addition


@torch.inference_mode()
def predict(task: Addition, model: Seq2Seq, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The greedy answer to each text, its probability, and whether it is right.

    The probability of an answer is the product over its tokens of p(token | source, tokens before it).
    """
    pairs = torch.stack([task.parse(text) for text in texts])
    emitted = decode(task, model, pairs)
    probabilities = torch.cat(
        [_probability(task, model, *both) for both in zip(batches(pairs), batches(emitted), strict=True)]
    )
    return [
        {
            "input": f"{a}+{b}",
            "output": task.answer(tokens),
            "probability": probability,
            "correct": torch.equal(tokens, truth),
        }
        for (a, b), tokens, probability, truth in zip(
            pairs.tolist(), emitted, probabilities.tolist(), task.target(pairs), strict=True
        )
    ]


def _probability(
    task: Addition, model: Seq2Seq, pairs: Int[Tensor, "B 2"], emitted: Int[Tensor, "B T"]
) -> Float[Tensor, "B"]:
    logits = model(task.source(pairs), fed(task, emitted))
    return logits.log_softmax(dim=-1).gather(-1, emitted[..., None]).sum(dim=(1, 2)).exp()
