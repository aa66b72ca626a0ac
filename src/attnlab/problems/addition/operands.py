"""Operands by their digits, (N, 2, C), the ones first: sums, carries and tokens of numbers of any length.

Numbers of so many digits do not fit into 64 bits, so all is done column by column. With s the sum of both
digits of a column, a column sends a carry if s and the carry that arrives make ten:

    carry_c = s_c + carry_(c-1) >= 10,    digit_c = (s_c + carry_(c-1)) mod 10
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

Digits = Int[Tensor, "N 2 C"]
Operands = Int[Tensor, "N 2"] | Digits
"""Numbers, or their digits with the ones first."""
_MIXED = 0x9E3779B97F4A7C15 - 2**64
"""An odd number without a pattern, of the golden ratio."""


def by_digit(operands: Operands, count: int) -> Digits:
    """Numbers as their last ``count`` digits; digits as they are."""
    return operands if operands.dim() == 3 else operands[..., None] // 10 ** torch.arange(count) % 10


def carries_of(operands: Digits) -> Bool[Tensor, "N C"]:
    """Whether each column sends a carry to the next."""
    carry, sent = torch.zeros(len(operands), dtype=torch.long), list[Tensor]()
    for column in operands.sum(dim=1).unbind(dim=1):
        carry = (column + carry >= 10).long()
        sent.append(carry)
    return torch.stack(sent, dim=1).bool()


def sum_of(operands: Digits) -> Int[Tensor, "N E"]:
    """The digits of the sum, one more than those of an operand."""
    arriving = F.pad(carries_of(operands), (1, 0)).long()
    return (F.pad(operands.sum(dim=1), (0, 1)) + arriving) % 10


def longest_runs(flags: Bool[Tensor, "N C"]) -> Int[Tensor, "N"]:
    """The length of the longest run of true ones."""
    longest = torch.zeros(len(flags), dtype=torch.long)
    run = torch.zeros_like(longest)
    for flag in flags.unbind(dim=1):
        run = (run + 1) * flag
        longest = torch.maximum(longest, run)
    return longest


def deciding(operands: Digits) -> Bool[Tensor, "N E C"]:
    """Whether the digits of column j decide if a carry arrives at column c: entry [n, c, j].

    Going down from column c - 1, a column that sums to nine passes on whatever arrives there, so
    the next one is asked too; the first that does not sum to nine settles it and is the last asked.
    """
    count, _, digits = operands.shape
    nine = operands.sum(dim=1) == 9  # (N, C)
    asked = torch.zeros(count, digits + 1, digits, dtype=torch.bool)
    for column in range(1, digits + 1):
        asked[:, column, column - 1] = True
        for below in range(column - 2, -1, -1):
            asked[:, column, below] = asked[:, column, below + 1] & nine[:, below + 1]
    return asked


def codes(operands: Digits) -> Int[Tensor, "N"]:
    """The same number for the same pair in either order, with or without leading zeros; others hardly ever
    share one.
    """
    generator = torch.Generator().manual_seed(0)
    weights = torch.randint(-(2**62), 2**62, (operands.shape[2],), generator=generator) * 2 + 1
    a, b = (operands * weights).sum(dim=2).unbind(dim=1)  # sums and products without regard to overflow
    return a * b + (a + b) * _MIXED


def in_order(digits: Int[Tensor, "N C"], lengths: Int[Tensor, "N"], order: str) -> Int[Tensor, "N C"]:
    """The first ``lengths`` columns of each row as they are written; behind them stands anything."""
    if order == "least":
        return digits
    places = torch.arange(digits.shape[1])
    return digits.gather(1, (lengths[:, None] - 1 - places).clamp(min=0))


def spelt(digits: list[int]) -> str:
    """A number, of its digits with the ones first."""
    return "".join(map(str, reversed(digits))).lstrip("0") or "0"
