"""What names stand for in sums, and how long they may be; nothing here needs torch."""

from typing import Literal

Carrying = Literal["uniform", "full-carry"]
CARRYING: tuple[Carrying, ...] = ("uniform", "full-carry")
"""Which sums of one length are measured: every digit uniform, or a carry sent by every column."""

LONGEST = 200
"""Digits of an operand."""
COUNTED = 12
"""Digits up to which pairs are told apart as numbers and drawn once; longer operands are drawn by digit."""
LENGTHS = "10,20,30,50,70,100,150,200"
"""Lengths at which sums are measured."""
SUMS = 500
"""How many there are of each set at each length."""
STUDIED = {"lengths-200": (LENGTHS, 400), "lengths-kinds": ("10,11,12,15,20,30,50,100,200", 100)}
"""What studies measure of a run, by the name under which it is kept: lengths, and sums at each."""
