"""Models of others as a ``Model``: a copy of the module, observed wherever it computes attention.

    vit = wrapped(Wrapped, timm.create_model("vit_tiny_patch16_224", num_classes=10), reads="cls")
    vit.sites()                          # blocks.0.attn with 3 heads, ...
    with record(vit, "blocks.3.attn.pattern") as seen:
        vit(images)

The module is run once on ``inputs`` to see which of its parts compute attention, and in which order. Then
the copy's outputs are compared with the module's own, with and without somebody looking.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.errors import InputError, LabError
from attnlab.foreign import observed
from attnlab.foreign.inputs import made_inputs
from attnlab.model import Model, Side, Site
from attnlab.taps import record, taps

W = TypeVar("W", bound="Wrapped")
Reads = Literal["cls", "mean", "last"]
Output = Callable[[Any], Tensor]

TOLERANCE = 1e-5
"""Of the largest output, or of 1 if all are smaller."""
INTERFACE = "attnlab"
"""The name of our attention function in Hugging Face's interface."""

_LAYER = re.compile(r"(?P<stack>.*?)\.?\b(?P<layer>\d+)\b")


@dataclass
class Part:
    """A module that computed attention."""

    path: str
    module: nn.Module
    heads: int
    head_width: int
    cross: bool
    calls: int = 1


def wrapped(
    kind: type[W],
    module: nn.Module,
    *,
    inputs: Sequence[Any] | dict[str, Any] | None = None,
    reads: Reads = "mean",
    output: Output | None = None,
) -> W:
    """A copy of ``module`` as a ``kind`` of ``Wrapped``, once it has been seen to compute the same."""
    arguments: tuple[str, ...] = ()
    if isinstance(inputs, dict):
        arguments, inputs = tuple(inputs), tuple(inputs.values())
    if inputs is None:
        named = made_inputs(module)
        arguments, inputs = tuple(name for name in named if not name.isdigit()), tuple(named.values())
    copy = deepcopy(module).eval()
    with torch.no_grad():  # not inference mode: modules may keep what they compute
        given = _call(copy, arguments, inputs)
    _take_interface(copy)
    parts, layers = search(copy, lambda: _call(copy, arguments, inputs))
    if not parts:
        raise LabError(
            f"the module {type(module).__name__} computes no attention that can be seen; what can are "
            "nn.MultiheadAttention, calls of F.scaled_dot_product_attention, and Hugging Face's models"
        )
    if not parts[0].path:  # it is itself an attention
        copy, parts[0].path = Holder(copy), HELD
    for part in parts:
        _check_calls(part)
        torchs = isinstance(part.module, nn.MultiheadAttention)
        own = observed.AttentionTaps(heads=part.heads, head_width=part.head_width)
        observed.observe(
            part.module, own, observed.ObservedMultihead if torchs else observed.ObservedAttention
        )
    for layer in layers:
        if not hasattr(layer, observed.CHILD):
            observed.observe(layer, observed.OutTap(), observed.Observed)
    made = kind(copy, _sites(parts), reads=reads, output=output, arguments=arguments)
    _compare(type(module).__name__, logits_of(given) if output is None else output(given), made, inputs)
    return made


HELD = "attention"


