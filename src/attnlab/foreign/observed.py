"""Attention in modules of others, with a tap at every quantity one may want to see.

A module that computes attention is observed by giving it another class, a subclass of its own, and one
child that holds the taps. What it computes stays as it was, but for the attention itself:

    scores  = scale q k^T + mask                (B, H, T, S), -inf where a key is not visible
    pattern = softmax over keys of scores       (B, H, T, S)
    z       = pattern v                         (B, H, T, K)

Three ways lead there: torch's ``nn.MultiheadAttention``, whose projections are computed here; the attention
interface of Hugging Face's models; and any call of ``F.scaled_dot_product_attention``, which is intercepted
while an observed module computes. Nobody looking at ``scores`` or ``pattern``, torch's fused kernel
computes z. Keys and values that several heads share (Ainslie et al., 2023) are repeated, so that a head is
always a head of the queries.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlab.errors import LabError
from attnlab.taps import Heads, Tap

CHILD = "attnlab_taps"
"""The child of an observed module that holds its taps."""


class OutTap(nn.Module):
    """The tap at what a module gives: a tensor, or a tuple whose first item is one."""

    known: tuple[bool, int] | None = None
    """Whether it gives a tuple, and how many None stand in it behind the tensor; None: not known yet, or
    something that was computed stands there.
    """
    turned = False
    """Whether the module gives (T, B, D); at the tap it is (B, T, D) always."""

    def __init__(self) -> None:
        super().__init__()
        self.out = Tap()

    def ready(self) -> Any:
        """What the module gives if its computation is left out; None if it has to be computed."""
        if self.out.supplied is None or self.known is None:
            return None
        value, (packed, others) = self._turn(self.out(self.out.supplied)), self.known
        return (value, *[None] * others) if packed else value

    def passed(self, given: Any) -> Any:
        """What the module gives, its tensor passed through the tap."""
        packed = isinstance(given, tuple | list)
        first, *rest = given if packed else [given]
        if not isinstance(first, Tensor):
            raise LabError(
                f"a module that computes attention gives a {type(given).__name__}; what can be observed is "
                "a tensor, or a tuple that begins with one"
            )
        self.known = (packed, len(rest)) if all(each is None for each in rest) else None
        value = self._turn(self.out(self._turn(first) if self.out.supplied is None else self.out.supplied))
        return (value, *rest) if packed else value

    def _turn(self, value: Tensor) -> Tensor:
        return value.transpose(0, 1) if self.turned and value.dim() == 3 else value


class ReachedError(Exception):
    """An attention has its z; the rest of the pass is not wanted."""

    def __init__(self, z: Tensor) -> None:
        super().__init__("z is reached")
        self.z = z


@final
class AttentionTaps(Heads, OutTap):
    """The taps of one attention, and its formulas."""

    settled: Tensor | None = None
    """What z is, behind its tap, where that is known."""
    stopping = False

    @property
    def has_z(self) -> bool:
        """Whether z need not be computed."""
        return self.settled is not None or self.z.supplied is not None

    def known_z(self) -> Tensor | None:
        """z behind its tap, if it need not be computed."""
        if self.settled is not None or self.z.supplied is None:
            return self.settled
        return self.z(self.z.supplied)

    def reach(self, run: Callable[[], Any]) -> Tensor:
        """z before its tap, as soon as ``run`` has computed it."""
        self.stopping = True
        try:
            run()
        except ReachedError as reached:
            return reached.z
        finally:
            self.stopping = False
        raise LabError("a layer did not come to its attention")

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None,
        scale: float,
        dropout: float = 0.0,
        weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """z (B, H, T, K), and the pattern if ``weights`` are wanted.

        ``mask`` is true where a key is visible, or is added to the scores. Who sees no key has a pattern of
        zeros, as with torch's kernel.
        """
        if not weights and (known := self.known_z()) is not None:
            return known, None
        q, k, v = self.q(q), self.k(_repeated(k, q.shape[1])), self.v(_repeated(v, q.shape[1]))
        if not (weights or self.scores.active or self.pattern.active):
            with computing(self, directly=True):
                z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale)
            return self._passed(z), None
        scores = q @ k.transpose(-2, -1) * scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
        scores = self.scores(scores)
        blind = scores.isneginf().all(dim=-1, keepdim=True)
        pattern = self.pattern(scores.masked_fill(blind, 0).softmax(dim=-1).masked_fill(blind, 0))
        known = self.known_z()
        return self._passed(F.dropout(pattern, dropout) @ v) if known is None else known, pattern

    def _passed(self, z: Tensor) -> Tensor:
        if self.stopping:
            raise ReachedError(z)
        return self.z(z)


def _repeated(keys: Tensor, heads: int) -> Tensor:
    """Keys or values for every head of the queries."""
    return keys if keys.shape[1] == heads else keys.repeat_interleave(heads // keys.shape[1], dim=1)


class Observed(nn.Module):
    """Passes what a module gives through a tap; what is supplied there is not computed."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        taps: OutTap = getattr(self, CHILD)
        ready = taps.ready()
        return taps.passed(self._given(*args, **kwargs)) if ready is None else ready

    def _given(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs)  # that of the module's own class


