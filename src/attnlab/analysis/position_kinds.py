"""Kinds of positions that can be looked at without a model, and what is refused of them before any work."""

from attnlab.specs import GridPositionSpec, PositionSpec, read_variant, require, variants
from attnlab.specs.positions import require_positions

GRIDS = variants(GridPositionSpec)
KINDS = {**variants(PositionSpec), **GRIDS}


def check_kind(
    word: str, *, trained: int, width: int, heads: int, columns: int
) -> PositionSpec | GridPositionSpec:
    """The kind that ``word`` names, such as ``rotary:base=100``, for a model of ``width`` and ``heads``."""
    sizes = {"trained": trained, "width": width, "heads": heads, "columns": columns}
    for name, value in sizes.items():
        require(value >= 1, name, value, "at least 1")
    require(width % heads == 0, "heads", heads, f"a divisor of width {width}")
    grid = word.partition(":")[0] in GRIDS
    if grid:
        require(width % 4 == 0, "width", width, "a multiple of 4 for a grid")
    spec: PositionSpec | GridPositionSpec = read_variant(GridPositionSpec if grid else PositionSpec, word)
    require_positions(spec, width=width, heads=heads)
    return spec
