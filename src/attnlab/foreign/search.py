"""What a module does while it runs once: which of its parts compute attention, and where its input goes.

Some of its other parts can be left out of later runs, once what they give is known: layers around an
attention, and what is computed before the first one. Their outputs are (B, T, D), or (T, B, D).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.foreign import observed


@dataclass
class Part:
    """A module that computed attention."""

    path: str
    module: nn.Module
    heads: int
    head_width: int
    cross: bool
    keys: int
    calls: int = 1


@dataclass
class Found:
    """``layers`` and ``first`` are modules whose output can stand for all that was computed in them: layers
    around an attention, and what ended before the first attention began.

    ``embed`` is the path of the module that makes vectors of tokens, with the number of the input that it
    is given; ``patch`` the side of the squares that a convolution cuts images into.
    """

    parts: list[Part] = field(default_factory=list)
    layers: list[nn.Module] = field(default_factory=list)
    first: list[nn.Module] = field(default_factory=list)
    turned: set[nn.Module] = field(default_factory=set)
    """Modules whose output has its examples along the second axis."""
    embed: tuple[str, int] | None = None
    patch: int | None = None


def search(module: nn.Module, inputs: Sequence[Any], rows: int, run: Callable[[], Any]) -> Found:
    """What ``run``, which calls ``module`` with ``inputs`` of so many ``rows``, shows of it."""
    watch = _Watch(module, inputs)
    with ExitStack() as hooks, torch.no_grad(), observed.searching(watch.found):
        for part in watch.names:
            hooks.callback(part.register_forward_pre_hook(watch.begin, with_kwargs=True).remove)
            hooks.callback(part.register_forward_hook(watch.end).remove)
        run()
    return watch.summary(rows)


class _Watch:
    """What happens while a module runs."""

    def __init__(self, module: nn.Module, inputs: Sequence[Any]) -> None:
        self.module, self.inputs = module, inputs
        self.names = {part: name for name, part in module.named_modules()}
        self.parts: dict[nn.Module, Part] = {}
        self.stack: list[nn.Module] = []
        self.given: dict[nn.Module, list[Any]] = {}
        self.early: list[nn.Module] = []
        self.embeds: dict[nn.Module, int] = {}
        self.patch: int | None = None

    def begin(self, part: nn.Module, args: Any, kwargs: Any) -> None:
        self.stack.append(part)
        if isinstance(part, nn.MultiheadAttention):
            told = dict(zip(("query", "key"), args, strict=False)) | kwargs
            keys = told["key"].shape[-2 if part.batch_first or told["key"].dim() == 2 else 0]
            self._see(part, part.num_heads, part.head_dim, told["query"] is not told["key"], keys)

    def end(self, part: nn.Module, args: Any, result: Any) -> None:
        self.stack.pop()
        self.given.setdefault(part, []).append(result)
        if not self.parts:
            self.early.append(part)
        if args and isinstance(args[0], Tensor) and isinstance(result, Tensor):
            self._follow(part, args[0], result)

    def found(self, part: nn.Module | None, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Told of attention that is not ``nn.MultiheadAttention``."""
        part = self.stack[-1] if part is None else part
        cross = bool(getattr(part, "is_cross_attention", q.shape[-2] != k.shape[-2]))
        self._see(part, q.shape[1] if q.dim() == 4 else 1, v.shape[-1], cross, k.shape[-2])

    def _see(self, part: nn.Module, heads: int, width: int, cross: bool, keys: int) -> None:
        if part in self.parts:
            self.parts[part].calls += 1
        else:
            self.parts[part] = Part(self.names[part], part, heads, width, cross, keys)

    def _follow(self, part: nn.Module, given: Tensor, result: Tensor) -> None:
        """Is it one of the inputs that goes in here?"""
        number = next((n for n, each in enumerate(self.inputs) if _same(each, given)), None)
        if number is None:
            return
        if not given.is_floating_point() and result.dim() == 3 and result.shape[:2] == given.shape:
            self.embeds.setdefault(part, number)
        if isinstance(part, nn.Conv2d) and part.kernel_size == part.stride and len({*part.stride}) == 1:
            self.patch = part.stride[0]

    def summary(self, rows: int) -> Found:
        inside = {name for part in self.parts.values() for name in _above(part.path)}
        holders = [part for part in self.names if isinstance(part, nn.ModuleList | nn.Sequential)]
        layers = [part for holder in holders for part in holder if self.names[part] in inside]
        first = self._first({self.names[each] for each in (*layers, *self.parts)})
        known = {part: _batch_axis(part, self.given.get(part, []), rows) for part in (*layers, *first)}
        embed = next(iter(self.embeds.items()), None)
        once = embed is not None and len(self.given[embed[0]]) == 1
        return Found(
            list(self.parts.values()),
            [part for part in layers if known[part] is not None],
            [part for part in first if known[part] is not None],
            {part for part, axis in known.items() if axis == 1},
            (self.names[embed[0]], embed[1]) if embed and once else None,
            self.patch,
        )

    def _first(self, attending: set[str]) -> list[nn.Module]:
        """Modules with weights that ended before the first attention began and are no parts of others that
        did, nor of those that are ``attending``.
        """
        early = {self.names[part] for part in self.early}
        return [
            part
            for part in self.early
            if self.names[part].rpartition(".")[0] not in early
            and attending.isdisjoint(_above(self.names[part]))
            and any(True for _ in part.parameters())
        ]


def _same(one: Any, other: Tensor) -> bool:
    """Whether two tensors hold the same, be one a view of the other or not."""
    return isinstance(one, Tensor) and one.shape == other.shape and torch.equal(one, other)


def _above(path: str) -> list[str]:
    words = path.split(".")
    return [".".join(words[:count]) for count in range(1, len(words))]


def _batch_axis(part: nn.Module, results: list[Any], rows: int) -> int | None:
    """Which axis of what a module gave has examples; None if it did not give one tensor (B, T, D), once."""
    if len(results) != 1 or not isinstance(results[0], Tensor) or results[0].dim() != 3:
        return None
    first, second, _ = results[0].shape
    attentions = [each for each in part.modules() if isinstance(each, nn.MultiheadAttention)]
    second_is_batch = bool(attentions) and not all(each.batch_first for each in attentions)
    if first == rows and not (second == rows and second_is_batch):
        return 0
    return 1 if second == rows else None
