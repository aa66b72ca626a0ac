"""The examples that a hand-out carries, some of each stratum; ``js/local/stored.js`` reads them."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from attnlab.explorer.scene import Asked, ExampleInput
from attnlab.explorer.strata import Strata
from attnlab.explorer.tasks import Given, Inputs

EXAMPLES = 200
"""Examples of a split that a hand-out carries, unless the split has fewer."""


@dataclass(frozen=True)
class StoredExamples:
    """Examples of a split in the order of their ``indices``; ``count`` is the size of the split. ``strata``
    are rows by name.
    """

    count: int
    indices: list[int]
    names: list[str]
    truths: list[str | None]
    targets: list[list[int] | None]
    tokens: list[list[int]] | None
    labels: list[list[str]] | None
    pixels: str | None
    strata: list[tuple[str, list[int]]]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def store_split(inputs: Inputs, split: Asked) -> StoredExamples:
    """Some examples of each stratum."""
    groups = Strata(inputs).every(split, lambda: inputs.model)
    members = {name: mask.nonzero()[:, 0].tolist() for name, mask in groups.items()}
    size = len(inputs.split(split))
    chosen = _spread(members.values(), min(EXAMPLES, size))
    given = [inputs.read(ExampleInput(split, index)) for index in chosen]
    rows = {index: row for row, index in enumerate(chosen)}
    strata = [(name, [rows[each] for each in every if each in rows]) for name, every in members.items()]
    return store(given, chosen, size, [(name, known) for name, known in strata if known])


def store(
    given: Sequence[Given],
    indices: list[int],
    count: int,
    strata: list[tuple[str, list[int]]] | None = None,
) -> StoredExamples:
    """Inputs whose answers are known."""
    images = [each.shown.pixels.array for each in given if each.shown.pixels is not None]
    return StoredExamples(
        count=count,
        indices=indices,
        names=[each.shown.name for each in given],
        truths=[each.shown.truth for each in given],
        targets=[None if each.right is None else each.right.flatten().tolist() for each in given],
        tokens=None if images else [each.inputs[0][0].tolist() for each in given],
        labels=None if images else [each.shown.labels for each in given],
        pixels=pack_bytes(np.stack(images)) if images else None,
        strata=strata or [],
    )


def pack_bytes(array: UInt8[np.ndarray, "..."]) -> str:
    """Bytes most of which are 0 as text: a bit for each that says whether it is another number, the lowest
    first; then those numbers.
    """
    flat = array.reshape(-1)
    marks = np.packbits(flat != 0, bitorder="little")
    return base64.b64encode(marks.tobytes() + flat[flat != 0].tobytes()).decode("ascii")


def _spread(strata: Iterable[list[int]], wanted: int) -> list[int]:
    """So many examples, in turns from each stratum."""
    chosen, left = dict[int, None](), [iter(each) for each in strata]
    while len(chosen) < wanted and left:
        for members in list(left):
            one = next((each for each in members if each not in chosen), None)
            if one is None:
                left.remove(members)
            elif len(chosen) < wanted:
                chosen[one] = None
    return sorted(chosen)
