"""What names stand for in sums, and how long they may be; nothing here needs torch."""

from typing import Literal

Carrying = Literal["uniform", "full-carry"]
CARRYING: tuple[Carrying, ...] = ("uniform", "full-carry")
"""Which sums of one length are measured: every digit uniform, or a carry sent by every column."""

LONGEST = 200
"""Digits of an operand."""
COUNTED = 12
"""Digits up to which pairs are told apart as numbers and drawn once; longer operands are drawn by digit."""
