"""Taps: named identity points in a model where values are recorded or edited.

A tap's name is its module path: ``encoder.1.self.pattern``. Both ways in are context managers and
both leave the model as it was, also after an exception::

    with record(model, "encoder.*.self.pattern") as seen:
        model(source, target)
    seen["encoder.1.self.pattern"]  # (B, H, T, S)

    with edit(model, {"encoder.1.self.z": lambda z: z * 0}):
        model(source, target)

The idea of identity modules that carry hooks is Nanda and Bloom's (TransformerLens, 2022).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import final

from torch import Tensor, nn

from attnlab.errors import LabError, nearest

Edit = Callable[[Tensor], Tensor]


@final
class Tap(nn.Module):
    """Identity, until somebody looks or edits."""

    def __init__(self) -> None:
        super().__init__()
        self._edits: dict[object, Edit] = {}  # in the order in which they were opened

    @property
    def active(self) -> bool:
        """Whether anybody records or edits here."""
        return bool(self._edits)

    def forward(self, value: Tensor) -> Tensor:
        for change in self._edits.values():
            value = change(value)
        return value

    @contextmanager
    def applying(self, change: Edit) -> Iterator[None]:
        """Pass every value through ``change`` while the context is open."""
        key = object()
        self._edits[key] = change
        try:
            yield
        finally:
            del self._edits[key]


def taps(model: nn.Module, pattern: str = "*") -> dict[str, Tap]:
    """All taps of ``model`` whose name matches ``pattern`` (``*`` and ``?`` as in file names)."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, Tap) and fnmatchcase(name, pattern)
    }


@contextmanager
def record(model: nn.Module, *patterns: str, detach: bool = True) -> Iterator[dict[str, Tensor]]:
    """Record the values at all taps that match any of ``patterns`` during one forward pass.

    The recording holds copies, so that changing it changes no model. ``detach=False`` keeps the
    tensors themselves, with their gradients. A tap that fires twice is an error: which of the
    values was meant cannot be known.
    """
    chosen = _matching(model, patterns)
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Edit:
        def look(value: Tensor) -> Tensor:
            if name in seen:
                raise LabError(f"tap {name!r} fired twice; record one forward pass at a time")
            seen[name] = value.detach().clone() if detach else value
            return value

        return look

    with edit(model, {name: keep(name) for name in chosen}):
        yield seen


@contextmanager
def edit(model: nn.Module, changes: Mapping[str, Edit]) -> Iterator[None]:
    """Replace the value at each named tap by what its function makes of it."""
    with ExitStack() as stack:
        for pattern, change in changes.items():
            for tap in _matching(model, (pattern,)).values():
                stack.enter_context(tap.applying(change))
        yield


def _matching(model: nn.Module, patterns: tuple[str, ...]) -> dict[str, Tap]:
    known = taps(model)
    chosen: dict[str, Tap] = {}
    for pattern in patterns:
        found = {name: tap for name, tap in known.items() if fnmatchcase(name, pattern)}
        if not found:
            raise LabError(f"no tap matches {pattern!r}{nearest(pattern, known)}")
        chosen.update(found)
    return chosen
