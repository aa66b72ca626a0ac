"""Taking heads out of a model for good.

A head's share of an attention's output is z_h W_h, where W_h are the rows of the output projection that
belong to it. If z_h is replaced by a constant c_h, that share becomes c_h W_h, the same for all tokens, and
can be added to the output's bias; the head's queries, keys, values and W_h are then not needed:

    out = sum over kept heads of z_h W_h + (b_o + sum over removed heads of c_h W_h)

An attention that loses all its heads leaves nothing but this bias. One that had no output projection gets
the identity for one, without the rows of the removed heads.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.attention import Attention
from attnlab.errors import LabError, brief
from attnlab.model import Model, heads
from attnlab.notation import Head
from attnlab.specs import BlocksModelSpec, ModelSpec, PatchAttentionModel
from attnlab.specs.positions import differs_by_head

Constants = Mapping[str, Float[Tensor, "H K"]]
"""What takes the place of each head's z, by the attention's path."""


def remove_heads(
    spec: ModelSpec, model: Model, removed: Collection[Head], constants: Constants
) -> tuple[ModelSpec, dict[str, Tensor]]:
    """Spec and weights of ``model``, built from ``spec``, without the heads ``removed``."""
    if not isinstance(spec, BlocksModelSpec | PatchAttentionModel):
        raise LabError(f"a model of kind {brief(spec.kind)} has no heads to remove")
    unknown = set(removed) - set(heads(model))
    if unknown:
        raise LabError(f"the model has no head {min(unknown)}")
    weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
    for path, attention in own_attentions(model).items():
        gone = sorted(head.index for head in removed if head.attention == path)
        _remove(weights, path, attention, gone, constants[path])
    counts = _counts(spec, model, removed)
    if isinstance(spec, PatchAttentionModel):
        return replace(spec, head_counts=counts, projection=True), weights
    return replace(spec, head_counts=counts, head_indices=_indices(spec, model, removed)), weights


def own_attentions(model: Model) -> dict[str, Attention]:
    """The attentions of a model that is built here, with their weights."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Attention)}


def _counts(
    spec: BlocksModelSpec | PatchAttentionModel, model: Model, removed: Collection[Head]
) -> tuple[int, ...]:
    """Heads left, also of attentions that were without heads before."""
    left = iter(
        attention.heads - sum(head.attention == path for head in removed)
        for path, attention in own_attentions(model).items()
    )
    before = spec.head_counts or (spec.heads,) * spec.attentions
    return tuple(next(left) if count else 0 for count in before)


def _indices(spec: BlocksModelSpec, model: Model, removed: Collection[Head]) -> tuple[int, ...]:
    """Which heads are left, by the numbers that positions know them by; none if positions do not ask."""
    if not differs_by_head(spec.positions):
        return ()
    return tuple(
        head.index if own is None else own[head.index]
        for head in heads(model)
        if head not in removed
        for own in [own_attentions(model)[head.attention].own]
    )


def _remove(
    weights: dict[str, Tensor],
    path: str,
    attention: Attention,
    gone: list[int],
    constant: Float[Tensor, "H K"],
) -> None:
    """Replace the weights of one attention by those of what is left of it."""
    kept = [index for index in range(attention.heads) if index not in gone]
    own, cut = (_rows(each, attention.head_width, constant.device) for each in (kept, gone))
    for part in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            weights[f"{path}.{part}.{kind}"] = weights[f"{path}.{part}.{kind}"][own]
    width = attention.query.in_features
    like: Any = {"dtype": constant.dtype, "device": constant.device}
    output = weights.pop(f"{path}.output.weight", torch.eye(width, **like))
    bias = weights.pop(f"{path}.output.bias", torch.zeros(width, **like))
    bias = bias + output[:, cut] @ constant[gone].flatten()
    if kept:
        weights[f"{path}.output.weight"], weights[f"{path}.output.bias"] = output[:, own], bias
        return
    for part in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            del weights[f"{path}.{part}.{kind}"]
    weights[f"{path}.bias"] = bias


def _rows(indices: list[int], head_width: int, device: torch.device) -> Tensor:
    """Rows of a matrix that belong to the heads."""
    first = torch.tensor(indices, dtype=torch.long, device=device)[:, None] * head_width
    return (first + torch.arange(head_width, device=device)).flatten()