@final
class LayerTap(OutTap):
    """The tap at what a layer around one attention gives.

    While ``reads`` says which tokens of it count, only these are computed, but for the attention: what a
    layer does behind z it does for each token by itself.
    """

    reads: slice | None = None

    def __init__(self, inside: AttentionTaps) -> None:
        super().__init__()
        self.inside = (inside,)  # in a tuple: it is no part of this one


class ObservedLayer(Observed):
    """A layer around one attention."""

    def _given(self, *args: Any, **kwargs: Any) -> Any:
        taps: LayerTap = getattr(self, CHILD)
        if taps.reads is None:
            return super()._given(*args, **kwargs)
        (attention,), (x, *rest) = taps.inside, args
        z = attention.z.supplied
        if z is None:
            whole = super()._given
            z = attention.reach(lambda: whole(*args, **kwargs))
        attention.settled = attention.z(z)[:, :, taps.reads]
        try:
            return super()._given(x[:, taps.reads], *rest, **kwargs)
        finally:
            attention.settled = None


class ObservedAttention(Observed):
    """The same for a module that computes attention by a call that is intercepted."""

    def _given(self, *args: Any, **kwargs: Any) -> Any:
        with computing(getattr(self, CHILD)):
            return super()._given(*args, **kwargs)


class ObservedMultihead(Observed):
    """Torch's ``nn.MultiheadAttention``, its formulas written out.

    Differing from ours, its projections may be one matrix, its masks are true where a key is hidden, and it
    may give the pattern, by default as a mean over heads.
    """

    def _given(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        attention: nn.MultiheadAttention = self  # type: ignore[assignment]  # by its own class
        taps: AttentionTaps = getattr(self, CHILD)
        single = query.dim() == 2
        if not need_weights and (known := taps.known_z()) is not None:
            return self._mixed(known, single=single), None
        rows = [
            x[None] if single else x if attention.batch_first else x.transpose(0, 1)
            for x in (query, key, value)
        ]
        q, k, v = (_heads(x, attention.num_heads) for x in _projected(attention, *rows))
        mask = _added(attn_mask, key_padding_mask, q, single=single)
        k, v, mask = _extended(attention, k, v, mask)
        dropout, scale = attention.dropout if attention.training else 0.0, q.shape[-1] ** -0.5
        z, pattern = taps.attend(q, k, v, mask=mask, scale=scale, dropout=dropout, weights=need_weights)
        out = self._mixed(z, single=single)
        if pattern is None:
            return out, None
        weights = pattern.mean(dim=1) if average_attn_weights else pattern
        return out, weights[0] if single else weights

    def _mixed(self, z: Tensor, *, single: bool) -> Tensor:
        attention: nn.MultiheadAttention = self  # type: ignore[assignment]
        out: Tensor = attention.out_proj(z.transpose(1, 2).flatten(2))
        return out[0] if single else out if attention.batch_first else out.transpose(0, 1)


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)  # (B, H, T, K)


def _projected(attention: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
    packed = attention.in_proj_weight
    weights = (
        (attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight)
        if packed is None
        else packed.chunk(3)
    )
    biases = (None,) * 3 if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)
    return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _added(mask: Tensor | None, padding: Tensor | None, q: Tensor, *, single: bool) -> Tensor | None:
    """Both masks as what is added to scores."""
    parts = []
    if mask is not None:
        heads = mask if mask.dim() == 2 else mask.view(len(q), -1, *mask.shape[1:])
        parts.append(_as_bias(heads, q))
    if padding is not None:
        parts.append(_as_bias(padding[None] if single else padding, q)[:, None, None])
    return sum(parts[1:], parts[0]) if parts else None


def _as_bias(hidden: Tensor, like: Tensor) -> Tensor:
    if hidden.dtype is not torch.bool:
        return hidden.to(like.dtype)
    return torch.zeros_like(hidden, dtype=like.dtype).masked_fill(hidden, -math.inf)


