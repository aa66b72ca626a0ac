"""Tasks made of a function that draws one example.

    @task(symbols="0123456789", answer="sequence")
    def reverse(rng, length: int = 6):
        x = [rng.choice("0123456789") for _ in range(length)]
        return x, x[::-1]

``rng`` is a ``random.Random``. The function returns an input and its answer: both are strings or lists of
symbols, or, with ``classes``, the answer is one of these. Its further parameters are fields of the task, so
they are flags too. Padding, start and end tokens, splits that share no input, parsing and showing follow.

Inputs of different lengths are filled up with a padding token that no head sees. An answer ends with an end
token, and shorter ones are filled up with it.
"""

import inspect
import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attnlab.errors import InputError, LabError, SpecError, brief
from attnlab.lazy import Later
from attnlab.registry import register
from attnlab.specs.task import Reader, Task, Tokens

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from attnlab import checks, drawn_images, sets
else:
    drawn_images = Later("attnlab.drawn_images")
    torch, sets, checks = Later("torch"), Later("attnlab.sets"), Later("attnlab.checks")

Draw = Callable[..., tuple[Sequence[str], Sequence[str] | str]]
Example = tuple[tuple[str, ...], tuple[str, ...]]

PROBED = 1000
"""Draws that show how long inputs and answers are, and whether the function keeps the rules."""
TRIES = 20
"""So many draws for each example that is wanted, before a task is taken to have no further inputs."""
FEWEST = 10
"""Different inputs that a task must have."""
UNKNOWN = -1
"""The target of an input whose answer nobody knows."""
KNOWN = 2**20
"""Letters of known inputs and answers that a page carries, at most; beyond that it carries none."""


def task(
    *,
    symbols: Sequence[str] = (),
    answer: Literal["sequence"] | None = None,
    classes: Sequence[str] | None = None,
    longest: int = 0,
    image: tuple[int, ...] | None = None,
) -> Callable[[Draw], type[Task]]:
    """Make a task of a function that draws one example.

    ``symbols`` are what inputs, and answers that are sequences, are made of; ``classes`` the answers
    otherwise. ``longest`` is the length of the longest input and answer; 0 takes that of the first draws.
    ``image`` is the height and width of inputs that are pictures, with a third number, 3, if in colour.

    >>> @task(symbols="ab", classes=["even", "odd"])
    ... def parity(rng, length: int = 5):
    ...     letters = rng.choices("ab", k=length)
    ...     return letters, ["even", "odd"][letters.count("a") % 2]
    >>> three = spec("parity", length=3).task
    >>> three.show(three.parse("aba")).truth
    'even'
    """
    if (answer is None) == (classes is None):
        raise SpecError('@task needs answer="sequence" or classes=[...], one of the two')
    if image is None or classes is None:
        _check_words("symbols", symbols, least=1 if image is None else 2)
    if classes is not None:
        _check_words("classes", classes, least=2)
    words = tuple(symbols)
    own: dict[str, Any] = {"alphabet": words, "classes": tuple(classes or ()), "longest": longest}
    base: type[Task] = DrawnTask
    if image is not None:
        own = {"image_shape": _image_shape(image), "classes": tuple(classes or symbols)}
        own["sequence"], base = classes is None, drawn_images.DrawnImages

    def make(draw: Draw) -> type[Task]:
        made = {
            "__doc__": inspect.getdoc(draw) or f"The task {draw.__name__}.",
            "__module__": draw.__module__,
            "kind": draw.__name__,
            "draw": staticmethod(draw),
            **own,
            **_fields(draw, base),
        }
        return register(dataclass(frozen=True, kw_only=True)(type(draw.__name__, (base,), made)))

    return make


