"""Plants in the training and in its data: rates, schedules, loss, order, labels, splits."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from doctor_plants import Plant, changed
from doctor_tasks import CLASSES, IMAGES, SEQUENCES, TASKS
from torch import Tensor

import attnlab.training.engines as engines
import attnlab.training.trainer as trainer
from attnlab.sets import Examples, Splits
from attnlab.specs import Spec
from attnlab.training.measuring import Measured

Settings = Callable[[Spec], dict[str, Any]]
TEXTS = ("addition", "reverse")


def rate(factor: float, **more: Any) -> Settings:
    """Another learning rate, at a constant schedule."""
    return lambda spec: {"training.lr": factor * spec.training.lr, **_keys(more)}


def put(**settings: Any) -> Settings:
    return lambda _: _keys(settings)


def _keys(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in settings.items()}


def few(count: int, epochs: int) -> Settings:
    """Few training examples, seen often: as many steps as before."""
    return put(task__train=count, training__epochs=epochs)


def ends_at(share: float) -> Callable[..., Any]:
    """The schedule is over after a share of the steps, and the rate is next to nothing from there on."""

    def make(old: Any) -> Any:
        def lr_factor(schedule: Any, step: int, total: int, losses: Any) -> Any:
            short = max(1, round(share * total))
            return old(schedule, step, short, losses) if step < short else 1e-4

        return lr_factor

    return make


def ordered(by: Callable[[Examples], Tensor]) -> Callable[..., Any]:
    """Epochs whose order is that of a key."""

    def make(old: Any) -> Any:
        return lambda self, epoch: by(self.data.train).argsort(stable=True)

    return make


def by_answer(examples: Examples) -> Tensor:
    return examples.targets.reshape(len(examples), -1)[:, 0]


def by_last_answer(examples: Examples) -> Tensor:
    """By the whole answer, read from its end."""
    rows = examples.targets.reshape(len(examples), -1).double()
    return (rows * 100.0 ** torch.arange(rows.shape[1])).sum(dim=1)


def ignoring(wanted: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A loss without some of the targets."""

    def make(old: Any) -> Any:
        def cross_entropy(logits: Tensor, targets: Tensor, *, smoothing: float = 0.0) -> Tensor:
            kept = targets.masked_fill(wanted(targets), -100)
            return F.cross_entropy(logits.flatten(0, -2), kept.flatten(), label_smoothing=smoothing)

        return cross_entropy

    return make


def highest_kept(old: Any) -> Any:
    """Weights are chosen by the highest loss."""
    return property(lambda self: -self.loss)


def accuracy_kept(old: Any) -> Any:
    """Weights are chosen by the lowest accuracy, as by a measure whose sign is wrong."""
    return property(lambda self: self.exact_match)


def training(change: Callable[[Examples], Examples]) -> Callable[[Splits], Splits]:
    """Other training examples."""
    return lambda splits: Splits(change(splits.train), splits.valid, splits.test)


def both(change: Callable[[Examples], Examples]) -> Callable[[Splits], Splits]:
    """Other training and validation examples."""
    return lambda splits: Splits(change(splits.train), change(splits.valid), splits.test)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def relabelled(share: float) -> Callable[[Examples], Examples]:
    """A share of examples gets the answer of another one, and what is fed with it."""

    def change(examples: Examples) -> Examples:
        count = round(share * len(examples))
        rows = torch.randperm(len(examples), generator=generator(17))[:count]
        source = torch.arange(len(examples))
        source[rows] = rows.roll(1)
        first, *fed = examples.inputs
        return changed(
            examples, inputs=(first, *(each[source] for each in fed)), targets=examples.targets[source]
        )

    return change


def overlapping(share: float) -> Callable[[Splits], Splits]:
    """A share of the validation examples are training examples."""

    def change(splits: Splits) -> Splits:
        count = min(round(share * len(splits.valid)), len(splits.train))
        taken, left = splits.train[slice(0, count)], splits.valid[slice(count, None)]
        inputs = tuple(torch.cat(pair) for pair in zip(taken.inputs, left.inputs, strict=True))
        return Splits(splits.train, Examples(inputs, torch.cat((taken.targets, left.targets))), splits.test)

    return change


def without_answers(count: int) -> Callable[[Examples], Examples]:
    """No example whose answer holds one of the first so many classes or digits."""

    def change(examples: Examples) -> Examples:
        rows = examples.targets.reshape(len(examples), -1)
        held = torch.stack([(rows == 7 - n).any(dim=1) for n in range(count)]).any(dim=0)
        return examples[torch.nonzero(~held).flatten()]

    return change


