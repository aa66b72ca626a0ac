"""What tasks can be asked for, by name; nothing here computes, so nothing waits for torch."""

from typing import Literal

Split = Literal["train", "valid", "test"]
"""A set of examples by its name."""

Digit = Literal["same", "any"]
"""Whether the deciding column of a pair of sums leaves the same digit in both, or any."""

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""How the names of pictures end."""
