"""Matrix products of the sizes of one image: ``out += left @ right``.

The matrices here have some 50 rows and 16 to 128 columns. They lie in the first two caches, so that a
library's way of cutting and repacking large matrices costs more than it brings. What remains is to keep
the arithmetic units fed: a tile of ``out``, up to 6 rows by 4 vectors, stays in registers while

    for k in range(depth):
        for each row r of the tile:
            out[r, :] += left[r, k] * right[k, :]

runs through it; each element of ``left`` is spread over a vector and each vector of ``right`` serves all
rows. The tile is written in LLVM's vector instructions, because no compiler makes it out of plain loops
reliably.

``left`` may be transposed (``x.T``) at no cost, since its elements are taken one by one. Rows of
``right`` and ``out`` are read in whole vectors: their length is a multiple of half a vector, see
``padded``.
"""

from jaxtyping import Float

from attnlab.explicit.compiling import Array, kernel
from attnlab.explicit.tiles import ROWS, VECTOR, VECTORS, add_tile


def padded(columns: int, itemsize: int) -> int:
    """``columns``, rounded up to what rows of ``out`` and ``right`` must have."""
    half = VECTOR // 2 // itemsize
    return -(-columns // half) * half


@kernel
def add_product(out: Float[Array, "M N"], left: Float[Array, "M K"], right: Float[Array, "K N"]) -> None:
    """``out += left @ right``, tile by tile; rows are shared evenly among the tiles of a column."""
    rows, columns = out.shape
    lanes = VECTOR // out.itemsize
    tiles = (rows + ROWS - 1) // ROWS
    column = 0
    while column < columns:
        vectors = min(VECTORS, (columns - column) // lanes)  # 0: half a vector is left
        for tile in range(tiles):
            row = tile * rows // tiles
            add_tile(out, left, right, row, column, (tile + 1) * rows // tiles - row, vectors)
        column += vectors * lanes if vectors > 0 else lanes // 2