def _image_shape(image: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width."""
    height, width, *colours = image if len(image) in (2, 3) else (0, 0)
    if min(height, width) < 1 or colours not in ([], [3]):
        raise SpecError(
            f"@task image is {image}; it must be a height and a width, or (height, width, 3) for colour"
        )
    return 3 if colours else 1, height, width


def _check_words(name: str, words: Sequence[str], *, least: int) -> None:
    """Symbols and classes are different words."""
    good = all(isinstance(each, str) and each and not any(map(str.isspace, each)) for each in words)
    if not good or len(set(words)) != len(words) or len(words) < least:
        raise SpecError(
            f"@task {name} are {brief(words)}; they must be at least {least}, different from each other, "
            "and strings without spaces"
        )


def _fields(draw: Draw, base: type[Task]) -> dict[str, Any]:
    """Parameters behind the first, as fields of a dataclass."""
    _, *parameters = inspect.signature(draw, eval_str=True).parameters.values()
    for each in parameters:
        if hasattr(base, each.name) or each.name in ("kind", *base.__annotations__):
            raise SpecError(
                f"{draw.__name__}: parameter {brief(each.name)} is the name of something every task has; "
                "rename it"
            )
        if each.default is each.empty or each.annotation not in (int, float, bool, str):
            raise SpecError(
                f"{draw.__name__}: parameter {brief(each.name)} needs a type (int, float, bool or str) "
                "and a default, as in length: int = 6"
            )
    return {
        "__annotations__": {each.name: each.annotation for each in parameters},
        **{each.name: each.default for each in parameters},
    }


class Drawn(Task):
    """A task made of a function: how it is asked, and how messages name it."""

    draw: ClassVar[Draw]
    classes: ClassVar[tuple[str, ...]]
    _draws: ClassVar[str]
    """What the function draws."""
    _probed: ClassVar[int]
    """How often it is asked at first."""

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "draw"):
            cls.paired_by = tuple(inspect.signature(cls.draw).parameters)[1:]

    @property
    def _name(self) -> str:
        """How messages name the function: by its file."""
        return f"{inspect.unwrap(type(self).draw).__code__.co_filename}: {self.kind}"

    @abstractmethod
    def one(self, rng: random.Random) -> tuple[Any, Any]:
        """What was drawn and its answer, both checked."""

    def _asked(self, rng: random.Random) -> tuple[Any, Any]:
        """What the user's function gave."""
        try:
            drawn = type(self).draw(rng, **{name: getattr(self, name) for name in self.paired_by})
        except Exception as error:  # it is the user's function
            raise SpecError(f"{self._name} raised {checks.said_by(error)}") from error
        if not isinstance(drawn, tuple) or len(drawn) != 2:
            raise SpecError(
                f"{self._name} returned {brief(drawn)}; it must return {self._draws} and its answer"
            )
        return drawn

    def _check_class(self, said: Any) -> None:
        if said not in self.classes:
            raise SpecError(f"{self._name} gave the class {brief(said)}; known: {', '.join(self.classes)}")


@lru_cache(maxsize=8)
def probe(task: Drawn) -> list[tuple[Any, Any]]:
    """The first draws, made twice: a function that asks other sources of chance gives other ones."""
    found = []
    for other in range(2):
        with checks.other_chance(other):
            rng = random.Random(0)
            found.append([task.one(rng) for _ in range(task._probed)])
    if found[0] != found[1]:
        rule = "use rng.choice, rng.randint and so on"
        raise SpecError(f"{task._name} uses randomness other than its rng; {rule}")
    return found[0]


@dataclass(frozen=True, kw_only=True)
class DrawnTask(Drawn):
    """What ``task`` makes of a function that draws symbols."""

    alphabet: ClassVar[tuple[str, ...]]
    longest: ClassVar[int]
    _draws, _probed = "an input", PROBED

    train: int = 20_000
    """Training examples, at most; fewer where there are not so many different inputs."""
    valid: int = 2_000
    """Validation examples, for model selection."""
    test: int = 2_000
    """Test examples, for the final figure."""

    @property
    def vocabulary(self) -> int:
        """Classes, or symbols with the end and the start."""
        return len(self.classes) or len(self.alphabet) + 2

    @property
    def tokens(self) -> Tokens:
        """The symbols, padding, and what may stand in front."""
        return Tokens.shared(len(self.alphabet))

    @property
    def start(self) -> int | None:
        """The last token of an answer's vocabulary."""
        return None if self.classes else len(self.alphabet) + 1

    @property
    def end(self) -> int:
        """The token that closes an answer, and fills up shorter ones."""
        return len(self.alphabet)

    @property
    def target_length(self) -> int:
        """The longest answer and its end."""
        return 1 if self.classes else self._lengths[1] + 1

    @cached_property
    def input_length(self) -> int:
        """Symbols of the longest input."""
        return self._lengths[0]

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        """Of the longest input and answer."""
        if self.longest:
            return self.longest, self.longest
        inputs, answers = zip(*probe(self), strict=True)
        return max(map(len, inputs)), max(map(len, answers))

    def one(self, rng: random.Random) -> Example:
        """An input and its answer, both checked."""
        given, said = self._asked(rng)
        self._check(given, "an input")
        if not self.classes:
            self._check(said, "an answer", empty=True)
            return tuple(given), tuple(said)
        self._check_class(said)
        return tuple(given), (str(said),)

    def _check(self, row: Sequence[str], what: str, *, empty: bool = False) -> None:
        odd = [each for each in row if each not in self.alphabet]
        if odd:
            raise SpecError(
                f"{self._name} drew {what} with {brief(odd[0])}, which is not one of its symbols"
            )
        if not row and not empty:
            raise SpecError(f"{self._name} drew {what} without any symbol")

    def splits(self, seed: int) -> "sets.Splits":
        """Examples without an input in common."""
        probe(self)
        rows = _different(self, seed)
        if len(rows) < min(FEWEST, self.train + self.valid + self.test):
            raise SpecError(f"{self._name} has {len(rows)} different inputs; it needs at least {FEWEST}")
        _, valid, test = sets.fitted(self.train, self.valid, self.test, len(rows))
        return sets.Splits(
            self.examples(rows[test + valid :]),
            self.examples(rows[test : test + valid]),
            self.examples(rows[:test]),
        )

    def examples(self, rows: "Sequence[Example]") -> "sets.Examples":
        """Tokens of inputs and answers."""
        source = torch.tensor(
            [self._filled(given, self.input_length, self.tokens.padding) for given, _ in rows]
        )
        if self.classes:
            numbers = [self.classes.index(said[0]) if said else UNKNOWN for _, said in rows]
            return sets.Examples((source,), torch.tensor(numbers))
        target = torch.tensor([self._filled(said, self.target_length, self.end) for _, said in rows])
        assert self.start is not None
        return sets.Examples((source, sets.shifted(target, self.start)), target)

    def _filled(self, row: Sequence[str], length: int, filling: int) -> list[int]:
        """Numbers of symbols, filled up to ``length``."""
        if len(row) > length:
            raise SpecError(
                f"{self._name} drew {len(row)} symbols, and in its first {PROBED} draws at most {length}; "
                f"say how long rows get: @task(..., longest={len(row)})"
            )
        return [self.alphabet.index(each) for each in row] + [filling] * (length - len(row))

    def parse(self, text: str) -> "sets.Examples":
        """Symbols one after the other, or with spaces where they are longer than a letter."""
        given = tuple(text.split()) if any(len(each) > 1 for each in self.alphabet) else tuple(text.strip())
        for each in given:
            if each not in self.alphabet:
                raise InputError(f"{brief(each)} is not one of the symbols {' '.join(self.alphabet)}")
        if not 1 <= len(given) <= self.input_length:
            raise InputError(
                f"the input has {len(given)} symbols; this task has inputs of 1 to {self.input_length}"
            )
        known = _answers(self).get(given)
        example = self.examples([(given, known or ())])
        inputs = (example.inputs[0][:, : len(given)], *example.inputs[1:])
        targets = example.targets if known is not None else torch.full_like(example.targets, UNKNOWN)
        return sets.Examples(inputs, targets)

    def reader(self) -> Reader:
        """``parse``, ``show`` and ``answer`` as ``drawn.js`` has them."""
        rows = (f"{self._joined(given)}\t{self._joined(said)}" for given, said in _answers(self).items())
        known = "\n".join(rows)
        facts = {
            "alphabet": list(self.alphabet),
            "classes": list(self.classes),
            "input_length": self.input_length,
            "target_length": self.target_length,
            "end": self.end,
            "known": known if len(known) <= KNOWN else "",
        }
        return Reader.beside(__file__, facts, file="drawn.js")

    def contrasts(self, count: int, seed: int) -> "sets.Pairs":
        """Pairs among drawn examples: a function cannot be asked for the answer to a given input."""
        rows = _different(self, seed)
        pairs = _neighbours(rows, count)
        if not pairs:
            raise LabError(
                f"of {len(rows)} drawn inputs of {brief(self.kind)} no two differ in one symbol and have "
                "different answers; a task that is a class can make such pairs: write its `contrasts`"
            )
        base, donor = (self.examples([pair[side] for pair in pairs]) for side in (0, 1))
        return sets.Pairs(base, donor, "one symbol")

    def show(self, example: "sets.Examples") -> "sets.Shown":
        """The symbols of the input; the truth is None if nobody knows it."""
        labels = self.symbols(example.inputs[0][0])
        known = bool((example.targets != UNKNOWN).all())
        truth = self.answer(example.targets.flatten()) if known else None
        return sets.Shown(self._joined(labels), labels, truth)

    def answer(self, tokens: "Tensor") -> str:
        """The class, or the symbols up to the end."""
        if self.classes:
            return self.classes[int(tokens)]
        said = tokens.tolist()
        until = said.index(self.end) if self.end in said else len(said)
        return self._joined(self.symbols(tokens[:until]))

    def symbols(self, tokens: "Tensor") -> list[str]:
        """A printable sign for each token; the end and padding are one token, and so is what leads."""
        signs = (*self.alphabet, "⊣" if self.start else "·", "⊢")
        return [signs[token] if token >= 0 else "?" for token in tokens.tolist()]

    def _joined(self, row: Sequence[str]) -> str:
        return ("" if all(len(each) == 1 for each in self.alphabet) else " ").join(row)

    def places(self) -> list[str]:
        """Answers by their places, and their end."""
        return ["class"] if self.classes else [*map(str, range(1, self.target_length)), "end"]


@lru_cache(maxsize=4)
def _different(task: DrawnTask, seed: int) -> list[Example]:
    """Examples with different inputs, as many as there are up to the size of all splits, in any order.

    Not in that of drawing: inputs that are drawn often, such as short ones, come early then, and all of
    them would be in the split that is taken first.
    """
    rng = random.Random(f"{task.kind} {seed}")
    count = task.train + task.valid + task.test
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    missed = 0
    while len(found) < count and missed < TRIES * max(len(found), PROBED):
        (given, said), before = task.one(rng), len(found)
        known = found.setdefault(given, said)
        missed += len(found) == before
        if known != said:
            raise SpecError(
                f"{task._name} gives {task._joined(given)} the answers {task._joined(known)} and "
                f"{task._joined(said)}; an input must have one answer"
            )
    rows = list(found.items())
    rng.shuffle(rows)
    return rows


def _neighbours(rows: Sequence[Example], count: int) -> list[tuple[Example, Example]]:
    """Up to ``count`` pairs of examples that differ in one symbol and have different answers, each example
    in one pair only. With that symbol left out, the inputs of a pair are the same.
    """
    rng = random.Random(0)  # no place comes first
    alone: dict[int, Example] = {}
    taken: set[tuple[str, ...]] = set()
    pairs: list[tuple[Example, Example]] = []
    for row in rows:
        given, said = row
        places = rng.sample(range(len(given)), len(given))
        rests = [hash((place, given[:place], given[place + 1 :])) for place in places]
        near = (alone[rest] for rest in rests if rest in alone)
        other = next((each for each in near if each[1] != said and each[0] not in taken), None)
        if other is None:
            alone |= dict.fromkeys(rests, row)
        else:
            taken.add(other[0])
            pairs.append((other, row))
        if len(pairs) == count:
            break
    return pairs


@lru_cache(maxsize=2)
def _answers(task: DrawnTask) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Answers that are known from drawing."""
    return dict(_different(task, 0))
