"""The parameters of patch attention as arrays, and the sizes they agree on.

T tokens, P pixels of a patch, D width, F hidden width, C classes. Weights are stored (out, in), as in
torch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab.errors import LabError
from attnlab.explicit.compiling import Array


class Parameters(NamedTuple):
    """What is trained."""

    embed_weight: Float[Array, "D P"]
    embed_bias: Float[Array, "D"]
    positions: Float[Array, "T D"]
    query_weight: Float[Array, "D D"]
    query_bias: Float[Array, "D"]
    key_weight: Float[Array, "D D"]
    key_bias: Float[Array, "D"]
    value_weight: Float[Array, "D D"]
    value_bias: Float[Array, "D"]
    expand_weight: Float[Array, "F D"]
    expand_bias: Float[Array, "F"]
    contract_weight: Float[Array, "D F"]
    contract_bias: Float[Array, "D"]
    readout_weight: Float[Array, "C D"]
    readout_bias: Float[Array, "C"]


class Gradients(Parameters):
    """The derivative of the loss by each of the ``Parameters``."""


NAMES = {  # of the torch module's parameters, by field
    "positions": "positions",
    **{
        f"{field}_{kind}": f"{path}.{kind}"
        for field, path in {
            "embed": "embed",
            "query": "attention.query",
            "key": "attention.key",
            "value": "attention.value",
            "expand": "feed.expand",
            "contract": "feed.contract",
            "readout": "readout",
        }.items()
        for kind in ("weight", "bias")
    },
}


@dataclass(frozen=True)
class Sizes:
    """The lengths that all shapes are made of."""

    tokens: int
    pixels: int
    width: int
    hidden: int
    classes: int

    @property
    def patch(self) -> int:
        return math.isqrt(self.pixels)

    @property
    def side(self) -> int:
        """Pixels along an edge of the image."""
        return self.patch * math.isqrt(self.tokens)


def read_parameters(arrays: Mapping[str, Array] | Parameters) -> tuple[Parameters, Sizes]:
    """The arrays of a torch module by field, checked: the kernels trust their shapes."""
    if not isinstance(arrays, Parameters):
        missing = sorted(set(NAMES.values()) - arrays.keys())
        if missing:
            raise LabError(
                f"parameter {missing[0]!r} is missing; explicit patch attention needs all its parameters"
            )
        arrays = Parameters(**{field: arrays[NAMES[field]] for field in Parameters._fields})
    tokens, (hidden, width) = len(arrays.positions), arrays.expand_weight.shape
    sizes = Sizes(tokens, arrays.embed_weight.shape[1], width, hidden, len(arrays.readout_weight))
    dtype = arrays.positions.dtype
    if dtype not in (np.float32, np.float64):
        raise LabError(f"parameters are {dtype}; explicit patch attention takes float32 or float64")
    for field, shape in _shapes(sizes).items():
        array = getattr(arrays, field)
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise LabError(
                f"parameter {NAMES[field]!r} is {array.dtype} {array.shape}; "
                f"with the others it must be contiguous {dtype} {shape}"
            )
    if sizes.patch**2 != sizes.pixels or math.isqrt(sizes.tokens) ** 2 != sizes.tokens:
        raise LabError(
            f"{sizes.tokens} tokens of {sizes.pixels} pixels make no square image of square patches"
        )
    return arrays, sizes


def _shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    t, p, d, f, c = sizes.tokens, sizes.pixels, sizes.width, sizes.hidden, sizes.classes
    weights = {"embed": (d, p), "query": (d, d), "key": (d, d), "value": (d, d)}
    weights |= {"expand": (f, d), "contract": (d, f), "readout": (c, d)}
    biases = {f"{name}_bias": shape[:1] for name, shape in weights.items()}
    return {"positions": (t, d), **{f"{name}_weight": shape for name, shape in weights.items()}, **biases}
