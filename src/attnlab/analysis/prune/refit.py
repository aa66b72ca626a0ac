"""Making up for what was cut away, by least squares instead of training.

Every sublayer ends in a linear map of features h (the heads' z, or the hidden layer) that is added to the
residual stream. After heads are gone, the stream x that reaches a sublayer differs from the whole model's,
and so does h. Going through the sublayers in the order of computation, each last map is chosen anew such
that the stream behind it comes as near as possible to the stream S of the whole model at this place:

    minimise over W, b   sum over training tokens |x + h W + b - S|^2  +  ridge |W - W_0|^2

So a sublayer makes up for itself and for all that is missing before it. This is optimal brain surgery
(Hassibi and Stork, 1992) applied sublayer by sublayer (Dong, Chen and Pan, 2017). An attention's values are
chosen anew as well; queries and keys, and with them where heads look, stay as they are.
One pass, no gradient.

A head looks with its pattern A at the tokens m of its memory and adds f V O to the output, f = A m: a
linear map of what it sees, whose rank is at most the head's width K. For one head the best such map towards
given values y is reduced-rank regression (Izenman, 1975): with the least-squares solution M of f M = y, and
U the first K right singular vectors of f M,

    V = M U,    O = U^T

Of several heads, each is chosen in turn towards what the others leave over, a few times around. Products
of f with f and with y are all that is needed of the data.
"""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import FeedForward, NoSum, PostNorm, Residual
from attnlab.model import Model
from attnlab.sets import Examples
from attnlab.taps import record, supply

RIDGE = 1e-3  # of the mean square of a feature

Streams = dict[str, Float[Tensor, "B T D"]]
"""The residual stream behind each sublayer, before a norm that closes it, by the residual's path."""


class _ReachedError(Exception):
    """The pass came to the map in question; the rest of it is not needed."""


def residuals(model: Model) -> dict[str, Residual]:
    """Every residual by its path, in the order of computation."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Residual)}


@torch.no_grad()
def streams(model: Model, examples: Examples) -> Streams:
    """What ``model`` sums up at every residual."""
    seen: Streams = {}

    def see(name: str, closed: bool, _: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        seen[name] = given[0] if closed else out

    with ExitStack() as stack:
        for name, residual in residuals(model).items():
            closed = isinstance(residual, PostNorm)
            watched = residual.norm if closed else residual
            stack.enter_context(watched.register_forward_hook(partial(see, name, closed)))
        model(*examples.inputs)
    return seen


@torch.no_grad()
def refit(
    model: Model,
    examples: Examples,
    wanted: Streams,
    *,
    known: Mapping[str, Tensor] | None = None,
) -> None:
    """Choose what every sublayer of ``model`` adds anew, so that its streams come near ``wanted``.

    ``known`` are residuals' ``out`` of the first sublayers, which then stay as they are.
    """
    outs = dict(known or {})
    for name, residual in residuals(model).items():
        if f"{name}.out" in outs:
            continue
        own = model.mask_at(name, *examples.inputs)
        rows = slice(None) if own is None else own.flatten()  # padding need not come near anything
        sublayer = model.get_submodule(name.removesuffix("_residual"))
        with supply(model, outs):
            stream, features, seen = _reach(model, examples, residual, sublayer)
        target = wanted[name] if isinstance(residual, NoSum) else wanted[name] - stream
        out = _fit(sublayer, features, seen, target, rows)
        outs[f"{name}.out"] = residual(stream, lambda _, out=out: out)


def _fit(
    sublayer: nn.Module,
    h: Float[Tensor, "B T F"],
    seen: Float[Tensor, "H B T D"] | None,
    target: Float[Tensor, "B T D"],
    rows: slice | Bool[Tensor, "BT"],
) -> Tensor:
    """Change the sublayer's maps, by the tokens ``rows``; what it makes of ``h`` and ``seen`` now."""
    last = _last(sublayer)
    if isinstance(last, NoHeads):
        last.bias.add_((target - last.bias).flatten(0, 1)[rows].mean(dim=0))
        return last.bias.expand_as(target)
    if isinstance(last, nn.Linear):
        if isinstance(sublayer, Attention) and seen is not None:
            choose_values(sublayer, seen.flatten(1, 2)[:, rows], target.flatten(0, 1)[rows])
            h = concatenated_z(sublayer, seen)
        x, y = h.flatten(0, 1)[rows], (target - last(h)).flatten(0, 1)[rows]  # ridge regression of y on x
        centre, middle = x.mean(dim=0), y.mean(dim=0)
        x, y = x - centre, y - middle
        gram = (x.T @ x).double()
        gram.diagonal().add_(RIDGE * gram.diagonal().mean() + torch.finfo(torch.double).tiny)
        weight = torch.linalg.solve(gram, (x.T @ y).double()).to(h.dtype)
        last.weight.add_(weight.T)
        last.bias.add_(middle - centre @ weight)
    made: Tensor = last(h)
    return made


