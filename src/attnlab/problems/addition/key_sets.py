"""Sets of keys that mean something in a sum.

Every token belongs to a column: a digit of an operand to its own, a row of the decoder to the column whose
digit is asked for there, a token that the decoder was fed to the column whose digit it is. The start token,
the end and the ``+`` belong to none. With c(t) the column of query t and c(s) that of key s:

    column       c(s) = c(t): the digits of the row's column
    partner      c(s) = c(t) and s is not t: in the encoder, the other operand's digit
    carry        c(s) decides whether a carry arrives at c(t) (``Addition.deciding``)
    carry_in     the same, only rows at whose column a carry arrives
    no_carry_in  the same, only rows at whose column none arrives
    operator     s is the ``+``
"""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from attnlab.problems.addition.task import Addition

NO_COLUMN = -1


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
