"""Sets of keys: for each query the keys whose weight a metric sums.

A set is a mask (T, S), the same for all examples, or (N, T, S). Tasks name those that mean something to
them (``Task.key_sets``); two are there in every self attention:

    diagonal     s = t
    previous     s = t - 1
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool
from torch import Tensor

Sets = Mapping[str, Bool[Tensor, "*N T S"]]
"""Masks by the name of their metric."""

KeySets = Mapping[tuple[str, str], Sets]
"""Sets by the stack and kind of an attention: ``("decoder", "cross")``."""


def kind_of(path: str) -> tuple[str, str]:
    """``("decoder", "cross")`` of ``decoder.1.cross``."""
    return path.partition(".")[0], path.rpartition(".")[2]


def neighbours(path: str, queries: int, keys: int) -> dict[str, Bool[Tensor, "T S"]]:
    """Own and previous token, where queries and keys are the same tokens.

    An attention is taken for self attention if it has as many keys as queries and is not called cross.
    """
    if queries != keys or kind_of(path)[1] == "cross":
        return {}
    back = torch.arange(queries)[:, None] - torch.arange(keys)
    return {"diagonal": back == 0, "previous": back == 1}
