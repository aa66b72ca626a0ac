"""What pages can be asked for; nothing here computes, so nothing waits for torch."""

SAMPLES = 1000
"""Examples on which heads and projections are measured, unless others are asked for."""
