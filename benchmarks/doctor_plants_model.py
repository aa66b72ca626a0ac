"""Plants in the model: attention, masks, positions, residual sums, norms, first weights, decoding."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from doctor_plants import Plant
from doctor_tasks import CLASSES, IMAGES, SEQUENCES, TASKS
from torch import Tensor, nn

from attnlab.attention import Attention
from attnlab.blocks import FeedForward, Residual
from attnlab.model import Model, attentions
from attnlab.models import Seq2Seq
from attnlab.models import classifier as classifiers
from attnlab.specs import Spec

Change = Callable[[Any], Any]
TEXTS = ("addition", "reverse")
PADDED = ("brackets", "sorting")


def override(part: nn.Module, name: str, make: Callable[..., Any]) -> None:
    """Let ``part`` compute its method ``name`` by what ``make`` gives of the old one."""
    setattr(part, name, MethodType(make(getattr(type(part), name)), part))


def chosen(model: Model, which: str) -> Iterator[Attention]:
    """Attentions whose path holds the word ``which``; empty: all."""
    for path, part in attentions(model).items():
        if which in path and isinstance(part, Attention):
            yield part


def in_attention(name: str, make: Callable[..., Any], which: str = "") -> Callable[[Model], None]:
    """A plant in a method of attentions."""

    def plant(model: Model) -> None:
        for part in chosen(model, which):
            override(part, name, make)

    return plant


def scaled(power: float) -> Callable[..., Any]:
    """Scores times K^power; taps see q as it was before."""

    def make(old: Any) -> Any:
        return lambda self, q, *rest, **more: old(self, q * self.head_width**power, *rest, **more)

    return make


def multiplied(factor: float) -> Callable[..., Any]:
    def make(old: Any) -> Any:
        return lambda self, q, *rest, **more: old(self, q * factor, *rest, **more)

    return make


def over_queries(old: Any) -> Any:
    """Softmax over the queries."""

    def attend(self: Any, q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_width)
        visible = more.get("visible")
        if visible is not None:
            scores = scores.masked_fill(~visible, -math.inf)
        pattern = self.scores(scores).softmax(dim=-2).nan_to_num()
        return self._project(self.z(self.pattern(pattern) @ v))

    return attend


def query_shared(old: Any) -> Any:
    """Keys made by the map of the queries."""

    def keys_values(self: Any, memory: Tensor, *, placed: Any = None, start: int = 0) -> Any:
        q = self._split(self.query(memory))
        q = q if placed is None else placed.rotate(q, start)
        return self.k(q), self.v(self._split(self.value(memory)))

    return keys_values


def first_head(old: Any) -> Any:
    """Every head computes what the first one does."""

    def attend(self: Any, q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Any:
        q, k, v = (each[:, :1].expand(each.shape) for each in (q, k, v))
        return old(self, q, k, v, **more)

    return attend


def heads_zeroed(left: int) -> Callable[..., Any]:
    """Only the first heads reach the output."""

    def make(old: Any) -> Any:
        def project(self: Any, z: Tensor) -> Any:
            return old(self, torch.cat((z[:, :left], 0 * z[:, left:]), dim=1))

        return project

    return make


def blind(change: Callable[[Tensor], Tensor | None]) -> Callable[..., Any]:
    """Another mask than the one that is given."""

    def make(old: Any) -> Any:
        def forward(
            self: Any, x: Tensor, memory: Tensor, *, visible: Any = None, placed: Any = None
        ) -> Any:
            seen = None if visible is None else change(visible)
            return old(self, x, memory, visible=seen, placed=placed)

        return forward

    return make


def seen_later(old: Any) -> Any:
    """Masks are there in training alone."""

    def forward(self: Any, x: Tensor, memory: Tensor, *, visible: Any = None, placed: Any = None) -> Any:
        return old(self, x, memory, visible=visible if self.training else None, placed=placed)

    return forward


def all_seen(mask: Tensor) -> None:
    """No mask."""


def inverted(mask: Tensor) -> Tensor:
    return mask.transpose(-2, -1)


def one_further(mask: Tensor) -> Tensor:
    return torch.ones_like(mask).tril(1)


def dropped(p: float) -> Callable[[Model], None]:
    """Dropout that evaluation does not switch off."""

    def make(old: Any) -> Any:
        return lambda self, x, sublayer: F.dropout(old(self, x, sublayer), p)

    return in_residuals(make)


def in_residuals(make: Callable[..., Any], which: str = "") -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        for path, part in model.named_modules():
            if isinstance(part, Residual) and which in path:
                override(part, "joined", make)

    return plant


def no_sum(old: Any) -> Any:
    return lambda self, x, sublayer: self.dropout(sublayer(self.norm(x)))


def without_norms(which: str) -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        for path, part in list(model.named_modules()):
            for name, inner in part.named_children():
                if isinstance(inner, nn.LayerNorm) and which in f"{path}.{name}":
                    setattr(part, name, nn.Identity())

    return plant


def places_by(change: Callable[[Tensor], Tensor]) -> Callable[[Model], None]:
    """What positions add, changed."""

    def make(old: Any) -> Any:
        return lambda self, places: change(old(self, places))

    def plant(model: Model) -> None:
        for positions in model.stack_positions().values():
            if positions.add is not None:
                override(positions.add, "forward", make)

    return plant


def same_place(model: Model) -> None:
    """Every token stands at place 0, for tables and rotations."""

    def make(old: Any) -> Any:
        return lambda self, places: old(self, 0 * places)

    def turned(old: Any) -> Any:
        return lambda self, vectors, places: old(self, vectors, 0 * places)

    for positions in model.stack_positions().values():
        if positions.add is not None:
            override(positions.add, "forward", make)
        if positions.rotation is not None:
            override(positions.rotation, "forward", turned)


def larger_places(factor: float) -> Callable[[Model], None]:
    return places_by(lambda vectors: factor * vectors)


def memory_lost(old: Any) -> Any:
    """Cross attention to zeros."""
    return lambda self, x, memory, **more: old(self, x, 0 * memory, **more)


def output_lost(old: Any) -> Any:
    return lambda self, z: 0 * old(self, z)


def input_lost(part: str) -> Callable[[Model], None]:
    """What ``part`` of a classifier gives is the same for every input."""

    def make(old: Any) -> Any:
        return lambda self, *given: 0 * old(self, *given)

    return lambda model: override(model.get_submodule(part), "forward", make)


@torch.no_grad()
def weights_times(factor: float, which: Callable[[str], bool], model: Model) -> None:
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and which(name):
            weight.mul_(factor)


def first_weights(factor: float, *words: str) -> Callable[[Model], None]:
    """First matrices whose names hold one of the words; no word: all."""
    return partial(weights_times, factor, lambda name: not words or any(word in name for word in words))


def dead_units(bias: float) -> Callable[[Model], None]:
    @torch.no_grad()
    def plant(model: Model) -> None:
        for part in model.modules():
            if isinstance(part, FeedForward):
                part.up.bias.fill_(bias)

    return plant


def frozen(*words: str) -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        for name, weight in model.named_parameters():
            if any(word in name for word in words):
                weight.requires_grad_(False)

    return plant


class Scaled(torch.autograd.Function):
    """The identity, whose gradient is multiplied."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0] * ctx.factor, None


