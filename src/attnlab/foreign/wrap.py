"""Wrapping: a copy of a module, observed where it computes attention, as a ``Wrapped`` model.

    vit = wrapped(Wrapped, timm.create_model("vit_tiny_patch16_224", num_classes=10), reads="cls")
    vit.sites()                          # blocks.0.attn with 3 heads, ...
    with record(vit, "blocks.3.attn.pattern") as seen:
        vit(images)

The module is run once on ``inputs`` to see which of its parts compute attention, and in which order. Then
the copy's outputs are compared with the module's own: as it computes, with every pattern looked at, and
with every head's output supplied.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.devices import device_of
from attnlab.errors import LabError
from attnlab.foreign import observed
from attnlab.foreign.inputs import made_inputs, vector_inputs
from attnlab.foreign.model import Call, Output, Reads, Source, W, Wrapped
from attnlab.foreign.projections import find_projections
from attnlab.foreign.search import Found, Part, search
from attnlab.model import Side, Site
from attnlab.models.images import patch_grid
from attnlab.taps import record, supply, taps

TOLERANCE = 1e-5
"""Of the largest output, or of 1 if all are smaller."""
INTERFACE = "attnlab"
"""The name of our attention function in Hugging Face's interface."""
HELD = "attention"
"""The name of an attention that is wrapped by itself."""

_LAYER = re.compile(r"(?P<stack>.*?)\.?\b(?P<layer>\d+)\b")


