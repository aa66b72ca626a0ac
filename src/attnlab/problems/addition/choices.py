"""What analyses of sums can be asked for; nothing here computes, so nothing waits for torch."""

from typing import Literal

WRONG = "analysis/verify-wrong.csv"
"""Where a run keeps every pair that it adds wrongly."""

Digit = Literal["same", "any"]
"""Whether the deciding column of a pair of sums leaves the same digit in both, or any."""
