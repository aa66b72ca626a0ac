"""Sets of keys: for each query the keys whose weight a metric sums.

A set is a mask (T, S), the same for all examples, or (N, T, S). In a sum every token belongs to a column:
a digit of an operand to its own, a row of the decoder to the column whose digit is asked for there, a
token that the decoder was fed to the column whose digit it is. The start token, the end and the ``+``
belong to none. With c(t) the column of query t and c(s) that of key s:

    diagonal     s = t, in self attention
    previous     s = t - 1, in self attention
    column       c(s) = c(t): the digits of the row's column
    partner      c(s) = c(t) and s is not t: in the encoder, the other operand's digit
    carry        c(s) decides whether a carry arrives at c(t) (``Addition.deciding``)
    carry_in     the same, only rows at whose column a carry arrives
    no_carry_in  the same, only rows at whose column none arrives
    operator     s is the ``+``

In a list of numbers x:

    next         s = t + 1
    wrong_side   s > t and x_s < x_t, or s < t and x_s > x_t: keys that show the list to be unsorted

In a grid of digits every patch is in a cell, and so is every digit that is asked for:

    cell         s is in the cell of t
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.spec import NUMBERS
from attnlab.tasks import Addition

Sets = Mapping[str, Bool[Tensor, "*N T S"]]
"""Masks by the name of their metric."""

KeySets = Mapping[tuple[str, str], Sets]
"""Sets by the stack and kind of an attention: ``("decoder", "cross")``."""

NO_COLUMN = -1


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


def sorting_sets(tokens: Int[Tensor, "N T"]) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for a model that reads lists, as tokens with whatever stands in front of the numbers."""
    numbers = tokens < NUMBERS
    places = torch.arange(tokens.shape[1])
    after = places > places[:, None]  # (T, S)
    smaller, larger = (compare(tokens[:, None], tokens[..., None]) for compare in (torch.lt, torch.gt))
    return {
        ("encoder", "self"): {
            "next": places - places[:, None] == 1,
            "wrong_side": torch.where(after, smaller, larger) & numbers[:, None] & numbers[..., None],
        }
    }


def grid_sets(
    rows: int, columns: int, side: int, *, pooled: bool
) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for a model that reads grids, with ``side`` patches along a cell; ``pooled``: a key a cell."""
    cells = torch.arange(rows * columns).view(rows, columns)
    patches = cells.repeat_interleave(side, dim=0).repeat_interleave(side, dim=1).flatten()
    asked, keys = cells.flatten(), cells.flatten() if pooled else patches
    return {
        ("encoder", "self"): {"cell": patches[:, None] == patches},
        ("decoder", "cross"): {"cell": asked[:, None] == keys},
    }


def addition_sets(task: Addition, pairs: Int[Tensor, "N 2"]) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for every kind of attention of a model that adds ``pairs``."""
    source, asked = task.source_columns(), task.target_columns()
    fed = torch.cat((torch.tensor([NO_COLUMN]), asked[:-1]))
    encoder = _columns(task, pairs, source, source)
    others = ~torch.eye(len(source), dtype=torch.bool)

    def plus(rows: Tensor) -> Tensor:
        return (source == NO_COLUMN).expand(len(rows), -1)

    return {
        ("encoder", "self"): {
            **encoder,
            "partner": encoder["column"] & others,
            "operator": plus(source),
        },
        ("decoder", "self"): _columns(task, pairs, asked, fed),
        ("decoder", "cross"): {**_columns(task, pairs, asked, source), "operator": plus(asked)},
    }


def _columns(
    task: Addition, pairs: Int[Tensor, "N 2"], rows: Int[Tensor, "T"], keys: Int[Tensor, "S"]
) -> dict[str, Tensor]:
    deciding = F.pad(task.deciding(pairs), (0, 2, 0, 1))  # the last column and row stand for NO_COLUMN
    carry = deciding[:, rows[:, None], keys]  # (N, T, S)
    arrives = F.pad(task.arrivals(pairs), (0, 1))[:, rows, None]  # (N, T, 1)
    return {
        "column": (rows[:, None] == keys) & (rows != NO_COLUMN)[:, None],
        "carry": carry,
        "carry_in": carry & arrives,
        "no_carry_in": carry & ~arrives,
    }
