"""A pretended accelerator: tensors with values, on a device that is not the CPU.

Within ``pretending()`` torch's device ``meta`` has values. A tensor there is a ``There`` around a tensor of
the CPU that computes for it, so results can be compared with those of the CPU, number by number. What would
fail on an accelerator fails here, with ``MisplacedError``, and so does what is merely careless:

- an operation on tensors of both devices, also where one is a number without dimensions or an index;
- while a module computes, and in a backward pass: a tensor that is created on the CPU, or moved.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map

PRETENDED = torch.device("meta")
_HERE = torch.device("cpu")
_ATEN = torch.ops.aten
_MADE_OF_DATA = (torch.tensor, torch.as_tensor, Tensor.new_tensor)  # by torch itself without values


class MisplacedError(AssertionError):
    """A tensor is on the wrong device."""


class There(Tensor):
    """A tensor on the pretended device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "There":
        made: There = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=PRETENDED,
        )
        made.held = held
        return made

    is_meta = property(lambda self: False)

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.held = value.held

    def __repr__(self) -> str:  # type: ignore[override]
        return f"There({self.held!r})"

    def tolist(self) -> Any:
        return self.held.tolist()

    def item(self) -> Any:
        return self.held.item()

    def numpy(self, **options: Any) -> Any:
        raise MisplacedError("numpy takes tensors of the CPU only")

    def __deepcopy__(self, memo: dict[int, Any]) -> "There":
        if id(self) not in memo:
            copy = There(self.held.clone())
            is_weight = isinstance(self, nn.Parameter)
            memo[id(self)] = nn.Parameter(copy, self.requires_grad) if is_weight else copy
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _compute(func, args, kwargs or {})


_strict = 0
crossings: list[tuple[int, ...]] = []
"""Shapes of what went from one device to the other, since ``pretending`` began."""


def _compute(func: Any, args: Any, kwargs: Any) -> Any:
    """What ``func`` gives, on the device that its tensors or its ``device`` say."""
    given = [each for each in tree_iter((args, kwargs)) if isinstance(each, Tensor)]
    copies, to = func is _ATEN.copy_.default, kwargs.get("device")
    there = any(isinstance(each, There) for each in (args[:1] if copies else given))
    there = there if to is None else torch.device(to).type == PRETENDED.type
    crossing = any(isinstance(each, There) != there for each in given)
    if crossing and to is None and not copies:
        raise MisplacedError(f"{func} mixes tensors of two devices")
    if _strict and (crossing or not there):
        raise MisplacedError(f"{func} creates a tensor on the CPU, or moves one, where the model computes")
    if crossing:
        crossings.append(tuple(given[-1].shape))
    plain = dict(kwargs) if to is None else {**kwargs, "device": _HERE}
    out = func(*tree_map(_bare, args), **tree_map(_bare, plain))
    if there and torch.Tag.inplace_view in func.tags:  # such as squeeze_: the wrapper has a new shape too
        with no_dispatch():
            func(*args, **kwargs)
    known = {id(each.held): each for each in given if isinstance(each, There)}  # if changed in place

    def wrapped(value: Any) -> Any:
        if not isinstance(value, Tensor) or id(value) in known:
            return known.get(id(value), value)
        return There(value.clone() if crossing else value)

    if not there:
        return out
    # a view is for inference alone if what it is a view of is
    with torch.inference_mode(given[0].is_inference()) if func.is_view else nullcontext():
        return tree_map(wrapped, out)


def _bare(value: Any) -> Any:
    return value.held if isinstance(value, There) else value


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """What is made of Python's numbers gets its values before it goes to the pretended device."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (Tensor.backward, torch.autograd.grad):
            with strictly():
                return func(*args, **kwargs)
        if func in _MADE_OF_DATA:
            to = kwargs.pop("device", None)
            if func is Tensor.new_tensor:
                like, *args = args
                func, to = torch.tensor, to or like.device
                kwargs.setdefault("dtype", like.dtype)
            to = torch.device(to or _HERE)
            with _at_ease(to.type == PRETENDED.type):
                return func(*args, **kwargs).to(to)
        return func(*args, **kwargs)


@contextmanager
def _at_ease(ease: bool) -> Iterator[None]:
    global _strict
    before, _strict = _strict, 0 if ease else _strict
    try:
        yield
    finally:
        _strict = before


@contextmanager
def strictly() -> Iterator[None]:
    """Let nothing be created on the CPU, or moved."""
    global _strict
    _strict += 1
    try:
        yield
    finally:
        _strict -= 1


@contextmanager
def pretending(*, strict: bool = True) -> Iterator[torch.device]:
    """The pretended device; if ``strict``, modules whose weights or inputs are there compute strictly."""
    crossings.clear()
    open_calls: list[bool] = []

    def enter(module: nn.Module, given: Any) -> None:
        global _strict
        tensors = (*module.parameters(recurse=False), *tree_iter(given))
        open_calls.append(strict and any(isinstance(each, There) for each in tensors))
        _strict += open_calls[-1]

    def leave(module: nn.Module, given: Any, made: Any) -> None:
        global _strict
        _strict -= open_calls.pop()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    try:
        with _Functions(), _Operations():  # type: ignore[no-untyped-call]
            yield PRETENDED
    finally:
        for hook in hooks:
            hook.remove()
