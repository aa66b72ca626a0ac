"""What takes the place of a head's z when the head is taken out.

    zero       0
    mean       the mean of z over training examples, for each place its own
    resample   z of another example at the same place (Chan et al., 2022: causal scrubbing)
    optimal    the constant, the same at all places, with the lowest loss (Li and Janson, 2024)

Zero is a value that the rest of the model may never have met, so it can cost more than the head was worth;
the mean keeps what is common to all examples; resampling keeps the distribution but brings in what is wrong
for this example; the optimal constant leaves only what the head does for one example and not for another.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.taps import record

BATCH = 500  # activations of so many examples still fit into the processor's cache


@dataclass(frozen=True)
class Baseline:
    """For each attention by its path a value (1 or N, H, 1 or T, K): for all examples or for each of N, and
    for all places or for each.
    """

    name: str
    values: dict[str, Float[Tensor, "_ _ _ _"]]

    def rows(self, part: slice) -> "Baseline":
        """The baseline of a part of the examples."""
        cut = {path: value if len(value) == 1 else value[part] for path, value in self.values.items()}
        return Baseline(self.name, cut)


def zero_baseline(model: Model) -> Baseline:
    """Nothing at all."""
    return Baseline(
        "zero",
        {
            path: each.query.weight.new_zeros(1, each.heads, 1, each.head_width).detach()
            for path, each in attentions(model).items()
        },
    )


def mean_baseline(model: Model, examples: Examples, *, by_place: bool = True) -> Baseline:
    """The mean of z over ``examples``, which should be training examples; of all places, if so asked.

    Padding does not count.
    """
    found = [_totals(model, part) for part in _parts(examples)]
    totals = {path: torch.stack([part[path] for part in found]).sum(dim=0) for path in found[0]}
    if not by_place:
        totals = {path: total.sum(dim=2, keepdim=True) for path, total in totals.items()}
    means = {path: total[..., :-1] / total[..., -1:].clamp(min=1) for path, total in totals.items()}
    return Baseline(
        "mean", {path: mean.to(attentions(model)[path].query.weight.dtype) for path, mean in means.items()}
    )


def _totals(model: Model, examples: Examples) -> dict[str, Float[Tensor, "1 H T E"]]:
    """Sums over examples of z and, in a last coordinate, of ones; padding does not count."""

    def total(path: str, z: Float[Tensor, "N H T K"]) -> Float[Tensor, "1 H T E"]:
        own, each = model.mask_at(path, *examples.inputs), F.pad(z.double(), (0, 1), value=1.0)
        return (each if own is None else each * own[:, None, :, None]).sum(dim=0, keepdim=True)

    return {path: total(path, z) for path, z in recorded_z(model, examples).items()}


def resample_baseline(model: Model, examples: Examples, *, seed: int = 0) -> Baseline:
    """For each of ``examples`` z of another one, given by ``others``; it fits these examples only.

    Where there is padding, the other one is as long.
    """
    found = [recorded_z(model, part) for part in _parts(examples)]
    own = model.input_mask(*examples.inputs)
    source = others(len(examples), seed, groups=None if own is None else own.sum(dim=1))
    return Baseline(
        "resample", {path: torch.cat([part[path] for part in found])[source] for path in found[0]}
    )


def others(count: int, seed: int, *, groups: Int[Tensor, "N"] | None = None) -> Int[Tensor, "N"]:
    """For each of ``count`` examples another one: the next in a circle whose order the seed gives.

    Each of the ``groups`` has a circle of its own; who is alone in it is its own other.
    """
    if count < 2:
        raise InputError(f"there is {count} example; to resample, there must be at least 2")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    names = torch.zeros(count, dtype=torch.long) if groups is None else groups
    following = torch.empty_like(order)
    for name in set(names.tolist()):
        circle = order[names[order] == name]
        following[circle] = circle.roll(-1)
    return following


@torch.no_grad()  # not inference mode: gates are learned with these values in the graph
def recorded_z(model: Model, examples: Examples) -> dict[str, Float[Tensor, "_ _ _ _"]]:
    """z (N, H, T, K) of every attention, in the order of computation."""
    with record(model, *(f"{path}.z" for path in attentions(model))) as seen:
        model(*examples.inputs)
    return {name.removesuffix(".z"): z for name, z in seen.items()}


def _parts(examples: Examples) -> Iterator[Examples]:
    if len(examples) == 0:
        raise InputError("there are no examples to look at; give at least 1")
    for start in range(0, len(examples), BATCH):
        yield examples[slice(start, start + BATCH)]