def _last(sublayer: nn.Module) -> nn.Module:
    """The map that a sublayer ends in."""
    match sublayer:
        case Attention():
            return sublayer.output
        case FeedForward():
            return sublayer.down
        case _:
            return sublayer


def _reach(
    model: Model, examples: Examples, residual: Residual, sublayer: nn.Module
) -> tuple[Tensor, Tensor, Float[Tensor, "H B T D"] | None]:
    """Compute ``model`` up to the last map of ``sublayer``.

    What reached the residual, what stands before the last map, and what each head of an attention sees of
    its memory.
    """
    given: dict[str, Tensor] = {}

    def look(name: str, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        given[name] = inputs[0]
        if name == "features":
            raise _ReachedError

    watched = {"stream": residual, "features": _last(sublayer)}
    with ExitStack() as stack:
        stack.enter_context(suppress(_ReachedError))
        if isinstance(sublayer, Attention):
            watched["memory"] = sublayer.value
            patterns = stack.enter_context(record(sublayer, "pattern", detach=False))
        for name, module in watched.items():
            stack.enter_context(module.register_forward_pre_hook(partial(look, name)))
        model(*examples.inputs)
    seen = (patterns["pattern"] @ given["memory"][:, None]).transpose(0, 1) if "memory" in given else None
    return given["stream"], given["features"], seen


ROUNDS = 3


@torch.no_grad()
def choose_values(
    attention: Attention,
    seen: Float[Tensor, "H N D"],
    target: Float[Tensor, "N D"],
    *,
    ridge: float = RIDGE,
) -> None:
    """Choose values and output of ``attention`` anew, so that it makes ``target`` of what is ``seen``.

    Means are left to the output's bias, which is not chosen here.
    """
    output = attention.output
    assert isinstance(output, nn.Linear)
    heads, width, size = attention.heads, attention.head_width, seen.shape[2]
    f = (seen - seen.mean(dim=1, keepdim=True)).transpose(0, 1).flatten(1)  # (N, H D)
    y = target - target.mean(dim=0)
    grams = (f.T @ f).double().view(heads, size, heads, size).transpose(1, 2)  # (H, H, D, D)
    found = (f.T @ y).double().view(heads, size, size)
    values, writes = _values(attention).double(), output.weight.T.double().view(heads, width, size)
    maps = values @ writes  # (H, D, D)
    for _ in range(ROUNDS):
        for head in range(heads):
            gram = grams[head, head].clone()
            gram.diagonal().add_(ridge * gram.diagonal().mean() + torch.finfo(torch.double).tiny)
            left = found[head] - (grams[head] @ maps).sum(dim=0)
            better = maps[head] + torch.linalg.solve(gram, left)
            _, vectors = torch.linalg.eigh(better.T @ gram @ better)
            main = vectors[:, -width:]
            values[head], writes[head] = better @ main, main.T
            maps[head] = values[head] @ writes[head]
    attention.value.weight.copy_(values.transpose(1, 2).flatten(0, 1))
    attention.value.bias.zero_()
    output.weight.copy_(writes.flatten(0, 1).T)


@torch.no_grad()
def concatenated_z(attention: Attention, seen: Float[Tensor, "H B T D"]) -> Float[Tensor, "B T HK"]:
    """The heads' z side by side, for what is ``seen``; patterns sum to one, so the bias passes through."""
    z = torch.einsum("hbtd,hdk->bthk", seen, _values(attention)).flatten(2)
    return z + attention.value.bias


def _values(attention: Attention) -> Float[Tensor, "H D K"]:
    weight = attention.value.weight
    return weight.view(attention.heads, attention.head_width, weight.shape[1]).transpose(1, 2)