def _extended(
    attention: nn.MultiheadAttention, k: Tensor, v: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """With the trained key and value that ``add_bias_kv`` asks for, and the zeros of ``add_zero_attn``."""
    more: list[tuple[Tensor, Tensor]] = []
    if attention.bias_k is not None and attention.bias_v is not None:
        more.append((_heads(attention.bias_k, k.shape[1]), _heads(attention.bias_v, k.shape[1])))
    if attention.add_zero_attn:
        more.append((torch.zeros_like(k[:, :, :1]), torch.zeros_like(v[:, :, :1])))
    for key, value in more:
        k = torch.cat((k, key.expand(len(k), -1, -1, -1)), dim=2)
        v = torch.cat((v, value.expand(len(v), -1, -1, -1)), dim=2)
        mask = None if mask is None else F.pad(mask, (0, 1))
    return k, v, mask


def observe(module: nn.Module, taps: OutTap, kind: type[Observed]) -> None:
    """Let ``module`` be observed through ``taps``."""
    module.add_module(CHILD, taps)
    _derive(module, kind)


def _derive(module: nn.Module, kind: type[nn.Module]) -> None:
    own = type(module)
    module.__class__ = type(own.__name__, (kind, own), {"__module__": own.__module__})


class Skipped(nn.Module):
    """A map that makes queries, keys or values: nothing is computed while z is supplied."""

    def forward(self, x: Tensor) -> Tensor:
        (taps,) = getattr(self, CHILD)
        if not taps.has_z:
            return super().forward(x)  # that of the module's own class
        return x.new_zeros(()).expand(*x.shape[:-1], out_width(self))


def let_skip(module: nn.Module, taps: AttentionTaps) -> None:
    """Let ``module`` be left out while z is supplied at ``taps``."""
    setattr(module, CHILD, (taps,))  # in a tuple: it is no part of the module
    _derive(module, Skipped)


def out_width(module: nn.Module) -> int:
    """The width of what a linear map gives: torch's, or Hugging Face's of GPT-2, whose weight is turned."""
    weight: Any = module.weight
    return int(weight.shape[0 if isinstance(module, nn.Linear) else 1])


Seen = Callable[[nn.Module | None, Tensor, Tensor, Tensor], None]


class _Here(threading.local):
    """What this thread is about."""

    taps: AttentionTaps | None = None  # whose attention is being computed
    directly = False  # whether the kernel is called by these taps themselves
    found: Seen | None = None  # who is told of attention that nobody observes


_here = _Here()


@contextmanager
def computing(taps: AttentionTaps, *, directly: bool = False) -> Iterator[None]:
    """Calls of attention in this thread belong to ``taps`` meanwhile, or are left alone."""
    before = _here.taps, _here.directly
    _here.taps, _here.directly = taps, directly
    try:
        yield
    finally:
        _here.taps, _here.directly = before


@contextmanager
def searching(found: Seen) -> Iterator[None]:
    """Tell ``found`` of attention that nobody observes: its module, if that is known, q, k and v."""
    _here.found = found
    try:
        with Interception():
            yield
    finally:
        _here.found = None


@final
class Interception(TorchFunctionMode):
    """Leads calls of ``F.scaled_dot_product_attention`` to the taps of the module that computes."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention or _here.directly:
            return func(*args, **kwargs)
        if _here.taps is not None:
            return _fused(_here.taps, *args, **kwargs)
        if _here.found is not None:
            _here.found(None, *_named(*args, **kwargs))
        return func(*args, **kwargs)


def _named(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor, Tensor]:
    """What the kernel was given, by order or by name."""
    return query, key, value


def _fused(
    taps: AttentionTaps,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What ``F.scaled_dot_product_attention`` gives for the same arguments."""
    if is_causal:
        shape = query.shape[-2], key.shape[-2]
        attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
    single = query.dim() == 3
    if single and attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask[:, None]
    q, k, v = (x[:, None] if single else x for x in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    z, _ = taps.attend(q, k, v, mask=attn_mask, scale=scale, dropout=dropout_p)
    return z[:, 0] if single else z


def interface(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention function that Hugging Face's models call; it gives no weights, taps do."""
    taps = getattr(module, CHILD, None)
    if taps is None:  # nobody observes it yet
        taps = AttentionTaps(heads=query.shape[1], head_width=value.shape[-1])
        if _here.found is not None:
            _here.found(module, query, key, value)
    for name in ("softcap", "s_aux"):
        if more.get(name) is not None:
            raise LabError(f"the model's attention has {name}, which cannot be observed")
    mask = None if attention_mask is None else _hiding(attention_mask[..., : key.shape[-2]])
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    z, _ = taps.attend(query, key, value, mask=mask, scale=scale, dropout=dropout)
    return z.transpose(1, 2).contiguous(), None


def _hiding(mask: Tensor) -> Tensor:
    """The mask with -inf for hidden keys, which it has the lowest number for, but where all are hidden."""
    if mask.dtype is torch.bool:
        return mask
    hidden = mask <= torch.finfo(mask.dtype).min
    return mask.masked_fill(hidden & ~hidden.all(dim=-1, keepdim=True), -math.inf)
