"""Making up for what was cut away, by least squares instead of training.

Every sublayer ends in a linear map of features h (the heads' z, or the hidden layer) that is added to the
residual stream. After heads are gone, the stream x that reaches a sublayer differs from the whole model's,
and so does h. Going through the sublayers in the order of computation, each last map is chosen anew such
that the stream behind it comes as near as possible to the stream S of the whole model at this place:

    minimise over W, b   sum over training tokens |x + h W + b - S|^2  +  ridge |W - W_0|^2

So a sublayer makes up for itself and for all that is missing before it. This is optimal brain surgery
(Hassibi and Stork, 1992) applied sublayer by sublayer (Dong, Chen and Pan, 2017). One pass, no gradient.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.attention import Attention, NoHeads
from attnlab.blocks import FeedForward, NoSum, PostNorm, Residual
from attnlab.taps import supply
from attnlab.tasks import Examples

RIDGE = 1e-3  # of the mean square of a feature

Streams = dict[str, Float[Tensor, "B T D"]]
"""The residual stream behind each sublayer, before a norm that closes it, by the residual's path."""


class _ReachedError(Exception):
    """The pass came to the map in question; the rest of it is not needed."""


def residuals(model: nn.Module) -> dict[str, Residual]:
    """Every residual by its path, in the order of computation."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Residual)}


@torch.no_grad()
def streams(model: nn.Module, examples: Examples) -> Streams:
    """What ``model`` sums up at every residual."""
    seen: Streams = {}
    hooks = []
    for name, residual in residuals(model).items():
        if isinstance(residual, PostNorm):

            def before(_: nn.Module, given: tuple[Tensor], *, name: str = name) -> None:
                seen[name] = given[0]

            hooks.append(residual.norm.register_forward_pre_hook(before))
        else:

            def behind(_: nn.Module, __: object, out: Tensor, *, name: str = name) -> None:
                seen[name] = out

            hooks.append(residual.register_forward_hook(behind))
    try:
        model(*examples.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


@torch.no_grad()
def refit(model: nn.Module, examples: Examples, wanted: Streams, *, ridge: float = RIDGE) -> None:
    """Choose the last map of every sublayer of ``model`` anew, so that its streams come near ``wanted``."""
    known: dict[str, Tensor] = {}
    for name, residual in residuals(model).items():
        sublayer = model.get_submodule(name.removesuffix("_residual"))
        with supply(model, known):
            x, features = _reach(model, examples, residual, sublayer)
        target = wanted[name] if isinstance(residual, NoSum) else wanted[name] - x
        out = _fit(sublayer, features, target, ridge)
        known[f"{name}.out"] = residual(x, lambda _, out=out: out)


def _fit(sublayer: nn.Module, h: Float[Tensor, "B T F"], target: Tensor, ridge: float) -> Tensor:
    """Change the sublayer's last map; what it makes of ``h`` now."""
    last = _last(sublayer)
    if isinstance(last, NoHeads):
        last.bias.add_((target - last.bias).flatten(0, 1).mean(dim=0))
        return last.bias.expand_as(target)
    if isinstance(last, nn.Linear):
        weight, bias = _solve(h.flatten(0, 1), (target - last(h)).flatten(0, 1), ridge)
        last.weight.add_(weight.T)
        last.bias.add_(bias)
    made: Tensor = last(h)
    return made


def _solve(
    h: Float[Tensor, "N F"], missing: Float[Tensor, "N D"], ridge: float
) -> tuple[Float[Tensor, "F D"], Float[Tensor, "D"]]:
    """What to add to weights and bias, such that they give what is missing (ridge regression)."""
    centre, middle = h.mean(dim=0), missing.mean(dim=0)
    x, y = h - centre, missing - middle
    gram = (x.T @ x).double()
    gram.diagonal().add_(ridge * gram.diagonal().mean() + torch.finfo(torch.double).tiny)
    weight = torch.linalg.solve(gram, (x.T @ y).double()).to(h.dtype)
    return weight, middle - centre @ weight


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
    model: nn.Module, examples: Examples, residual: Residual, sublayer: nn.Module
) -> tuple[Tensor, Tensor]:
    """The stream that reaches ``residual``, and the features before the sublayer's last map."""
    seen: list[Tensor] = []
    with _stopping(residual, _last(sublayer), seen), suppress(_ReachedError):
        model(*examples.inputs)
    return seen[0], seen[1]


@contextmanager
def _stopping(residual: Residual, last: nn.Module, seen: list[Tensor]) -> Iterator[None]:
    def enter(_: nn.Module, given: tuple[Tensor, object]) -> None:
        seen.append(given[0])

    def reach(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0])
        raise _ReachedError

    hooks = (residual.register_forward_pre_hook(enter), last.register_forward_pre_hook(reach))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
