"""Sets of keys that mean something in a grid: every patch is in a cell, and so is every digit asked for.

cell         s is in the cell of t
"""

import torch
from torch import Tensor


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
