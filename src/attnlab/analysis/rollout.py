"""Attention rollout: how much of every input a token holds after several attentions.

Abnar and Zuidema ("Quantifying Attention Flow in Transformers", 2020) take the mean A over an attention's
heads and count the residual connection as half of what goes on:

    R <- (I / 2 + A / 2) R,     R = I at first                                 self attention
    D <- D / 2 + A M / 2                                                       cross attention

R (T, S) has a row for each token and a column for each input; D is the same for a decoder, whose tokens
hold nothing of the source at first, and M is what its memory holds, the encoder's R behind the bridge. A
block without a residual sum passes on A alone. Rows of R sum to 1; what is missing to 1 in a row of D comes
from the tokens that the decoder was fed.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.blocks import NoSum
from attnlab.errors import LabError
from attnlab.model import Model, Site

HALF = 0.5
"""What the residual connection counts for."""


def rollout(model: Model, patterns: Mapping[str, Float[Tensor, "_ _ _ _"]]) -> Float[Tensor, "B T S"]:
    """What the last tokens of any model hold of its inputs; ``patterns`` by the path of their attention.

    Of an encoder-decoder the rows are the decoder's tokens and the columns those of the source; of all
    others both are the tokens of the stack. ``record(model, "*.pattern")`` gives the patterns.
    """
    sites = [site for site in model.sites() if site.path in patterns]
    if not sites:
        raise LabError("there is no pattern to roll out; record those of the model's attentions")
    held: Tensor | None = None
    for site in sites:
        if site.queries == "input":
            held = _stacked(model, site.path, patterns[site.path], held)
    if model.decodes:
        return _decoded(
            model, {site: patterns[site.path] for site in sites if site.queries == "answer"}, held
        )
    assert held is not None
    return held


def _decoded(
    model: Model, looking: dict[Site, Float[Tensor, "_ _ _ _"]], held: Float[Tensor, "B S S"] | None
) -> Float[Tensor, "B T S"]:
    """D of the decoder's last tokens; a bridge that takes means of tokens takes them of what they hold."""
    cross = next((pattern for site, pattern in looking.items() if site.kind == "cross"), None)
    if cross is None:
        raise LabError("the decoder has no cross attention left, so its tokens hold nothing of the source")
    joined = model.joined_keys()
    if held is None:
        if joined is not None:
            raise LabError("the encoder has no attention left, so what its bridge joins is not known")
        held = torch.eye(cross.shape[-1], dtype=cross.dtype, device=cross.device).expand(len(cross), -1, -1)
    memory = held if joined is None else joined(held)
    decoded = cross.new_zeros(len(cross), cross.shape[2], memory.shape[-1])
    for site, pattern in looking.items():
        skip, source = _residual(model, site.path), memory if site.kind == "cross" else decoded
        decoded = skip * decoded + (1 - skip) * (pattern.mean(dim=1) @ source)
    return decoded


def _stacked(
    model: Model, path: str, pattern: Float[Tensor, "B H T S"], held: Float[Tensor, "B T S"] | None
) -> Float[Tensor, "B T S"]:
    """(r I + (1 - r) A) times what tokens hold, with r the share of the residual connection."""
    mean, skip = pattern.mean(dim=1), _residual(model, path)
    if mean.shape[1] != mean.shape[2] or (held is not None and held.shape[1] != mean.shape[2]):
        raise LabError(
            f"the pattern of {path} goes from {mean.shape[1]} to {mean.shape[2]} tokens; only attentions "
            "between the same tokens can be rolled out"
        )
    own = torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    start = own.expand_as(mean) if held is None else held
    return skip * start + (1 - skip) * (mean @ start)


def _residual(model: Model, path: str) -> float:
    """The share of the residual connection around an attention: half, or none where there is no sum."""
    holder, _, name = path.rpartition(".")
    block = model.get_submodule(holder)
    return 0.0 if isinstance(getattr(block, f"{name}_residual", None), NoSum) else HALF
