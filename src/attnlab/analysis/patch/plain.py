"""Patching between inputs of a model without a task: tensors, whose answers are numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from attnlab.analysis.patch.contrasts import (
    MOST,
    Names,
    PatchResult,
    choose_pairs,
    measure_contrasts,
    tap_side,
)
from attnlab.analysis.patch.grids import Labels
from attnlab.analysis.record import patch_names
from attnlab.analysis.subjects import require_attention
from attnlab.devices import to_device_of
from attnlab.errors import InputError
from attnlab.model import Model
from attnlab.progress import Stages, silent
from attnlab.sets import Examples, Pairs

SITES = 5000
"""Single positions of single heads that are tried at most; where there are more, none are."""


@final
@dataclass(frozen=True)
class PlainNames(Names):
    """Positions go by their numbers, patches by row and column, examples by their targets."""

    model: Model

    def labels(self, pairs: Pairs) -> Labels:
        source, patch = pairs.base.inputs[self.model.source[0]], self.model.patch_size
        own = [str(number + 1) for number in range(source.shape[1])]
        if patch is not None:
            high, wide = source.shape[-2:]
            own = patch_names((high, wide), (high // patch) * (wide // patch))
        names = list(pairs.labels) or own

        def labels(tap: str, length: int) -> list[str]:
            if tap_side(self.model, tap) == "answer":
                return [str(number + 1) for number in range(length)]
            return ["cls"] * (length - len(names)) + names[:length]

        return labels

    def example(self, examples: Examples) -> str:
        return " ".join(map(str, examples.targets[0].reshape(-1).tolist()))


@torch.no_grad()
def answered(model: Model, inputs: tuple[Tensor, ...]) -> Examples:
    """``inputs`` with what the model answers to them."""
    return Examples(inputs, model(*to_device_of(model, *inputs)).argmax(dim=-1).cpu())


def pair_up(base: Examples, donor: Examples) -> Pairs:
    """``base`` and ``donor`` row by row; they must have different answers somewhere."""
    shapes = [[tuple(part.shape) for part in side.inputs] for side in (base, donor)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"base has inputs of the shape {shapes[0]}, donor of {shapes[1]}; their values trade places, "
            "so both need the same shape"
        )
    if torch.equal(base.targets, donor.targets):
        raise InputError(
            "base and donor have the same answers, so there is nothing to compare; take inputs with "
            "different answers, or name them by examples(inputs, labels)"
        )
    return Pairs(base, donor, "the donor")


def patch_plain(
    model: Model, contrasts: Sequence[Pairs], *, pairs: int, stages: Stages = lambda _: silent
) -> PatchResult:
    """Patch between pairs of each contrast."""
    if not 1 <= pairs <= MOST:
        raise InputError(f"pairs is {pairs}; it must be from 1 to {MOST:,}")
    require_attention(model)
    chosen = [choose_pairs(model, each, pairs, few=True) for each in contrasts]
    columns, carriers = measure_contrasts(model, chosen, PlainNames(model), most=SITES, stages=stages)
    return PatchResult(run=model.called, columns=columns, carriers=carriers)