def gradient_times(factor: float) -> Callable[[Model], None]:
    """The gradient that reaches the first layer."""

    def make(old: Any) -> Any:
        scaled: Any = Scaled.apply
        return lambda self, *given, **more: scaled(old(self, *given, **more), factor)

    def plant(model: Model) -> None:
        blocks = model.get_submodule("encoder")
        override(blocks[0], "forward", make)  # type: ignore[index]

    return plant


def wrong_place(change: Callable[[int], int]) -> Callable[..., Any]:
    """A cached step thinks that it stands elsewhere."""

    def make(old: Any) -> Any:
        def step(self: Any, token: Tensor, read: Any, caches: Any, *, place: int) -> Any:
            return old(self, token, read, caches, place=change(place))

        return step

    return make


def fed_back(change: Callable[[Tensor], Tensor]) -> Callable[[Model], None]:
    """Decoding feeds other tokens than it said."""

    def make(old: Any) -> Any:
        @torch.no_grad()
        def greedy(self: Any, source: Tensor, *, start: int, length: int, cached: bool = True) -> Tensor:
            step, said = self.begin(source), []
            token = source.new_full((len(source), 1), start, dtype=torch.long)
            for _ in range(length):
                said.append(step(token).argmax(dim=-1))
                token = change(said[-1])
            return torch.cat(said, dim=1)

        return greedy

    return lambda model: override(model, "greedy", make) if isinstance(model, Seq2Seq) else None


