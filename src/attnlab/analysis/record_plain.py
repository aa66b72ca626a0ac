"""What happens inside a model without a task: the value at every tap, with names for its rows.

Patches of an image go by row and column, tokens by their numbers, and tokens that are vectors already by
their places, counted from 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.analysis.record import Labels, Recording, fronted, patch_names
from attnlab.devices import to_device_of
from attnlab.errors import InputError
from attnlab.model import Model, Side
from attnlab.taps import record


@torch.no_grad()
def record_plain(
    model: Model, inputs: tuple[Tensor, ...], *taps: str, labels: Sequence[str] | None = None
) -> Recording:
    """Record the taps that match while ``model`` computes, by default all of them.

    ``labels`` are what the tokens of the input are called, if there is only one input. An answer is the
    number of the largest output, one for each token where the model gives such.
    """
    count = len(inputs[0]) if inputs else 0
    if count == 0:
        raise InputError("there is nothing to record; give at least one input")
    if labels is not None and count > 1:
        raise InputError(f"there are labels for {count} inputs; give labels with a single input")
    inputs = tuple(to_device_of(model, *inputs))
    with record(model, *(taps or ("*",))) as seen:
        said = model(*inputs).argmax(dim=-1).reshape(count, -1)
    names = [f"input {number}" for number in range(count)]
    signs = Labels(names, model, _Tokens(model, tuple(each.cpu() for each in inputs), labels))
    answers = [" ".join(map(str, row)) for row in said.tolist()]
    return Recording(names, answers, {name: signs.of(name, value.cpu()) for name, value in seen.items()})


@dataclass(frozen=True)
class _Tokens:
    """Signs of tokens, as far as the inputs are known to hold them."""

    model: Model
    inputs: tuple[Tensor, ...]
    labels: Sequence[str] | None

    def __call__(self, side: Side, count: int) -> list[list[str]]:
        number = self.model.input_of(side)
        given = None if number is None else self.inputs[number]
        if self.labels is not None and side == "input":
            if len(self.labels) != count:
                raise InputError(
                    f"there are {len(self.labels)} labels for {count} tokens; give one for each"
                )
            return [list(self.labels)]
        if given is not None and side == "input" and self.model.patch_size is not None:
            return [fronted(patch_names(given.shape[-2:], count), count)] * len(given)
        tokens = given is not None and given.dim() == 2 and not given.is_floating_point()
        if given is not None and tokens and given.shape[1] <= count:
            return [fronted([str(token) for token in row], count) for row in given.tolist()]
        return [[str(place + 1) for place in range(count)]] * len(self.inputs[0])
