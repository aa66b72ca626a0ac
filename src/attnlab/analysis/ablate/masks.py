"""Taking heads out at z, before they mix.

A mask m in [0, 1] for each head moves its z towards a baseline b:

    z <- m z + (1 - m) b

A mask of 1 changes nothing, not even the last bit; a mask of 0 puts the baseline in the head's place, and
gates between the two can be learned (Michel, Levy and Neubig, 2019; Voita et al., 2019).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.ablate.baselines import Baseline
from attnlab.errors import LabError, nearest
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.taps import Edit, edit

Mask = Mapping[str, Float[Tensor, "*B H"]]
"""For each attention by its path a number for each head, the same for all examples or one for each."""


def head_names(model: Model) -> list[str]:
    """Every head of ``model`` as path.index, also of a model whose paths are its own."""
    return [f"{path}.{index}" for path, each in attentions(model).items() for index in range(each.heads)]


def check_heads(model: Model, heads: Iterable[str]) -> None:
    """Refuse a name that is no head of ``model``."""
    known = head_names(model)
    for head in heads:
        if head not in known:
            raise LabError(f"the model has no head {head!r}{nearest(head, known)}")


def mask_without(model: Model, removed: Iterable[str]) -> dict[str, Tensor]:
    """The mask that is 0 for the heads ``removed`` and 1 for all others."""
    gone = set(removed)
    check_heads(model, gone)
    return {
        path: torch.tensor([float(f"{path}.{index}" not in gone) for index in range(each.heads)])
        for path, each in attentions(model).items()
    }


@contextmanager
def masked(model: Model, mask: Mask, baseline: Baseline) -> Iterator[None]:
    """Move every z towards ``baseline`` as ``mask`` says; attentions that it does not name stay whole.

    Gradients flow into the mask and into the baseline. The baseline must have a value for every place of
    z or one for all of them; for decoding token by token only the latter fits.
    """
    with edit(model, {f"{path}.z": change for path, change in _changes(model, mask, baseline).items()}):
        yield


def _changes(model: Model, mask: Mask, baseline: Baseline) -> dict[str, Edit]:
    known = attentions(model)
    changes = {}
    for path, kept in mask.items():
        if path not in known:
            raise LabError(f"the model has no attention {path!r}{nearest(path, known)}")
        if kept.shape[-1] != known[path].heads:
            count = known[path].heads
            raise LabError(f"the mask of {path} has {kept.shape[-1]} values for {count} heads")
        if kept.requires_grad or not bool((kept == 1).all()):
            if bool(((kept < 0) | (kept > 1)).any()):
                raise LabError(f"the mask of {path} is {kept.tolist()}, but it must lie between 0 and 1")
            if path not in baseline.values:
                raise LabError(f"the baseline {baseline.name} has no value for {path}")
            changes[path] = _towards(path, baseline, kept)
    return changes


def _towards(path: str, baseline: Baseline, kept: Float[Tensor, "*B H"]) -> Edit:
    value, weight = baseline.values[path], kept[..., None, None]

    def move(z: Tensor) -> Tensor:
        if not all(have in (1, want) for have, want in zip(value.shape, z.shape, strict=True)):
            raise LabError(
                f"the baseline {baseline.name} of {path} has the shape {tuple(value.shape)}, "
                f"which does not fit z of shape {tuple(z.shape)}"
            )
        return torch.lerp(value.to(z.dtype), z, weight.to(z.dtype))  # exact at 0 and at 1

    return move
