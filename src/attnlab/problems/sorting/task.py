"""Telling whether a list of numbers is sorted, at any length from 2 to 16,384.

Numbers go from 0 to 99, with duplicates; a list is sorted if none is smaller than the one before it. A
number is its own token. Padding has another, so that lists of several lengths share one tensor; class 1 is
"sorted". Of every set of lists exactly half are sorted (of an odd number the smaller half), and no length
tells which.

Lists of the three splits, and of each fresh epoch, are drawn independently, each from its own generator.
From eight numbers on there are more than 10^11 sorted lists, so that the same one hardly comes twice.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, final

from attnlab.errors import InputError, brief
from attnlab.lazy import Later
from attnlab.problems.problem import Problem
from attnlab.problems.sorting.words import (
    CLASSES,
    CLS,
    LONGEST,
    NUMBERS,
    PAD,
    SHORTEST,
    STUDIED,
    TOKENS,
    Sampling,
    read_negatives,
)
from attnlab.specs.codec import later
from attnlab.specs.models import ModelSpec, TokensModel
from attnlab.specs.rules import require
from attnlab.specs.task import KeySets, Reader, Task, Tokens

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from jaxtyping import Int
    from torch import Generator, Tensor

    from attnlab import sets
    from attnlab.problems.sorting import evaluate, exchanges, lengths, lists, sections
    from attnlab.report.page import Story
    from attnlab.results import Result
    from attnlab.runs import RunFolder
else:
    torch, F, sets = Later("torch"), Later("torch.nn.functional"), Later("attnlab.sets")
    evaluate, exchanges, lengths, lists, sections = Later.parts(
        "attnlab.problems.sorting", "evaluate", "exchanges", "lengths", "lists", "sections"
    )

_TEST, _VALID, _TRAIN, _LENGTHS, _CONTRASTS = range(5)  # which generator
_SHOWN = 40  # characters of a wrong input that are shown


@final
@dataclass(frozen=True, kw_only=True)
class Sorting(Problem, Task):
    """Telling whether a list of numbers from 0 to 99 is sorted; half of all lists are."""

    kind: ClassVar[str] = "sorting"
    noun: ClassVar[str] = "list"
    vocabulary: ClassVar[int] = len(CLASSES)
    tokens: ClassVar[Tokens] = Tokens(TOKENS, padding=PAD, front=CLS)

    low: int = 8
    """Shortest list to learn from."""
    high: int = 16
    """Longest list to learn from; every length between the two is as likely."""
    negatives: str = "reference"
    """How unsorted lists are made: swap, reference, shuffle, or shares such as swap=0.7,reference=0.3."""
    sampling: Sampling = "uniform"
    """Numbers of a list: from 0 to 99, or for many lists from a random part of that, where neighbours lie
    closer, as they do in long lists. Test lists are always uniform."""
    train: int = 10_000
    """Training lists; with ``fresh`` so many an epoch."""
    valid: int = 2_000
    """Validation lists, drawn as the training lists are."""
    test: int = 2_000
    """Test lists, of the same lengths."""
    fresh: bool = False
    """Draw new training lists for every epoch."""
    exchanged: float = later(0.0)
    """Share of the unsorted training lists in whose place, anew in every epoch, sorted training lists stand
    with one pair of different neighbours exchanged: more of a question that a fixed set hardly asks."""

    def __post_init__(self) -> None:
        require(SHORTEST <= self.low <= LONGEST, "task.low", self.low, f"from {SHORTEST} to {LONGEST:,}")
        require(
            self.low <= self.high <= LONGEST,
            "task.high",
            self.high,
            f"from task.low, which is {self.low}, to {LONGEST:,}",
        )
        super().__post_init__()
        read_negatives(self.negatives)
        for good, rule in (
            (self.train > 1 or not self.exchanged, "0 with one training list"),
            (0 <= self.exchanged <= 1, "from 0 to 1"),
            (
                not (self.fresh and self.exchanged),
                "0 with task.fresh; give task.negatives swap=... instead",
            ),
        ):
            require(good, "task.exchanged", self.exchanged, rule)

    @cached_property
    def input_length(self) -> int:
        """Numbers of the longest list."""
        return self.high

    def splits(self, seed: int) -> "sets.Splits":
        """Training, validation and test lists; with ``fresh`` the training lists are those of epoch 0."""
        moving = self.fresh or self.exchanged > 0
        return sets.Splits(
            self.training(seed, 0),
            self._drawn(self.valid, sets.own_generator(seed, _VALID)),
            self._drawn(self.test, sets.own_generator(seed, _TEST), "uniform"),
            (lambda epoch: self.training(seed, epoch)) if moving else None,
        )

    def training(self, seed: int, epoch: int) -> "sets.Examples":
        """Training lists of an epoch, a function of seed and epoch alone."""
        if not self.exchanged:
            return self._drawn(self.train, sets.own_generator(seed, _TRAIN, epoch))
        fixed = self._drawn(self.train, sets.own_generator(seed, _TRAIN, 0))
        return lists.exchanged(fixed, self.exchanged, sets.own_generator(seed, _TRAIN, epoch, 1))

    def draw(self, count: int, length: int, negatives: str, generator: "Generator") -> "sets.Examples":
        """Lists of one length, numbers uniform."""
        lists.check_length(length)
        lengths = torch.full((count,), length)
        return lists.balanced(lengths, length, read_negatives(negatives), generator)

    def draws(
        self, count: int, length: int, negatives: str, *, seed: int, most: int
    ) -> "Iterator[sets.Examples]":
        """The same lists of one length for everybody who asks with this seed, ``most`` at a time.

        ``most`` is even, so that every part but the last has as many sorted lists as unsorted ones.
        """
        generator = sets.own_generator(seed, _LENGTHS, length, *negatives.encode())
        for start in range(0, count, most):
            yield self.draw(min(most, count - start), length, negatives, generator)

    def _drawn(
        self, count: int, generator: "Generator", sampling: Sampling | None = None
    ) -> "sets.Examples":
        """Lists as the spec says, or with another ``sampling``."""
        lengths = torch.randint(self.low, self.high + 1, (count,), generator=generator)
        shares = read_negatives(self.negatives)
        return lists.balanced(lengths, self.high, shares, generator, sampling or self.sampling)

    @property
    def stored_numbers(self) -> int:
        """Of all its lists, which are filled up to the longest."""
        return (self.train + self.valid + self.test) * self.high

    def parse(self, text: str) -> "sets.Examples":
        """One list, written as ``3 5 5 9 8``."""
        numbers = self.numbers(text)[None]
        return sets.Examples((numbers,), lists.is_sorted(numbers).long())

    def parse_all(self, texts: Sequence[str]) -> "list[sets.Group]":
        """Lists by their length."""
        read = [self._read(text) for text in texts]
        alike: dict[int, list[int]] = {}
        for place, numbers in enumerate(read):
            alike.setdefault(len(numbers), []).append(place)
        rows = [(places, torch.tensor([read[place] for place in places])) for places in alike.values()]
        return [(places, sets.Examples((many,), lists.is_sorted(many).long())) for places, many in rows]

    def numbers(self, text: str) -> "Int[Tensor, 'L']":
        """Read ``3 5 5 9 8``; commas may stand between the numbers too."""
        return torch.tensor(self._read(text))

    def _read(self, text: str) -> list[int]:
        words = re.split(r"[\s,]+", text.strip(" \t\r\n,"))
        if words == [""]:
            raise InputError("the list is empty; write numbers such as 3 5 5 9 8")
        for word in words:
            if not re.fullmatch(r"[+-]?\d+", word, re.ASCII):
                raise InputError(
                    f"{brief(word[:_SHOWN])} is not a whole number; write a list such as 3 5 5 9 8"
                )
            if len(word) > 9 or not 0 <= int(word) < NUMBERS:
                raise InputError(f"{word[:_SHOWN]} is outside 0 to {NUMBERS - 1}, the numbers of this task")
        lists.check_length(len(words))
        return [int(word) for word in words]

    def reader(self) -> Reader:
        """``parse``, ``show`` and ``answer`` as ``reader.js`` has them."""
        facts = {"numbers": NUMBERS, "shortest": SHORTEST, "longest": LONGEST, "classes": list(CLASSES)}
        return Reader.beside(__file__, facts)

    def symbols(self, tokens: "Int[Tensor, 'L']") -> list[str]:
        signs = {PAD: "·", CLS: "cls"}
        return [signs.get(token, str(token)) for token in tokens.tolist()]

    def input_words(self) -> str:
        return "numbers, and padding behind them"

    def answer(self, tokens: "Tensor") -> str:
        """What a class is called."""
        return CLASSES[int(tokens)]

    def results(self) -> "tuple[type[Result], ...]":
        """Evaluation by class and by length; predictions with the neighbours that decided the answer."""
        return evaluate.SortingEvaluation, evaluate.SortingPrediction

    def analyses(self) -> "Mapping[str, Callable[..., Result]]":
        """Other lengths, margins of exchanges, and heads that find the place that is out of order."""
        studied = {
            name: partial(lengths.lengths_run, lengths=wanted, examples=count, keep=name)
            for name, (wanted, count) in STUDIED.items()
        }
        return {
            "lengths": lengths.lengths_run,
            **studied,
            "margins": partial(exchanges.exchanges_run, self, "margins", exchanges.measure_margins),
            "falls": partial(exchanges.exchanges_run, self, "falls", exchanges.measure_falls),
        }

    def sections(self, run: "RunFolder", story: "Story") -> "Story":
        """With the accuracy by length."""
        return sections.sorting_story(self, run, story)

    def unseen(self, examples: "sets.Examples", task: Any, seed: int) -> "tuple[sets.Examples, Tensor]":
        """All of them: lists hardly ever come twice."""
        return examples, torch.ones(len(examples), dtype=torch.bool)

    def key_sets(self, examples: "sets.Examples", model: ModelSpec) -> KeySets:
        """What ``lists.sorting_sets`` names."""
        (rows,) = examples.inputs
        fronted = isinstance(model, TokensModel) and model.pooling == "cls"
        return lists.sorting_sets(F.pad(rows, (1, 0), value=CLS) if fronted else rows)

    def contrasts(self, count: int, seed: int) -> "sets.Pairs":
        """Sorted lists, and the same with one pair of different neighbours exchanged."""
        generator = sets.own_generator(seed, _CONTRASTS)
        lengths = torch.randint(self.low, self.high + 1, (count,), generator=generator)
        rows = lists.sorted_lists(lengths, generator)
        exchanged = lists.swap_neighbours(rows.clone(), lengths, generator)
        base, donor = (sets.Examples((each,), lists.is_sorted(each).long()) for each in (rows, exchanged))
        return sets.Pairs(base, donor, "the order of two neighbours")

    def strata(self, examples: "sets.Examples") -> "dict[str, Tensor]":
        """Lists by class and by length."""
        lengths = lists.lengths_of(examples.inputs[0])
        by_length = {f"length {length}": lengths == length for length in sorted(set(lengths.tolist()))}
        return {**super().strata(examples), **by_length}