def from_token(token: int) -> Callable[[Model], None]:
    """Decoding begins with another token than training did."""

    def make(old: Any) -> Any:
        return lambda self, source, *, start, length, cached=True: old(
            self, source, start=token, length=length, cached=cached
        )

    return lambda model: override(model, "greedy", make) if isinstance(model, Seq2Seq) else None


def two_layers(spec: Spec) -> dict[str, Any]:
    """Decoders of two layers."""
    return {"model.decoder_layers": 2}


def four_layers(spec: Spec) -> dict[str, Any]:
    """Encoders, or classifiers, of four layers."""
    return {"model.encoder_layers" if hasattr(spec.model, "encoder_layers") else "model.layers": 4}


def one_head(_: Spec) -> dict[str, Any]:
    return {"model.heads": 1}


def no_positions(_: Spec) -> dict[str, Any]:
    return {"model.positions": "none"}


def learned(_: Spec) -> dict[str, Any]:
    return {"model.positions": "learned:length=32"}


def no_mask(old: Any) -> Any:
    return lambda tokens, padding: None


FIRST = "decoder.0.self"
MODEL_PLANTS = [
    Plant("scale-missing", "one head", TASKS, healthy=one_head, model=in_attention("attend", scaled(0.5))),
    Plant("scale-missing", "K times", TASKS, healthy=one_head, model=in_attention("attend", scaled(1.0))),
    Plant("scale-twice", "one head", TASKS, healthy=one_head, model=in_attention("attend", scaled(-0.5))),
    Plant("scale-twice", "four heads", TASKS, model=in_attention("attend", scaled(-0.5))),
    Plant("softmax-axis", "everywhere", TEXTS + IMAGES, model=in_attention("attend", over_queries)),
    Plant("softmax-axis", "encoder", TEXTS + IMAGES, model=in_attention("attend", over_queries, "encoder")),
    Plant("softmax-axis", "first layer", TASKS, model=in_attention("attend", over_queries, "encoder.0")),
    Plant("heads-uniform", "q is zero", TASKS, model=in_attention("attend", multiplied(0.0))),
    Plant("heads-uniform", "q is tiny", TASKS, model=in_attention("attend", multiplied(1e-3))),
    Plant("query-key-shared", "everywhere", TASKS, model=in_attention("keys_values", query_shared)),
    Plant("query-key-shared", "encoder", TASKS, model=in_attention("keys_values", query_shared, "encoder")),
    Plant("heads-duplicated", "everywhere", TASKS, model=in_attention("attend", first_head)),
    Plant("heads-duplicated", "first layer", TASKS, model=in_attention("attend", first_head, ".0.")),
    Plant("heads-dead", "all but one", TASKS, model=in_attention("_project", heads_zeroed(1))),
    Plant(
        "heads-dead",
        "all of the encoder",
        TASKS,
        model=in_attention("_project", heads_zeroed(0), "encoder"),
    ),
    *(
        Plant(kind, way, SEQUENCES, healthy=more, model=in_attention("forward", blind(change), where))
        for kind, change in (
            ("causal-mask-missing", all_seen),
            ("causal-mask-inverted", inverted),
            ("causal-mask-off-by-one", one_further),
        )
        for way, more, where in (
            ("one layer", lambda _: {}, FIRST),
            ("first of two layers", two_layers, FIRST),
        )
    ),
    Plant("padding-seen", "attention", PADDED, model=in_attention("forward", blind(all_seen))),
    Plant("padding-seen", "in evaluation", PADDED, model=in_attention("forward", seen_later)),
    Plant("padding-seen", "everywhere", PADDED, replaced=((classifiers, "padding_mask", no_mask),)),
    Plant("positions-ignored", "none", TASKS[:5], settings=no_positions),
    Plant("positions-ignored", "all alike", TASKS[:5], model=same_place),
    Plant("positions-saturated", "x 30", (*TEXTS, "brackets"), model=larger_places(30.0)),
    Plant("positions-saturated", "x 100", (*TEXTS, "brackets"), model=larger_places(100.0)),
    Plant("residual-missing", "attention", TASKS, model=in_residuals(no_sum, "self_residual")),
    Plant("residual-missing", "everywhere", TASKS, model=in_residuals(no_sum)),
    Plant(
        "residual-missing",
        "four layers",
        (*TEXTS, *PADDED),
        healthy=four_layers,
        model=in_residuals(no_sum),
    ),
    Plant("norm-missing", "everywhere", TASKS, model=without_norms("")),
    Plant(
        "norm-missing",
        "rate x 3",
        TASKS,
        model=without_norms(""),
        settings=lambda s: {"training.lr": 3 * s.training.lr},
    ),
    Plant("memory-ignored", "zeros", SEQUENCES, model=in_attention("forward", memory_lost, "cross")),
    Plant("memory-ignored", "no output", SEQUENCES, model=in_attention("_project", output_lost, "cross")),
    Plant("input-ignored", "embedding", CLASSES, model=input_lost("embed")),
    Plant("input-ignored", "pool", CLASSES[::2], model=input_lost("pool")),
    Plant("dropout-in-evaluation", "0.2", TASKS, model=dropped(0.2)),
    Plant("dropout-in-evaluation", "0.4", TASKS, model=dropped(0.4)),
    Plant(
        "cache-disagrees",
        "first place",
        SEQUENCES,
        model=lambda m: override(m, "_step", wrong_place(lambda _: 0)),
    ),
    Plant(
        "cache-disagrees",
        "one late",
        SEQUENCES,
        model=lambda m: override(m, "_step", wrong_place(lambda n: max(0, n - 1))),
    ),
    Plant("decoding-disagrees", "starts with 0", SEQUENCES, model=from_token(0)),
    Plant("decoding-disagrees", "next token", SEQUENCES, model=fed_back(lambda token: (token + 1) % 10)),
    Plant("units-dead", "-20", TASKS, model=dead_units(-20.0)),
    Plant("units-dead", "-100", TASKS, model=dead_units(-100.0)),
    Plant("initial-scale", "x 10", TASKS, model=first_weights(10.0)),
    Plant("initial-scale", "x 0.02", TASKS, model=first_weights(0.02)),
    Plant("initial-loss-high", "readout x 50", TASKS, model=first_weights(50.0, "readout")),
    Plant("initial-loss-high", "readout x 300", TASKS, model=first_weights(300.0, "readout")),
    Plant("parameters-frozen", "encoder", TASKS, model=frozen("encoder", "embed", "positions")),
    Plant("parameters-frozen", "attention", TASKS, model=frozen("query", "key", "value", "output")),
    Plant("gradients-vanish", "x 1e-5", TASKS, base="sgd", model=gradient_times(1e-5)),
    Plant("gradients-vanish", "x 1e-3", TASKS, base="sgd", model=gradient_times(1e-3)),
    Plant("gradients-explode", "x 1e5", TASKS, base="sgd", model=gradient_times(1e5)),
    Plant("gradients-explode", "x 1e3", TASKS, base="sgd", model=gradient_times(1e3)),
]
