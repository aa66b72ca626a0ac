"""Examples as tensors in memory: what a model is given, and what it should answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from attnlab.specs.task import Split


@dataclass(frozen=True)
class Examples:
    """``model(*inputs)`` gives logits (N, ..., V) for ``targets`` (N, ...).

    An example is right as a whole when every one of its targets has the highest logit. Inputs that would
    take too much memory are made each time they are asked for: ``render`` makes them of what is ``stored``.

    >>> some = spec("addition", digits=2).task.splits(seed=0).valid[:3]
    >>> len(some), some.targets.shape
    (3, torch.Size([3, 4]))
    """

    stored: tuple[Tensor, ...]
    targets: Int[Tensor, "N *T"]
    render: Callable[..., tuple[Tensor, ...]] | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the model is given; take a part of the examples first, where all are not needed."""
        return self.stored if self.render is None else self.render(*self.stored)

    @property
    def answer_length(self) -> int:
        """Tokens of an answer."""
        return self.targets.shape[1] if self.targets.dim() > 1 else 1

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Tensor | slice) -> "Examples":
        return Examples(tuple(part[index] for part in self.stored), self.targets[index], self.render)

    def to(self, device: torch.device) -> "Examples":
        """The same on the device of a model, with inputs that are made here."""
        if self.targets.device == device:
            return self
        return Examples(tuple(part.to(device) for part in self.inputs), self.targets.to(device))


@dataclass(frozen=True)
class Shown:
    """One example for people: its name, a label for each token of its input, and the right answer
    if it is known.

    >>> sums = spec("addition").task
    >>> sums.show(sums.parse("374+814")).truth
    '1188'
    """

    name: str
    labels: list[str]
    truth: str | None


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of examples: for training, for model selection, and for reporting once.

    ``resample`` gives each epoch training examples of its own, as many as there are in ``train``; None goes
    through the same ones again. ``augment`` is what the model gets of a batch of them at a step, by the
    step's number; None: the batch as it is.

    >>> splits = spec("addition").task.splits(seed=0)
    >>> len(splits.train), len(splits["valid"]), len(splits["test"])
    (20000, 2000, 2000)
    """

    train: Examples
    valid: Examples
    test: Examples
    resample: Callable[[int], Examples] | None = None
    augment: Callable[[Examples, int], Examples] | None = None

    def __getitem__(self, split: Split) -> Examples:
        return {"train": self.train, "valid": self.valid, "test": self.test}[split]


@dataclass(frozen=True)
class Pairs:
    """Examples ``base`` and ``donor`` that differ, row by row, in one thing, which ``name`` says.

    Both inputs of a pair are equally long. What is compared is the target number ``place``, by default the
    first in which two answers differ. ``labels`` name the positions of the input, by default numbers;
    ``number`` distinguishes several things that may differ.

    >>> lists = spec("sorting").task
    >>> a, b = lists.parse("3 5 8"), lists.parse("3 8 5")
    >>> Pairs(a, b, "whether it is sorted").compared().tolist()
    [0]
    """

    base: Examples
    donor: Examples
    name: str
    place: int | None = None
    labels: Sequence[str] = ()
    number: int = 1

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: Bool[Tensor, "N"] | slice) -> "Pairs":
        return replace(self, base=self.base[index], donor=self.donor[index])

    def compared(self) -> Int[Tensor, "N"]:
        """The place of the target that is compared."""
        if self.place is not None:
            return torch.full((len(self),), self.place)
        differ = self.base.targets != self.donor.targets
        return differ.reshape(len(self), -1).long().argmax(dim=1)


def fitted(train: int, valid: int, test: int, available: int) -> tuple[int, int, int]:
    """How many examples each split gets: as many as asked for, or all there are, in proportion."""
    wanted = train + valid + test
    if wanted <= available:
        return train, valid, test
    valid, test = (min(available // 3, max(1, each * available // wanted)) for each in (valid, test))
    return available - valid - test, valid, test


Group = tuple[list[int], Examples]
"""Examples that are equally long, and their places among all."""


def grouped(examples: Sequence[Examples]) -> list[Group]:
    """Single examples, those of the same length together."""
    alike: dict[tuple[torch.Size, ...], list[int]] = {}
    for place, example in enumerate(examples):
        alike.setdefault(tuple(part.shape for part in example.inputs), []).append(place)
    return [(places, joined([examples[place] for place in places])) for places in alike.values()]


def joined(examples: Sequence[Examples]) -> Examples:
    """Examples of one length behind each other."""
    columns = zip(*(each.inputs for each in examples), strict=True)
    return Examples(tuple(map(torch.cat, columns)), torch.cat([each.targets for each in examples]))


def shifted(targets: Int[Tensor, "N T"], start: int) -> Int[Tensor, "N T"]:
    """What a decoder is fed while it says ``targets``: the start token, then all but the last of them."""
    return torch.cat((torch.full_like(targets[:, :1], start), targets[:, :-1]), dim=1)


def one_example(examples: Examples, number: int, padding: int | None = None) -> Examples:
    """An example by itself, without the padding behind its input."""
    example = examples[slice(number, number + 1)]
    if padding is None:
        return example
    first, *rest = example.inputs
    return Examples((first[:, : int((first != padding).sum())], *rest), example.targets)


def own_generator(*words: int) -> Generator:
    """A generator of its own for each sequence of numbers."""
    (state,) = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return Generator().manual_seed(int(state) % 2**63)
