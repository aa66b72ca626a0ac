"""The second set apart: plants, problems and healthy trainings that the first study had not.

Written down, and committed, before the doctor was changed by what the first set apart had shown; trained
and scored once, after that. Each kind has ways or strengths that neither half of the first study had. Two
problems are new (``examples/letters.py`` reduced, and ``maximum`` of the dozen small tasks), and a third
(``ends``) gives healthy trainings alone, since it is learned suddenly. Seeds are new everywhere.

``query-key-shared`` and ``padding-seen`` are left out: planted as they can be, they did no harm. Since time
is short, ``grids`` is left out, ``addition`` has healthy trainings alone, and ``digits`` what needs images.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from doctor_plants import Plant, changed
from doctor_plants_model import (
    dead_units,
    dropped,
    fed_back,
    first_weights,
    four_layers,
    from_token,
    frozen,
    gradient_times,
    heads_zeroed,
    in_attention,
    in_residuals,
    larger_places,
    no_sum,
    override,
    places_by,
    scaled,
    two_layers,
    without_norms,
    wrong_place,
)
from doctor_plants_training import (
    both,
    by_answer,
    ends_at,
    few,
    ignoring,
    no_start,
    ordered,
    overlapping,
    put,
    rate,
    relabelled,
    scaled_inputs,
    skewed,
    training,
)
from doctor_tasks import SECOND_TASKS
from torch import Tensor

import attnlab.training.engines as engines
import attnlab.training.trainer as trainer
from attnlab.model import Model
from attnlab.sets import Examples
from attnlab.specs import Spec
from attnlab.training.measuring import Measured

TEXTS = ("reverse", "maximum")
ROWS = ("brackets", "sorting")


def decays(share: float) -> Callable[..., Any]:
    """The rate halves with every such share of the steps."""

    def make(old: Any) -> Any:
        return lambda schedule, step, total, losses: 0.5 ** (step / (share * total))

    return make


def weightless(answer: int) -> Callable[..., Any]:
    """A loss in which one class weighs nothing."""

    def make(old: Any) -> Any:
        def cross_entropy(logits: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Tensor:
            weights = torch.ones(logits.shape[-1])
            weights[answer] = 0.0
            return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), weight=weights)

        return cross_entropy

    return make


def doubtful_kept(old: Any) -> Any:
    """Weights are chosen by a sum of two measures, both with the wrong sign."""
    return property(lambda self: self.token_accuracy - self.loss)


def one_row_off(examples: Examples) -> Examples:
    """Every example has the answer of the one before it, and what is fed with it."""
    first, *fed = examples.inputs
    return changed(
        examples,
        inputs=(first, *(each.roll(1, 0) for each in fed)),
        targets=examples.targets.roll(1, 0),
    )


def without(answer: int) -> Callable[[Examples], Examples]:
    """No example whose answer holds a class or digit."""

    def change(examples: Examples) -> Examples:
        rows = examples.targets.reshape(len(examples), -1)
        return examples[torch.nonzero(~(rows == answer).any(dim=1)).flatten()]

    return change


def small_sums(examples: Examples) -> Examples:
    """Only inputs whose tokens have a small sum, or images upside down."""
    first, *rest = examples.inputs
    if first.is_floating_point():
        return changed(examples, inputs=(first.flip(-2), *rest))
    key = first.double().mean(dim=1)
    return examples[torch.nonzero(key <= key.median()).flatten()]


def not_shifted_until_last(examples: Examples) -> Examples:
    """All tokens but the last stand where they should be said."""
    first, fed = examples.inputs
    return changed(examples, inputs=(first, torch.cat((examples.targets[:, :-1], fed[:, -1:]), dim=1)))


def over_heads(old: Any) -> Any:
    """Softmax over the heads."""

    def attend(self: Any, q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
        scores = q @ k.transpose(-2, -1) / self.head_width**0.5
        visible = more.get("visible")
        if visible is not None:
            scores = scores.masked_fill(~visible, -torch.inf)
        pattern = self.scores(scores).softmax(dim=1).nan_to_num()
        return self._project(self.z(self.pattern(pattern) @ v))

    return attend


def no_keys(old: Any) -> Any:
    return lambda self, q, k, v, **more: old(self, q, 0 * k, v, **more)


def no_values(old: Any) -> Any:
    return lambda self, q, k, v, **more: old(self, q, k, 0 * v, **more)


def second_half_copied(old: Any) -> Any:
    """The second half of the heads computes what the first half does."""

    def attend(self: Any, q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Any:
        half = q.shape[1] // 4
        q, k, v = (each[:, :half].repeat(1, q.shape[1] // half, 1, 1) for each in (q, k, v))
        return old(self, q, k, v, **more)

    return attend


def all_visible(old: Any) -> Any:
    def forward(self: Any, x: Tensor, memory: Tensor, *, visible: Any = None, placed: Any = None) -> Any:
        return old(self, x, memory, visible=None, placed=placed)

    return forward


def masked(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """Another mask, where there is one."""

    def make(old: Any) -> Any:
        def forward(
            self: Any, x: Tensor, memory: Tensor, *, visible: Any = None, placed: Any = None
        ) -> Any:
            return old(
                self, x, memory, visible=visible if visible is None else change(visible), placed=placed
            )

        return forward

    return make


def empty_input(old: Any) -> Any:
    """Every token is the first kind of token, every pixel black."""
    return lambda self, given: old(self, 0 * given)


def mean_place(vectors: Tensor) -> Tensor:
    return vectors.mean(dim=-2, keepdim=True).expand_as(vectors)


def heads(count: int) -> Callable[[Spec], dict[str, Any]]:
    return lambda _: {"model.heads": count}


def three_layers(spec: Spec) -> dict[str, Any]:
    return {"model.encoder_layers" if hasattr(spec.model, "encoder_layers") else "model.layers": 3}


def post_norm(factor: float) -> Callable[[Spec], dict[str, Any]]:
    return lambda spec: {
        "model.norm": "post",
        "training.lr": spec.training.lr * factor,
        "training.schedule": "constant:warmup=0.2",
    }


def embedded(model: Model) -> None:
    override(model.get_submodule("embed"), "forward", empty_input)


ALL, CLASSES = SECOND_TASKS, ("brackets", "sorting", "letters")
BOTH_LAYERS = "decoder"
SECOND_PLANTS = [
    Plant("rate-too-low", "/ 120", ALL, settings=rate(1 / 120)),
    Plant("rate-too-low", "sgd / 400", TEXTS, base="sgd", settings=rate(1 / 400)),
    Plant("rate-too-high", "x 70", ALL, settings=rate(70)),
    Plant("rate-too-high", "sgd x 80", ROWS, base="sgd", settings=rate(80)),
    Plant("diverged", "sgd x 3e4", ALL, base="sgd", settings=rate(3e4, training__clip=0.0)),
    Plant("clipped-mostly", "3e-3", ALL, base="sgd", settings=put(training__clip=3e-3)),
    Plant("schedule-ends-early", "at 17%", ALL, replaced=((trainer, "lr_factor", ends_at(0.17)),)),
    Plant("schedule-ends-early", "decays", TEXTS, replaced=((trainer, "lr_factor", decays(0.03)),)),
    Plant(
        "warm-up-missing",
        "post-norm, 4.5 x",
        ALL,
        healthy=post_norm(3),
        settings=put(training__schedule="constant:warmup=0.0"),
    ),
    Plant("weight-decay-wins", "35", ALL, settings=put(training__optimiser="adamw:weight_decay=35")),
    Plant("batch-too-large", "a third", ALL, settings=lambda s: {"training.batch": s.task.train // 3}),
    Plant(
        "order-not-shuffled",
        "by answer, downwards",
        ALL,
        replaced=((trainer.Trainer, "_epoch_order", ordered(lambda e: -by_answer(e))),),
    ),
    Plant("answer-ignored", "weightless", ALL, replaced=((engines, "cross_entropy", weightless(1)),)),
    Plant("kept-by-wrong-metric", "both signs", ALL, replaced=((Measured, "objective", doubtful_kept),)),
    Plant("labels-shuffled", "one row off", ALL, splits=both(one_row_off)),
    Plant("labels-wrong", "35%", ALL, splits=both(relabelled(0.35))),
    Plant("labels-wrong", "45%, training alone", ALL, splits=training(relabelled(0.45))),
    Plant(
        "splits-overlap",
        "three quarters",
        ALL,
        settings=few(250, 60),
        healthy=few(250, 60),
        splits=overlapping(0.75),
        harm="flattered",
    ),
    Plant("answer-unseen", "3", ("letters", *TEXTS), splits=training(without(3))),
    Plant("classes-skewed", "97%", (*ROWS, "digits"), splits=both(skewed(0.97))),
    Plant("inputs-unscaled", "x 60", ("letters", "digits"), splits=scaled_inputs(60.0)),
    Plant("inputs-unscaled", "x 300 - 100", ("letters", "digits"), splits=scaled_inputs(300.0, -100.0)),
    Plant("inputs-unscaled", "x 0.003", ("letters", "digits"), splits=scaled_inputs(0.003)),
    Plant("memorising", "90", ALL, settings=few(90, 180)),
    Plant("splits-differ", "small sums, or upside down", (*ALL, "digits"), splits=training(small_sums)),
    Plant("target-not-shifted", "but for the last", TEXTS, splits=both(not_shifted_until_last)),
    Plant(
        "start-token-missing",
        "1 ignored too",
        TEXTS,
        splits=both(no_start),
        replaced=((engines, "cross_entropy", ignoring(lambda t: t == 1)),),
        harm="flattered",
    ),
    Plant("scale-missing", "two heads", ALL, healthy=heads(2), model=in_attention("attend", scaled(1.2))),
    Plant("scale-twice", "thrice", ALL, healthy=heads(1), model=in_attention("attend", scaled(-1.0))),
    Plant("softmax-axis", "over heads", ALL, model=in_attention("attend", over_heads)),
    Plant("heads-uniform", "k is zero", ALL, model=in_attention("attend", no_keys)),
    Plant(
        "heads-duplicated",
        "eight heads",
        ALL,
        healthy=heads(8),
        model=in_attention("attend", second_half_copied),
    ),
    Plant(
        "heads-dead",
        "seven of eight",
        ALL,
        healthy=heads(8),
        model=in_attention("_project", heads_zeroed(1)),
    ),
    Plant(
        "causal-mask-missing",
        "two layers",
        TEXTS,
        healthy=two_layers,
        model=in_attention("forward", all_visible, BOTH_LAYERS),
    ),
    Plant(
        "causal-mask-inverted",
        "two layers",
        TEXTS,
        healthy=two_layers,
        model=in_attention("forward", masked(lambda mask: mask.transpose(-2, -1)), BOTH_LAYERS),
    ),
    Plant(
        "causal-mask-off-by-one",
        "two layers",
        TEXTS,
        healthy=two_layers,
        model=in_attention("forward", masked(lambda mask: torch.ones_like(mask).tril(1)), BOTH_LAYERS),
    ),
    Plant("positions-ignored", "all the mean", ALL, model=places_by(mean_place)),
    Plant("positions-saturated", "x 50", (*TEXTS, "brackets"), model=larger_places(50.0)),
    Plant(
        "residual-missing",
        "three layers",
        (*TEXTS, *ROWS),
        healthy=three_layers,
        model=in_residuals(no_sum),
    ),
    Plant("norm-missing", "four layers", ALL, healthy=four_layers, model=without_norms("")),
    Plant("memory-ignored", "no values", TEXTS, model=in_attention("attend", no_values, "cross")),
    Plant("input-ignored", "empty", CLASSES, model=embedded),
    Plant("dropout-in-evaluation", "0.3", ALL, model=dropped(0.3)),
    Plant(
        "cache-disagrees",
        "two early",
        TEXTS,
        model=lambda m: override(m, "_step", wrong_place(lambda n: n + 2)),
    ),
    Plant("decoding-disagrees", "starts with 5", TEXTS, model=from_token(5)),
    Plant("decoding-disagrees", "feeds 0", TEXTS, model=fed_back(lambda token: 0 * token)),
    Plant("units-dead", "-50", ALL, model=dead_units(-50.0)),
    Plant("initial-scale", "x 7", ALL, model=first_weights(7.0)),
    Plant("initial-scale", "x 0.01", TEXTS, model=first_weights(0.01)),
    Plant("initial-loss-high", "readout x 120", ALL, model=first_weights(120.0, "readout")),
    Plant(
        "parameters-frozen",
        "all but the readout",
        ALL,
        model=frozen("embed", "positions", "encoder", "decoder", "pool", "norm"),
    ),
    Plant("gradients-vanish", "x 1e-4", ALL, base="sgd", model=gradient_times(1e-4)),
    Plant("gradients-explode", "x 1e4", ALL, base="sgd", model=gradient_times(1e4)),
]
