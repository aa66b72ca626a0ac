"""Matrix products of the sizes of one image: ``out += left @ right``.

The matrices here have some 50 rows and 16 to 128 columns. They lie in the first two caches, so that a
library's way of cutting and repacking large matrices costs more than it brings. What remains is to keep
the arithmetic units fed: a tile of ``out``, up to 6 rows by 4 vectors, stays in registers while

    for k in range(depth):
        for each row r of the tile:
            out[r, :] += left[r, k] * right[k, :]

runs through it; each element of ``left`` is spread over a vector and each vector of ``right`` serves all
rows. The tile is written in LLVM's vector instructions, because no compiler makes it out of plain loops
reliably; they remain portable, for LLVM turns them into what the processor has.

``left`` may be transposed (``x.T``) at no cost, since its elements are taken one by one. Rows of
``right`` and ``out`` are read in whole vectors: their length is a multiple of half a vector, see
``padded``.
"""

from typing import Any, no_type_check

from jaxtyping import Float
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from attnlab.explicit.compiling import Array, kernel

# A processor with AVX-512 has 32 registers of 64 bytes; others are taken to hold 16 of 32 bytes.
# What counts is the processor that Numba compiles for, by which its cache goes too.
_, _, _FEATURES = cpu_target.target_context.codegen().magic_tuple()
_WIDE = "+avx512f" in _FEATURES.split(",")
VECTOR = 64 if _WIDE else 32  # bytes
VECTORS = 4 if _WIDE else 2  # of a tile's row
ROWS = 6  # of a tile: 6 * 4 sums, 4 vectors of right and 1 of left fill 29 of 32 registers


@intrinsic
@no_type_check
def add_tile(typing, out, left, right, row, column, rows, vectors):
    """Add to ``rows`` rows and ``vectors`` vectors of ``out``, from ``row`` and ``column`` on."""
    signature = types.void(out, left, right, types.intp, types.intp, types.intp, types.intp)
    return signature, _write_tile


@no_type_check
def _write_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """LLVM code of all heights and widths of a tile, and the choice among them."""
    out, left, right = (
        _Matrix(context, builder, *pair) for pair in zip(signature.args, args[:3], strict=False)
    )
    row, column, rows, vectors = args[3:]
    done = builder.append_basic_block("done")
    choice = builder.switch(builder.add(builder.mul(vectors, _word(ROWS + 1)), rows), done)
    for width in range(VECTORS + 1):
        for height in range(1, ROWS + 1):
            block = builder.append_basic_block(f"tile_{height}_{width}")
            choice.add_case(_word(width * (ROWS + 1) + height), block)
            builder.position_at_end(block)
            lanes = VECTOR // out.itemsize if width else VECTOR // 2 // out.itemsize
            shape = height, max(width, 1), lanes
            _write_one(builder, out, left, right, row, column, right.rows, shape)
            builder.branch(done)
    builder.position_at_end(done)
    return context.get_dummy_value()


@no_type_check
def _write_one(builder, out, left, right, row, column, depth, shape):
    """One tile: load the sums, run through ``depth``, store the sums."""
    height, width, lanes = shape
    vector = ir.VectorType(out.element, lanes)
    places = [
        [
            out.address(builder.add(row, _word(r)), builder.add(column, _word(v * lanes)))
            for v in range(width)
        ]
        for r in range(height)
    ]
    start = [
        builder.load(_at(builder, place, vector), align=out.itemsize) for line in places for place in line
    ]
    lefts = [left.address(builder.add(row, _word(r)), _word(0)) for r in range(height)]
    rights = right.address(_word(0), column)

    before = builder.block
    loop = builder.append_basic_block("depth")
    after = builder.append_basic_block("stored")
    builder.cbranch(builder.icmp_signed(">", depth, _word(0)), loop, after)

    builder.position_at_end(loop)
    k = builder.phi(depth.type)
    sums = [builder.phi(vector) for _ in start]
    across = builder.mul(k, left.strides[1])
    down = builder.add(rights, builder.mul(k, right.strides[0]))
    lines = [
        builder.load(
            _at(builder, builder.add(down, _word(v * lanes * out.itemsize)), vector), align=out.itemsize
        )
        for v in range(width)
    ]
    new = []
    for r in range(height):
        value = builder.load(_at(builder, builder.add(lefts[r], across), out.element), align=out.itemsize)
        spread = _spread(builder, value, vector)
        for v in range(width):
            product = builder.fmul(spread, lines[v], flags=("contract",))
            new.append(builder.fadd(sums[r * width + v], product, flags=("contract",)))
    following = builder.add(k, _word(1))
    k.add_incoming(_word(0), before)
    k.add_incoming(following, loop)
    for total, first, later in zip(sums, start, new, strict=True):
        total.add_incoming(first, before)
        total.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)

    builder.position_at_end(after)
    for index, (first, later) in enumerate(zip(start, new, strict=True)):
        result = builder.phi(vector)
        result.add_incoming(first, before)
        result.add_incoming(later, loop)
        start[index] = result
    for result, place in zip(start, (place for line in places for place in line), strict=True):
        builder.store(result, _at(builder, place, vector), align=out.itemsize)


@no_type_check
class _Matrix:
    """Addresses of the elements of an array argument; strides that the layout fixes are constants."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder = builder
        self.element = context.get_data_type(kind.dtype)
        self.itemsize = context.get_abi_sizeof(self.element)
        self.base = builder.ptrtoint(array.data, ir.IntType(64))
        self.rows = _pair(builder, array.shape)[0]
        self.strides = _pair(builder, array.strides)
        if kind.layout in "CF":
            self.strides["FC".index(kind.layout)] = _word(self.itemsize)

    def address(self, row: Any, column: Any) -> Any:
        down = self.builder.mul(row, self.strides[0])
        across = self.builder.mul(column, self.strides[1])
        return self.builder.add(self.base, self.builder.add(down, across))


@no_type_check
def _word(value):
    return ir.Constant(ir.IntType(64), value)


@no_type_check
def _at(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


@no_type_check
def _spread(builder, value, vector):
    """A vector that holds ``value`` in every lane."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, zeros)


@no_type_check
def _pair(builder, value):
    return cgutils.unpack_tuple(builder, value, 2)


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
