"""The classifier that tells of a list of tokens which of two classes it is of."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.models.classifier import Classifier
from attnlab.models.embedding import TokenEmbed
from attnlab.models.parts import Parts
from attnlab.pooling import (
    AttentionPool,
    BoundaryPool,
    FirstPool,
    LastPool,
    LowestPool,
    MaxPool,
    MeanPool,
    MinPool,
    Pool,
)
from attnlab.spec import Pooling, Tokens, TokensModel


@final
class Evidence(nn.Module):
    """Logits (-s, s) of the number s that speaks for the second class."""

    def forward(self, s: Float[Tensor, "B 1"]) -> Float[Tensor, "B 2"]:
        return torch.cat((-s, s), dim=1)


def build_tokens(spec: TokensModel, *, vocabulary: int, tokens: Tokens) -> Classifier:
    """The model of ``spec``; weights are drawn later."""
    parts = Parts(spec, window=spec.window, log_scale=spec.log_scale)
    front = tokens.front if spec.pooling == "cls" else None
    pool, readout = _end(spec, vocabulary)
    return Classifier(
        embed=TokenEmbed(tokens=tokens.count, width=spec.width, padding=tokens.padding, front=front),
        positions=parts.positions(spec.positions),
        encoder=parts.encoder(spec.layers),
        norm=parts.closing_norm(),
        pool=pool,
        readout=readout,
        dropout=spec.dropout,
    )


def _end(spec: TokensModel, vocabulary: int) -> tuple[Pool, nn.Module]:
    """Pool and readout; of lowest pooling the readout is inside, once a token."""
    if spec.pooling == "lowest":
        return LowestPool(score=_readout(spec, 1)), Evidence()
    return build_pool(spec.pooling, spec.width), _readout(spec, vocabulary)


def _readout(spec: TokensModel, outputs: int) -> nn.Module:
    last = nn.Linear(spec.width, outputs)
    match spec.readout:
        case "linear":
            return last
        case "mlp":
            return nn.Sequential(nn.Linear(spec.width, spec.width), nn.ReLU(), last)


def build_pool(pooling: Pooling, width: int) -> Pool:
    """The pool that a spec names; of ``cls`` it takes what stands in front."""
    match pooling:
        case "cls":
            return FirstPool()
        case "mean":
            return MeanPool()
        case "min":
            return MinPool()
        case "max":
            return MaxPool()
        case "attention":
            return AttentionPool(width=width)
        case "last":
            return LastPool()
        case "boundary":
            return BoundaryPool(width=width)
        case "lowest":
            raise AssertionError("lowest pooling scores tokens with the readout")
