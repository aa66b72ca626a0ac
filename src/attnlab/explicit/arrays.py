"""The parameters of patch attention and the arrays a network works in, by name, and their sizes.

T tokens, P pixels of a patch, D width, F hidden width, C classes, W workers (threads). Weights are stored
(out, in), as in torch. A trailing ``p`` marks a length padded by zeros to whole vectors (see ``products``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import DTypeLike

from attnlab.errors import LabError, brief
from attnlab.explicit.compiling import Array
from attnlab.explicit.products import VECTOR, padded


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
    "positions": "embed.positions",
    **{
        f"{field}_{kind}": f"{path}.{kind}"
        for field, path in {
            "embed": "embed.linear",
            "query": "encoder.0.self.query",
            "key": "encoder.0.self.key",
            "value": "encoder.0.self.value",
            "expand": "encoder.0.feed.up",
            "contract": "encoder.0.feed.down",
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
    def lengths(self) -> dict[str, int]:
        """By the letters that stand for them in shapes."""
        return {"T": self.tokens, "P": self.pixels, "D": self.width, "F": self.hidden, "C": self.classes}

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
                f"parameter {brief(missing[0])} is missing; explicit patch attention needs all its "
                "parameters"
            )
        arrays = Parameters(**{field: arrays[NAMES[field]] for field in Parameters._fields})
    tokens, (hidden, width) = len(arrays.positions), arrays.expand_weight.shape
    sizes = Sizes(tokens, arrays.embed_weight.shape[1], width, hidden, len(arrays.readout_weight))
    dtype = arrays.positions.dtype
    if dtype not in (np.float32, np.float64):
        raise LabError(f"parameters are {dtype}; explicit patch attention takes float32 or float64")
    for field, shape in _shapes(Parameters, sizes.lengths).items():
        array = getattr(arrays, field)
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise LabError(
                f"parameter {brief(NAMES[field])} is {array.dtype} {array.shape}; "
                f"with the others it must be contiguous {dtype} {shape}"
            )
    if sizes.patch**2 != sizes.pixels or math.isqrt(sizes.tokens) ** 2 != sizes.tokens:
        raise LabError(
            f"{sizes.tokens} tokens of {sizes.pixels} pixels make no square image of square patches"
        )
    return arrays, sizes


def _shapes(kind: type, lengths: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shapes that the types of a named tuple's fields say."""
    hints: dict[str, Any] = kind.__annotations__
    return {
        field: tuple(lengths[letter] for letter in hint.dim_str.split()) for field, hint in hints.items()
    }


class Merged(NamedTuple):
    """Working copies of the parameters: products of neighbours (see ``circuits``), transposed, padded."""

    embed_t: Float[Array, "P Dp"]
    table: Float[Array, "T Dp"]  # positions + bias
    look: Float[Array, "D Dp"]
    look_t: Float[Array, "D Dp"]
    look_bias: Float[Array, "Dp"]
    feed: Float[Array, "F Dp"]
    feed_t: Float[Array, "D Fp"]
    feed_bias: Float[Array, "Fp"]
    read: Float[Array, "C Fp"]
    read_bias: Float[Array, "C"]
    query: Float[Array, "D Dp"]
    query_t: Float[Array, "D Dp"]
    value: Float[Array, "D Dp"]
    value_t: Float[Array, "D Dp"]
    contract: Float[Array, "D Fp"]
    contract_t: Float[Array, "F Dp"]


class Space(NamedTuple):
    """What one worker keeps of the image it is working on: values forward, gradients backward."""

    patches: Float[Array, "W T Pp"]
    tokens: Float[Array, "W T Dp"]
    looks: Float[Array, "W T Dp"]
    looks_t: Float[Array, "W D Tp"]
    pattern_t: Float[Array, "W T Tp"]
    mixed: Float[Array, "W T Dp"]
    hidden: Float[Array, "W T Fp"]
    mean: Float[Array, "W Fp"]
    logits: Float[Array, "W C"]
    d_mean: Float[Array, "W Fp"]
    d_mixed: Float[Array, "W T Dp"]
    d_mixed_t: Float[Array, "W D Tp"]
    d_pattern_t: Float[Array, "W T Tp"]
    d_looks: Float[Array, "W T Dp"]
    d_tokens: Float[Array, "W T Dp"]
    top: Float[Array, "W Tp"]
    total: Float[Array, "W Tp"]


class Sums(NamedTuple):
    """What one worker has summed over its images: gradients of ``Merged``, the loss, right answers."""

    embed: Float[Array, "W D Pp"]
    positions: Float[Array, "W T Dp"]
    look: Float[Array, "W D Dp"]
    look_bias: Float[Array, "W Dp"]
    feed: Float[Array, "W F Dp"]
    feed_bias: Float[Array, "W Fp"]
    read: Float[Array, "W C Fp"]
    read_bias: Float[Array, "W C"]
    loss: Float[Array, "W"]
    right: Int[Array, "W"]


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Like numpy's, but from the edge of a cache line on, so that no vector of an even row spans two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + VECTOR, np.uint8)
    start = -raw.ctypes.data % VECTOR
    return raw[start : start + size].view(dtype).reshape(shape)


def make_arrays(sizes: Sizes, dtype: Any, workers: int) -> tuple[Merged, Space, Sums, Gradients]:
    """Everything a network needs beside its parameters, made once."""
    itemsize = np.dtype(dtype).itemsize
    wide = {f"{letter}p": padded(length, itemsize) for letter, length in sizes.lengths.items()}
    lengths = {**sizes.lengths, **wide, "W": workers}

    def make(kind: type) -> Any:
        return kind(**{field: zeros(shape, dtype) for field, shape in _shapes(kind, lengths).items()})

    sums = make(Sums)._replace(loss=zeros((workers,), np.float64), right=zeros((workers,), np.int64))
    own = {
        field: zeros((*shape[:-1], padded(shape[-1], itemsize)) if len(shape) > 1 else shape, dtype)
        for field, shape in _shapes(Parameters, sizes.lengths).items()
    }
    own["key_weight"] = own["key_weight"].T  # as it comes out of ``circuits``
    shared = {
        "embed_weight": sums.embed[0],
        "positions": sums.positions[0],
        "expand_bias": sums.feed_bias[0],
        "readout_bias": sums.read_bias[0],
    }
    return make(Merged), make(Space), sums, Gradients(**{**own, **shared})
