"""Taps: named identity points in a model where values are recorded, edited or supplied.

A tap's name is its module path: ``encoder.1.self.pattern``. All three ways in are context managers and
all leave the model as it was, also after an exception::

    with record(model, "encoder.*.self.pattern") as seen:
        model(source, target)
    seen["encoder.1.self.pattern"]  # (B, H, T, S)

    with edit(model, {"encoder.1.self.z": lambda z: z * 0}):
        model(source, target)

    with supply(model, {"encoder.0.feed_residual.out": before}):
        model(source, target)  # the first layer is not computed again

The idea of identity modules that carry hooks is Nanda and Bloom's (TransformerLens, 2022).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import final

from torch import Tensor, nn

from attnlab.errors import LabError, brief, nearest

Edit = Callable[[Tensor], Tensor]

SUPPLIED = ("z", "out")
"""Last names of the taps that take a supplied value."""


@final
class Tap(nn.Module):
    """Identity, until somebody looks or edits."""

    def __init__(self) -> None:
        super().__init__()
        self._edits: dict[object, Edit] = {}  # in the order in which they were opened
        self._supplied: Tensor | None = None

    @property
    def active(self) -> bool:
        """Whether anybody records or edits here."""
        return bool(self._edits)

    @property
    def supplied(self) -> Tensor | None:
        """The value that stands ready; who computes towards this tap may leave it and take this one."""
        return self._supplied

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

    @contextmanager
    def supplying(self, value: Tensor) -> Iterator[None]:
        """Have ``value`` ready while the context is open; edits still apply to it."""
        before, self._supplied = self._supplied, value
        try:
            yield
        finally:
            self._supplied = before


class Heads(nn.Module):
    """The taps of one attention; ``notation`` has their shapes."""

    def __init__(self, *, heads: int, head_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_width = head_width
        self.q, self.k, self.v = Tap(), Tap(), Tap()
        self.scores, self.pattern = Tap(), Tap()
        self.z, self.out = Tap(), Tap()


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
    chosen = _matching(taps(model), patterns)
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Edit:
        def look(value: Tensor) -> Tensor:
            if name in seen:
                raise LabError(f"tap {brief(name)} fired twice; record one forward pass at a time")
            seen[name] = value.detach().clone() if detach else value
            return value

        return look

    with edit(model, {name: keep(name) for name in chosen}):
        yield seen


@contextmanager
def edit(model: nn.Module, changes: Mapping[str, Edit]) -> Iterator[None]:
    """Replace the value at each named tap by what its function makes of it."""
    known = taps(model)
    with ExitStack() as stack:
        for pattern, change in changes.items():
            for tap in _matching(known, (pattern,)).values():
                stack.enter_context(tap.applying(change))
        yield


@contextmanager
def supply(model: nn.Module, values: Mapping[str, Tensor]) -> Iterator[None]:
    """Have values ready at the named taps, so that what leads only to them is not computed.

    Only ``z`` and ``out`` of an attention and ``out`` of a residual take what is supplied; a tap elsewhere
    is an error. Taps in what is not computed do not fire.
    """
    known = taps(model)
    with ExitStack() as stack:
        for name, value in values.items():
            if name.rpartition(".")[2] not in SUPPLIED:
                raise LabError(f"tap {brief(name)} cannot be supplied; only {' and '.join(SUPPLIED)} can")
            for tap in _matching(known, (name,)).values():
                stack.enter_context(tap.supplying(value))
        yield


def _matching(known: dict[str, Tap], patterns: tuple[str, ...]) -> dict[str, Tap]:
    chosen: dict[str, Tap] = {}
    for pattern in patterns:
        found = {name: tap for name, tap in known.items() if fnmatchcase(name, pattern)}
        if not found:
            raise LabError(f"no tap matches {brief(pattern)}{nearest(pattern, known)}")
        chosen.update(found)
    return chosen
