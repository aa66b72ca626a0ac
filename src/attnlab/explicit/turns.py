"""How threads take turns without Python: a word of memory each, changed by compare-and-exchange.

Waking a sleeping thread can take longer than a whole small batch. A helper therefore watches its word for a
short while after each batch, and goes to sleep only when none follows:

    ASLEEP --Python gives it work--> WORK --batch done--> READY --next batch--> WORK ...
                                                            \\--nothing comes--> ASLEEP

Compare-and-exchange settles who was first when a batch arrives in the moment a helper falls asleep.
"""

from typing import Any, no_type_check

import numba
from jaxtyping import Int
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from attnlab.explicit.compiling import Array, inlined, kernel

ASLEEP, READY, WORK = 0, 1, 2
LINE = 8  # words of a cache line: no two helpers share one
WATCH = 60_000  # looks at a word; well under a millisecond


@kernel
def call_helpers(words: Int[Array, "W 8"], called: Int[Array, "W"]) -> None:
    """Give work to all helpers that are ready; ``called`` says which, the others need waking."""
    for w in range(1, words.shape[0]):
        called[w] = exchange(words, w, READY, WORK)


@kernel
def next_turn(words: Int[Array, "W 8"], w: int) -> bool:
    """Helper ``w`` is done: wait for more work; False when it is time to sleep."""
    exchange(words, w, WORK, READY)
    for _ in range(WATCH):
        if exchange(words, w, WORK, WORK):
            return True
    return not exchange(words, w, READY, ASLEEP)


@kernel
def all_done(words: Int[Array, "W 8"]) -> bool:
    """Watch until no helper works any more; False when that takes long."""
    for w in range(1, words.shape[0]):
        looks = 0
        while exchange(words, w, WORK, WORK):
            looks += 1
            if looks == WATCH:
                return False
    return True


@inlined
def array_at(address: int, shape: tuple[int, ...], like: Array) -> Array:
    """The array at an address, of the element type of ``like``."""
    return numba.carray(pointer(address, like), shape)  # type: ignore[attr-defined]


@intrinsic
@no_type_check
def exchange(typing, words, w, expected, new):
    """``words[w, 0] = new`` if it was ``expected``; whether it was."""

    def write(context, builder, signature, args):
        array = context.make_array(words)(context, builder, args[0])
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        address = builder.add(builder.ptrtoint(array.data, stride.type), builder.mul(args[1], stride))
        place = builder.inttoptr(address, ir.IntType(64).as_pointer())
        pair = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(words, types.intp, types.int64, types.int64), write


@intrinsic
@no_type_check
def pointer(typing, address, like):
    """``address`` as a pointer to elements of ``like``."""
    kind = types.CPointer(like.dtype)

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(types.intp, like), write
