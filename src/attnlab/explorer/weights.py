"""Weights as text, for a page in which the model itself runs.

A row w of a matrix (its first axis; a vector is one row) becomes signed integers of b bits and one scale s:

    s = max |w| / (2^(b-1) - 1)        i = round(w / s)        w ~ i s,  |w - i s| <= s / 2

The blob is all scales, float32 in little-endian order, then all integers i + 2^(b-1), b bits each, the
lowest bit first, without gaps; base64 makes text of it. ``js/packed.js`` reads it: an integer of up
to 24 bits times a scale is exact in float64, so both sides round to the same float32.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

BITS = (16, 18, 20, 24)
"""What a weight may take, the fewest first."""


@dataclass(frozen=True)
class PackedWeights:
    """Tensors by name as (name, shape) in the order in which ``text`` holds them."""

    bits: int
    tensors: list[tuple[str, tuple[int, ...]]]
    text: str

    def to_json(self) -> dict[str, Any]:
        """What ``unpackWeights`` takes."""
        shapes = [[name, [*shape]] for name, shape in self.tensors]
        return {"bits": self.bits, "tensors": shapes, "text": self.text}


def pack(tensors: Mapping[str, Tensor], bits: int) -> PackedWeights:
    """Tensors of float32 as text, ``bits`` a number."""
    scales, integers = list[np.ndarray](), list[np.ndarray]()
    for tensor in tensors.values():
        rows, largest = _rows(tensor), 2 ** (bits - 1) - 1
        scale = (np.abs(rows).max(axis=1, initial=0) / largest).astype(np.float32)
        scale[scale == 0] = 1  # a row of zeros, or of numbers too small for a scale
        scales.append(scale)
        integers.append(np.rint(rows / scale[:, None]).clip(-largest, largest).astype(np.int64).ravel())
    blob = _joined(scales, np.float32).astype("<f4").tobytes() + _bits(_joined(integers, np.int64), bits)
    known = [(name, tuple(tensor.shape)) for name, tensor in tensors.items()]
    return PackedWeights(bits, known, base64.b64encode(blob).decode("ascii"))


def unpack(packed: PackedWeights) -> dict[str, Tensor]:
    """The tensors, as the page reads them."""
    blob = base64.b64decode(packed.text)
    rows = [_row_count(shape) for _, shape in packed.tensors]
    scales = np.frombuffer(blob, "<f4", count=sum(rows)).astype(np.float64)
    sizes = [int(np.prod(shape, dtype=np.int64)) for _, shape in packed.tensors]
    integers = _integers(np.frombuffer(blob, np.uint8, offset=4 * sum(rows)), sum(sizes), packed.bits)
    found, row, at = dict[str, Tensor](), 0, 0
    for (name, shape), count, size in zip(packed.tensors, rows, sizes, strict=True):
        part = (
            integers[at : at + size].reshape(count, size // max(1, count)) * scales[row : row + count, None]
        )
        found[name] = torch.from_numpy(part.astype(np.float32)).reshape(shape)
        row, at = row + count, at + size
    return found


def rounded(tensors: Mapping[str, Tensor], bits: int) -> dict[str, Tensor]:
    """The tensors as they come back from text."""
    return unpack(pack(tensors, bits))


def _rows(tensor: Tensor) -> np.ndarray:
    """Rows of a matrix, or of anything flattened behind its first axis; one of a vector."""
    plain = tensor.detach().cpu().to(torch.float64).numpy()
    rows = _row_count(tensor.shape)
    return plain.reshape(rows, tensor.numel() // max(1, rows))


def _row_count(shape: tuple[int, ...]) -> int:
    return shape[0] if len(shape) > 1 else 1


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate([np.zeros(0, kind), *parts])


def _bits(integers: Int64[np.ndarray, "N"], bits: int) -> bytes:
    shifted = (integers + 2 ** (bits - 1)).astype("<u4")
    each = np.unpackbits(shifted.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return np.packbits(each[:, :bits].ravel(), bitorder="little").tobytes()


def _integers(packed: UInt8[np.ndarray, "M"], count: int, bits: int) -> Int64[np.ndarray, "N"]:
    each = np.unpackbits(packed, count=count * bits, bitorder="little").reshape(count, bits)
    filled = np.pad(each, ((0, 0), (0, 32 - bits)))
    shifted = np.packbits(filled, axis=1, bitorder="little").view("<u4").ravel()
    return shifted.astype(np.int64) - 2 ** (bits - 1)