def skewed(share: float) -> Callable[[Examples], Examples]:
    """Class 0 makes up a share of the examples, by leaving out others."""

    def change(examples: Examples) -> Examples:
        most, rest = examples.targets == 0, examples.targets != 0
        left = round(int(most.sum()) * (1 - share) / share)
        rows = torch.cat((torch.nonzero(most).flatten(), torch.nonzero(rest).flatten()[:left]))
        return examples[rows[torch.randperm(len(rows), generator=generator(3))]]

    return change


def scaled_inputs(factor: float, shift: float = 0.0) -> Callable[[Splits], Splits]:
    """Pixels on another scale, everywhere."""

    def change(examples: Examples) -> Examples:
        first, *rest = examples.inputs
        return changed(examples, inputs=(factor * first + shift, *rest))

    return lambda splits: Splits(change(splits.train), change(splits.valid), change(splits.test))


def narrowed(examples: Examples) -> Examples:
    """Only inputs whose first token is below the middle one, or images that lean to the left."""
    first = examples.inputs[0]
    if first.is_floating_point():
        key = first[..., : first.shape[-1] // 2].flatten(1).mean(dim=1)
    else:
        key = first[:, 0].double() + first[:, 1].double() / 100
    return examples[torch.nonzero(key <= key.median()).flatten()]


def inverted(examples: Examples) -> Examples:
    """Images in negative; rows of tokens whose symbols are others."""
    first, *rest = examples.inputs
    if first.is_floating_point():
        return changed(examples, inputs=(first.amax() - first, *rest))
    key = first[:, 0]
    return examples[torch.nonzero(key >= key.median()).flatten()]


def not_shifted(examples: Examples) -> Examples:
    """What is fed is what should be said."""
    first, _ = examples.inputs
    return changed(examples, inputs=(first, examples.targets))


def half_shifted(examples: Examples) -> Examples:
    """The start token is there, but all others stand where they should be said."""
    first, fed = examples.inputs
    return changed(examples, inputs=(first, torch.cat((fed[:, :1], examples.targets[:, 1:]), dim=1)))


def no_start(examples: Examples) -> Examples:
    """The answer is fed from its first token on, which is never asked for."""
    first, _ = examples.inputs
    return Examples((first, examples.targets[:, :-1]), examples.targets[:, 1:])


CLIPPED = {"training__schedule": "constant"}
TRAINING_PLANTS = [
    Plant("rate-too-low", "/ 50", TASKS, settings=rate(1 / 50)),
    Plant("rate-too-low", "/ 300", TASKS, settings=rate(1 / 300)),
    Plant("rate-too-low", "sgd / 100", TASKS, base="sgd", settings=rate(1 / 100)),
    Plant("rate-too-high", "x 30", TASKS, settings=rate(30, training__clip=0.0)),
    Plant("rate-too-high", "x 150", TASKS, settings=rate(150)),
    Plant("rate-too-high", "sgd x 30", TASKS, base="sgd", settings=rate(30)),
    Plant("diverged", "sgd x 1000", TASKS, base="sgd", settings=rate(1000, training__clip=0.0)),
    Plant("diverged", "sgd x 1e6", TASKS, base="sgd", settings=rate(1e6, training__clip=0.0)),
    Plant("clipped-mostly", "1e-2", TASKS, base="sgd", settings=put(training__clip=1e-2)),
    Plant("clipped-mostly", "1e-3", TASKS, base="sgd", settings=put(training__clip=1e-3)),
    Plant("schedule-ends-early", "at 10%", TASKS, replaced=((trainer, "lr_factor", ends_at(0.1)),)),
    Plant("schedule-ends-early", "at 25%", TASKS, replaced=((trainer, "lr_factor", ends_at(0.25)),)),
    Plant(
        "schedule-ends-early",
        "plateau",
        TASKS,
        settings=put(training__schedule="plateau:factor=0.05,patience=1"),
        base="sgd",
    ),
    Plant(
        "warm-up-missing",
        "post-norm, 3 x",
        TASKS,
        healthy=lambda s: {
            "model.norm": "post",
            "training.lr": s.training.lr * 2,
            "training.schedule": "constant:warmup=0.2",
        },
        settings=put(training__schedule="constant:warmup=0.0"),
    ),
    Plant(
        "warm-up-missing",
        "post-norm, 6 x",
        TASKS,
        healthy=lambda s: {
            "model.norm": "post",
            "training.lr": s.training.lr * 4,
            "training.schedule": "constant:warmup=0.2",
        },
        settings=put(training__schedule="constant:warmup=0.0"),
    ),
    Plant("weight-decay-wins", "20", TASKS, settings=put(training__optimiser="adamw:weight_decay=20")),
    Plant("weight-decay-wins", "60", TASKS, settings=put(training__optimiser="adamw:weight_decay=60")),
    Plant(
        "batch-too-large", "half of all", TASKS, settings=lambda s: {"training.batch": s.task.train // 2}
    ),
    Plant("batch-too-large", "all", TASKS, settings=lambda s: {"training.batch": s.task.train}),
    Plant(
        "order-not-shuffled",
        "by answer",
        TASKS,
        replaced=((trainer.Trainer, "_epoch_order", ordered(by_answer)),),
    ),
    Plant(
        "order-not-shuffled",
        "by last answer",
        SEQUENCES,
        replaced=((trainer.Trainer, "_epoch_order", ordered(by_last_answer)),),
    ),
    Plant(
        "order-not-shuffled",
        "answer, sgd",
        CLASSES,
        base="sgd",
        replaced=((trainer.Trainer, "_epoch_order", ordered(by_answer)),),
    ),
    Plant("answer-ignored", "0", TASKS, replaced=((engines, "cross_entropy", ignoring(lambda t: t == 0)),)),
    Plant(
        "answer-ignored",
        "1 and 2",
        ("addition", "reverse", *IMAGES),
        replaced=((engines, "cross_entropy", ignoring(lambda t: (t == 1) | (t == 2))),),
    ),
    Plant(
        "answer-ignored",
        "1",
        ("brackets", "sorting"),
        replaced=((engines, "cross_entropy", ignoring(lambda t: t == 1)),),
    ),
    Plant("kept-by-wrong-metric", "highest loss", TASKS, replaced=((Measured, "objective", highest_kept),)),
    Plant(
        "kept-by-wrong-metric", "lowest accuracy", TASKS, replaced=((Measured, "objective", accuracy_kept),)
    ),
    Plant("labels-shuffled", "training", TASKS, splits=training(relabelled(1.0))),
    Plant("labels-shuffled", "both", TASKS, splits=both(relabelled(1.0))),
    Plant("labels-wrong", "25%", TASKS, splits=both(relabelled(0.25))),
    Plant("labels-wrong", "50%", TASKS, splits=both(relabelled(0.5))),
    Plant(
        "splits-overlap",
        "all",
        TASKS,
        settings=few(300, 60),
        healthy=few(300, 60),
        splits=overlapping(1.0),
        harm="flattered",
    ),
    Plant(
        "splits-overlap",
        "half",
        TASKS,
        settings=few(300, 60),
        healthy=few(300, 60),
        splits=overlapping(0.5),
        harm="flattered",
    ),
    Plant("answer-unseen", "one", ("digits", "grids", *TEXTS), splits=training(without_answers(1))),
    Plant("answer-unseen", "two", ("digits", "grids", *TEXTS), splits=training(without_answers(2))),
    Plant("classes-skewed", "95%", CLASSES, splits=both(skewed(0.95))),
    Plant("classes-skewed", "98%", CLASSES, splits=both(skewed(0.98))),
    Plant("inputs-unscaled", "x 255", IMAGES, splits=scaled_inputs(255.0)),
    Plant("inputs-unscaled", "x 1000 + 500", IMAGES, splits=scaled_inputs(1000.0, 500.0)),
    Plant("memorising", "60", TASKS, settings=few(60, 250)),
    Plant("memorising", "150", TASKS, settings=few(150, 120)),
    Plant("splits-differ", "half of the inputs", TASKS, splits=training(narrowed)),
    Plant("splits-differ", "the other half", TASKS, splits=training(inverted)),
    Plant("target-not-shifted", "wholly", SEQUENCES, splits=both(not_shifted)),
    Plant("target-not-shifted", "but for the start", SEQUENCES, splits=both(half_shifted)),
    Plant("start-token-missing", "never asked for", TEXTS, splits=both(no_start), harm="flattered"),
    Plant(
        "start-token-missing",
        "0 ignored too",
        TEXTS,
        splits=both(no_start),
        replaced=((engines, "cross_entropy", ignoring(lambda t: t == 0)),),
        harm="flattered",
    ),
]
