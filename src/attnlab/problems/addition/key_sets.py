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

from attnlab.problems.addition.operands import Digits, Operands, by_digit
from attnlab.problems.addition.task import Addition

NO_COLUMN = -1


def addition_sets(
    task: Addition, operands: Operands, lengths: Int[Tensor, "N"] | None = None
) -> dict[tuple[str, str], dict[str, Tensor]]:
    """Sets for every kind of attention of a model that adds ``operands`` of so many places."""
    operands = by_digit(operands, task.digits)
    count, _, most = operands.shape
    n, place = task.written_places(operands, lengths)[:, None], torch.arange(2 * most + 1)
    inside = torch.where(place > n, place - n - 1, place)
    source = _columns(inside, n, task.order).where((place != n) & (place < 2 * n + 1), NO_COLUMN)
    place = torch.arange(most + 2).expand(count, -1)
    asked = _columns(place, n + 1, task.order).where(place < n + 1, NO_COLUMN)
    fed = F.pad(asked[:, :-1], (1, 0), value=NO_COLUMN)
    decide = _Deciding(task, operands)
    encoder = decide.sets(source, source)
    others = ~torch.eye(source.shape[1], dtype=torch.bool)

    def plus(rows: Tensor) -> Tensor:
        spot = torch.arange(source.shape[1]) == n
        return spot[:, None].expand(-1, rows.shape[1], -1)

    return {
        ("encoder", "self"): {
            **encoder,
            "partner": encoder["column"] & others,
            "operator": plus(source),
        },
        ("decoder", "self"): decide.sets(asked, fed),
        ("decoder", "cross"): {**decide.sets(asked, source), "operator": plus(asked)},
    }


def _columns(place: Tensor, count: Tensor, order: str) -> Tensor:
    """The column of each place of a number that is written with ``count`` digits."""
    return place if order == "least" else count - 1 - place


class _Deciding:
    """Which columns decide whether a carry arrives, of rows and keys that stand in columns."""

    def __init__(self, task: Addition, operands: Digits) -> None:
        # the last column and row stand for NO_COLUMN
        self._deciding = F.pad(task.deciding(operands), (0, 2, 0, 1))
        self._arrivals = F.pad(task.arrivals(operands), (0, 1))

    def sets(self, rows: Int[Tensor, "N T"], keys: Int[Tensor, "N S"]) -> dict[str, Tensor]:
        number = torch.arange(len(rows))[:, None]
        carry = self._deciding[number[..., None], rows[:, :, None], keys[:, None]]  # (N, T, S)
        arrives = self._arrivals[number, rows][..., None]  # (N, T, 1)
        return {
            "column": (rows[:, :, None] == keys[:, None]) & (rows != NO_COLUMN)[..., None],
            "carry": carry,
            "carry_in": carry & arrives,
            "no_carry_in": carry & ~arrives,
        }