def wrapped(
    kind: type[W],
    module: nn.Module,
    *,
    inputs: Sequence[Any] | dict[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    reads: Reads = "mean",
    output: Output | None = None,
    batch_first: bool | None = None,
) -> W:
    """A copy of ``module`` as a ``kind`` of ``Wrapped``, once it has been seen to compute the same."""
    arguments: tuple[str, ...] = ()
    if isinstance(inputs, dict):
        arguments, inputs = tuple(inputs), tuple(inputs.values())
    if batch_first is None:
        batch_first = _batch_first(module)
    if inputs is None:
        named = made_inputs(module)
        arguments, inputs = tuple(name for name in named if not name.isdigit()), tuple(named.values())
        inputs = inputs if batch_first else tuple(each.transpose(0, 1) for each in inputs)
    inputs, fixed = tuple(_there(module, each) for each in inputs), fixed or {}
    fixed = {name: _there(module, each) for name, each in fixed.items()}
    call = Call(arguments, fixed, output, batch_first)
    copy = deepcopy(module).eval()
    with torch.no_grad(), _formulas():  # not inference mode: modules may keep what they compute
        wanted = call.logits(call(copy, inputs))
    _take_interface(copy)
    rows = next(each.shape[0 if batch_first else 1] for each in inputs if isinstance(each, Tensor))
    found = search(copy, inputs, rows, lambda: call(copy, inputs))
    if not found.parts:
        raise LabError(
            f"the module {type(module).__name__} computes no attention that can be seen; what can are "
            "nn.MultiheadAttention, calls of F.scaled_dot_product_attention, and Hugging Face's models"
        )
    for part in found.parts:
        _check_calls(part)
    source = _source(module, found, inputs, call)
    streams = _observe_all(copy, found)
    if not found.parts[0].path:  # it is itself an attention
        copy, found.parts[0].path = Holder(copy), HELD
        source = replace(source, embed=source.embed and f"{HELD}.{source.embed}")
    made = kind(
        copy,
        _sites(found.parts),
        called=type(module).__name__,
        call=call,
        reads=reads,
        source=source,
        sequence=wanted.dim() > 2,
        streams=streams,
    )
    made.eval()
    _compare(wanted, made, inputs)
    made.find_brief(inputs, wanted, TOLERANCE)
    return made


def _there(module: nn.Module, value: Any) -> Any:
    """On the device of ``module``, if it is a tensor."""
    return value.to(device_of(module)) if isinstance(value, Tensor) else value


class Holder(nn.Module):
    """Gives an attention that stands for itself a path."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.add_module(HELD, module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_submodule(HELD)(*args, **kwargs)


def _batch_first(module: nn.Module) -> bool:
    """Whether examples lie along the first axis of what ``module`` takes, as far as torch's tell."""
    attentions = (part for part in module.modules() if isinstance(part, nn.MultiheadAttention))
    return vector_inputs(module) is None or all(part.batch_first for part in attentions)


@contextmanager
def _formulas() -> Iterator[None]:
    """Torch's transformers as their formulas say: the fast path gives zeros where there is padding."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _take_interface(module: nn.Module) -> None:
    """Let a model of Hugging Face call our attention function."""
    transformers = sys.modules.get("transformers")
    if transformers is None or not isinstance(module, transformers.PreTrainedModel):
        return
    transformers.AttentionInterface.register(INTERFACE, observed.interface)
    masks = transformers.AttentionMaskInterface
    masks.register(INTERFACE, masks()["eager"])
    module.set_attn_implementation(INTERFACE)


def _observe_all(module: nn.Module, found: Found) -> list[str]:
    """Observe all that was found in ``module``, and say which layers are."""
    for part in found.parts:
        torchs = isinstance(part.module, nn.MultiheadAttention)
        own = observed.AttentionTaps(heads=part.heads, head_width=part.head_width)
        own.turned = torchs and not part.module.batch_first
        kind = observed.ObservedMultihead if torchs else observed.ObservedAttention
        observed.observe(part.module, own, kind)
        projections = find_projections(module, part.path)
        for each in () if projections is None else projections.inputs:
            observed.let_skip(each, own)
    for each in (*found.layers, *found.first):
        if not hasattr(each, observed.CHILD):
            inside = [part for part in each.modules() if isinstance(part, observed.AttentionTaps)]
            single = len(inside) == 1
            tap = observed.LayerTap(*inside) if single else observed.OutTap()
            tap.turned = each in found.turned
            observed.observe(each, tap, observed.ObservedLayer if single else observed.Observed)
    attending = {part.module for part in found.parts}
    names = {part: name for name, part in module.named_modules()}
    return [names[each] for each in found.layers if each not in attending]


def _source(module: nn.Module, found: Found, inputs: Sequence[Any], call: Call) -> Source:
    """Where the parts of an input are, as far as that was seen."""
    own = vector_inputs(module)
    if own is not None:
        cross = found.parts[-1].cross
        return Source(own[-2:] if isinstance(module, nn.MultiheadAttention) and cross else own)
    if found.embed is not None:
        path, number = found.embed
        return Source((number,), embed=path)
    first = call.turned(inputs)[0] if not call.batch_first else inputs[0]
    tokens = found.parts[0].keys
    if not isinstance(first, Tensor) or first.dim() not in (3, 4) or first.shape[1:-1] == (tokens,):
        return Source()
    high, wide = first.shape[-2:]
    patch = found.patch or high // patch_grid((high, wide), tokens)[0]
    return Source(patch=patch if high % patch == wide % patch == 0 else None)


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
def _compare(wanted: Tensor, made: Wrapped, inputs: Sequence[Any]) -> None:
    """Refuse a copy whose outputs are not those of the module, which are ``wanted``."""
    results = {"": made(*inputs)}
    with record(made, *taps(made, "*.pattern"), *taps(made, "*.z")) as seen:
        results[" while somebody looks"] = made(*inputs)
    with supply(made, {name: value for name, value in seen.items() if name.endswith(".z")}):
        results[" with heads supplied"] = made(*inputs)
    allowed = TOLERANCE * max(1.0, wanted.abs().max().item())
    for words, each in results.items():
        difference = (each - wanted).abs().max().item()
        if not difference <= allowed:
            raise LabError(
                f"the wrapped {made.called} differs from the module by {difference:.2g}{words}; "
                f"at most {allowed:.2g} is allowed"
            )
