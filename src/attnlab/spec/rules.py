"""The one way in which a spec refuses a value."""

from attnlab.errors import SpecError


def require(holds: bool, key: str, value: object, rule: str) -> None:
    """Raise a ``SpecError`` naming ``key``, its ``value`` and the ``rule`` unless it ``holds``."""
    if not holds:
        raise SpecError(f"{key} is {value!r}, but it must be {rule}")
