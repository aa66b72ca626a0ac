"""The one way in which a spec refuses a value."""

from attnlab.errors import SpecError


def require(holds: bool, key: str, value: object, rule: str) -> None:
    """Raise a ``SpecError`` naming ``key``, its ``value`` and the ``rule`` unless it ``holds``."""
    if not holds:
        raise SpecError(f"{key} is {value!r}, but it must be {rule}")


def require_counts(counts: tuple[int, ...], *, attentions: int, heads: int) -> None:
    """A number of heads for each attention, or none at all."""
    if counts:
        rule = f"{attentions} numbers from 0 to {heads}, one an attention"
        require(len(counts) == attentions, "model.head_counts", counts, rule)
        require(all(0 <= count <= heads for count in counts), "model.head_counts", counts, rule)