class Holder(nn.Module):
    """Gives an attention that stands for itself a path."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.add_module(HELD, module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_submodule(HELD)(*args, **kwargs)


class Wrapped(Model):
    """A copy of somebody's module. Its parts go by their own names."""

    def __init__(
        self,
        inner: nn.Module,
        sites: list[Site],
        *,
        reads: Reads,
        output: Output | None,
        arguments: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.inner = inner
        self._sites = sites
        self._reads = reads
        self._output = output
        self._arguments = arguments

    def forward(self, *inputs: Any) -> Tensor:
        with observed.Interception():
            given = _call(self.inner, self._arguments, inputs)
        return logits_of(given) if self._output is None else self._output(given)

    def named_modules(
        self, memo: set[nn.Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Module]]:
        """The parts of the module by their own names; taps stand beside them."""
        for name, module in self.inner.named_modules(memo, prefix, remove_duplicate):
            yield ".".join(word for word in name.split(".") if word != observed.CHILD), module

    def get_submodule(self, target: str) -> nn.Module:
        return self.inner.get_submodule(target)

    def sites(self) -> list[Site]:
        return self._sites

    def input_mask(self, *inputs: Tensor) -> Bool[Tensor, "B T"] | None:
        if "attention_mask" not in self._arguments:
            return None
        return inputs[self._arguments.index("attention_mask")].bool()

    def side(self, path: str) -> Side:
        stacks = {site.stack: site.queries for site in self._sites}
        inside = (side for stack, side in stacks.items() if not stack or path.startswith(f"{stack}."))
        return next(inside, "input")

    def read_weights(self, *inputs: Tensor, place: int = 0) -> Float[Tensor, "B T"]:
        even = super().read_weights(*inputs, place=place)
        if self._reads == "mean":
            mask = self.input_mask(*inputs)
            return even if mask is None else mask / mask.sum(dim=1, keepdim=True)
        mask = self.input_mask(*inputs)
        read = torch.zeros(len(even), dtype=torch.long)
        if self._reads == "last":
            real = torch.ones_like(even) if mask is None else mask
            read = (real * torch.arange(even.shape[1])).argmax(dim=1)
        return F.one_hot(read, even.shape[1]).to(even)


def logits_of(given: Any) -> Tensor:
    """The tensor among what a module gives."""
    for name in ("logits", "last_hidden_state"):
        if isinstance(getattr(given, name, None), Tensor):
            return getattr(given, name)
    first = given[0] if isinstance(given, (tuple, list)) else given
    if not isinstance(first, Tensor):
        raise InputError(f"the module gives a {type(given).__name__}; output= must make a tensor of it")
    return first


def _call(module: nn.Module, arguments: Sequence[str], inputs: Sequence[Any]) -> Any:
    return module(**dict(zip(arguments, inputs, strict=True))) if arguments else module(*inputs)


def _take_interface(module: nn.Module) -> None:
    """Let a model of Hugging Face call our attention function."""
    transformers = sys.modules.get("transformers")
    if transformers is None or not isinstance(module, transformers.PreTrainedModel):
        return
    transformers.AttentionInterface.register(INTERFACE, observed.interface)
    masks = transformers.AttentionMaskInterface
    masks.register(INTERFACE, masks()["eager"])
    module.set_attn_implementation(INTERFACE)


def search(module: nn.Module, run: Callable[[], Any]) -> tuple[list[Part], list[nn.Module]]:
    """The parts of ``module`` that compute attention, in their order, and the layers around them whose
    output can stand for all that was computed in them.
    """
    names = {part: name for name, part in module.named_modules()}
    parts: dict[nn.Module, Part] = {}
    stack: list[nn.Module] = []
    given: dict[nn.Module, list[Any]] = {}

    def see(part: nn.Module, heads: int, width: int, cross: bool) -> None:
        if part in parts:
            parts[part].calls += 1
        else:
            parts[part] = Part(names[part], part, heads, width, cross)

    def begin(part: nn.Module, args: Any, kwargs: Any) -> None:
        stack.append(part)
        if isinstance(part, nn.MultiheadAttention):
            told = dict(zip(("query", "key"), args, strict=False)) | kwargs
            see(part, part.num_heads, part.head_dim, told["query"] is not told["key"])

    def end(part: nn.Module, args: Any, result: Any) -> None:
        stack.pop()
        given.setdefault(part, []).append(result)

    def found(part: nn.Module | None, q: Tensor, k: Tensor, v: Tensor) -> None:
        part = stack[-1] if part is None else part
        cross = bool(getattr(part, "is_cross_attention", q.shape[-2] != k.shape[-2]))
        see(part, q.shape[1] if q.dim() == 4 else 1, v.shape[-1], cross)

    with ExitStack() as hooks, torch.no_grad(), observed.searching(found):
        for part in names:
            hooks.callback(part.register_forward_pre_hook(begin, with_kwargs=True).remove)
            hooks.callback(part.register_forward_hook(end).remove)
        run()
    inside = {name for part in parts.values() for name in _above(part.path)}
    layers = [
        part
        for holder in module.modules()
        if isinstance(holder, (nn.ModuleList, nn.Sequential))
        for part in holder
        if names[part] in inside and _is_plain(given.get(part, []))
    ]
    return list(parts.values()), layers


def _above(path: str) -> list[str]:
    words = path.split(".")
    return [".".join(words[:count]) for count in range(1, len(words))]


def _is_plain(results: list[Any]) -> bool:
    """Whether a module was called once and gave nothing but a tensor."""
    return len(results) == 1 and isinstance(results[0], Tensor)


def _check_calls(part: Part) -> None:
    if part.calls > 1:
        raise LabError(
            f"the module {part.path or 'itself'} computes attention {part.calls} times in one pass, so its "
            "heads have no names of their own; give each call a module of its own"
        )


def _sites(parts: list[Part]) -> list[Site]:
    found = [_LAYER.match(part.path) for part in parts]
    stacks = [match["stack"] if match else "" for match in found]
    decoding = {stack for stack, part in zip(stacks, parts, strict=True) if part.cross}
    sites = []
    for number, (part, match, stack) in enumerate(zip(parts, found, stacks, strict=True)):
        queries: Side = "answer" if stack in decoding else "input"
        layer = int(match["layer"]) if match else number
        sites.append(
            Site(
                path=part.path,
                stack=stack,
                layer=layer,
                kind="cross" if part.cross else "self",
                heads=part.heads,
                queries=queries,
                keys="input" if part.cross else queries,
            )
        )
    return sites


@torch.no_grad()
def _compare(name: str, wanted: Tensor, made: Wrapped, inputs: Sequence[Any]) -> None:
    """Refuse a copy whose outputs are not those of the module, which are ``wanted``."""
    found = made(*inputs)
    with record(made, *taps(made, "*.pattern")):
        looked = made(*inputs)
    allowed = TOLERANCE * max(1.0, wanted.abs().max().item())
    for words, each in (("", found), (" while somebody looks", looked)):
        difference = (each - wanted).abs().max().item()
        if not difference <= allowed:
            raise LabError(
                f"the wrapped {name} differs from the module by {difference:.2g}{words}; "
                f"at most {allowed:.2g} is allowed"
            )
