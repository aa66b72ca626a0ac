"""Where a value can be put: a tap, and of it one head, one position, or all."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from attnlab.errors import LabError


@final
@dataclass(frozen=True, order=True)
class Site:
    """``Site("encoder.1.self.z", head=3)`` is one head's output at every position.

    ``head`` is for taps (B, H, T, ...), ``position`` for these and for (B, T, D). At ``k`` and ``v`` a
    position is a key's, at ``pattern`` a query's: its whole row is put in. None takes all there are.
    """

    tap: str
    head: int | None = None
    position: int | None = None

    def index(self, value: Tensor) -> tuple[slice | int, ...]:
        """Where in ``value`` this site lies."""
        if self.head is not None and value.ndim != 4:
            raise LabError(f"tap {self.tap!r} has no heads to choose head {self.head} from")
        axes = (self.head, self.position) if value.ndim == 4 else (self.position,)
        names = ("head", "position") if value.ndim == 4 else ("position",)
        sizes = value.shape[1 : 1 + len(axes)]
        for name, place, size in zip(names, axes, sizes, strict=True):
            if place is not None and not 0 <= place < size:
                raise LabError(f"tap {self.tap!r} has {size} {name}s from 0 on, so none is {name} {place}")
        return (slice(None), *(slice(None) if place is None else place for place in axes))


def tap_name(path: str, quantity: str) -> str:
    """The tap of a quantity of the attention at ``path``; the empty path is the model itself."""
    return f"{path}.{quantity}" if path else quantity


def head_site(head: str, quantity: str = "z") -> Site:
    """A quantity of the head ``path.index``, at every position."""
    path, _, index = head.rpartition(".")
    return Site(tap_name(path, quantity), head=int(index))
