"""What ``positions`` finds: places that are known, how alike neighbours are, and how far tables moved."""

from collections.abc import Iterator

from attnlab.analysis.positions import PositionsResult
from attnlab.figures.positions import draw_positions
from attnlab.results import Drawing, Part, Table


def tables(found: PositionsResult) -> Iterator[Part]:
    yield Table(
        f"{found.what}: {found.stacks[0].positions}",
        ("stack", "slot", "tokens", "known places", "next place alike"),
        tuple(
            (data.stack, slot.slot, str(data.tokens), str(sum(slot.known)), _number(slot.neighbours_alike))
            for data in found.stacks
            for slot in data.slots
        ),
    )
    sides = [(side, known) for known in ("known", "unknown") for side in ("distance", "sideways")]
    moved = [
        (f"{data.stack}, {table.table}", *(_number(table.mean[side][known]) for side, known in sides))
        for data in found.stacks
        for table in data.moved
    ]
    if moved:
        columns = ("table", "known rows", "sideways", "unknown rows", "sideways")
        yield Table("moved in training, mean over rows", columns, tuple(moved))


def figures(found: PositionsResult) -> dict[str, Drawing]:
    return {f"positions-{stack.stack}": Drawing(stack, draw_positions) for stack in found.stacks}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
