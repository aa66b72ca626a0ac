"""The vocabulary that all rooms share: shapes and the names of heads.

Shapes: B batch, T query length, S key length, H heads, D width, K width of a head, V vocabulary.
Tensors: ``q k v`` (B, H, T, K), ``scores`` and ``pattern`` (B, H, T, S), ``z`` = one head's output
before the output projection (B, H, T, K), ``out`` (B, T, D).

A head is named ``stack.layer.kind.index``: ``encoder.1.self.3``, ``decoder.0.cross.2``. Without the
index the same name is the path of the attention module that holds the head.
"""

import re
from dataclasses import dataclass
from typing import Literal

from attnlab.errors import LabError, brief

Stack = Literal["encoder", "decoder"]
Kind = Literal["self", "cross"]

_HEAD = re.compile(r"(encoder|decoder)\.([0-9]{1,9})\.(self|cross)\.([0-9]{1,9})")


@dataclass(frozen=True, order=True)
class Head:
    """The address of one head."""

    stack: Stack
    layer: int
    kind: Kind
    index: int

    @property
    def attention(self) -> str:
        """Path of the attention module that holds this head."""
        return f"{self.stack}.{self.layer}.{self.kind}"

    def __str__(self) -> str:
        return f"{self.attention}.{self.index}"


def parse_head(name: str) -> Head:
    """Read ``encoder.1.self.3``."""
    match = _HEAD.fullmatch(name)
    if match is None:
        raise LabError(
            f"{brief(name)} is not the name of a head; the form is stack.layer.kind.index, as in "
            "encoder.1.self.3"
        )
    stack, layer, kind, index = match.groups()
    return Head(stack, int(layer), kind, int(index))  # type: ignore[arg-type]
