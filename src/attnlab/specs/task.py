"""Tasks: how examples are made, what counts as right, how an example is shown, and its strata.

A task is one frozen dataclass. Its fields are its spec, so they become JSON and command-line flags; its
methods are its behaviour. Everything that an analysis wants to know about a task, it asks the task.

Models are given tokens or images and say a class or a sequence:

    tokens     ``tokens`` says how many there are, and which of them fill up shorter inputs
    images     ``tokens`` is None
    class      ``start`` is None; an answer is one of ``vocabulary`` classes
    sequence   an answer has ``target_length`` of ``vocabulary`` tokens, the first of them said after the
               token ``start``
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attnlab.errors import InputError, SpecError, brief
from attnlab.lazy import Later
from attnlab.registry import find_task, task_names
from attnlab.specs.models import IMAGE_MODELS, ModelSpec, PatchSeq2SeqModel, Seq2SeqModel, TokensModel
from attnlab.specs.positions import Columns
from attnlab.specs.rules import require

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from attnlab import defaults, sets
    from attnlab.results import Result
    from attnlab.sets import Examples, Group, Pairs, Shown, Splits
    from attnlab.specs.experiment import Spec
else:
    defaults, sets, torch = Later("attnlab.defaults"), Later("attnlab.sets"), Later("torch")

KeySets = Mapping[tuple[str, str], "Mapping[str, Tensor]"]
"""Masks (T, S), or (N, T, S) where they differ between examples, by the name of their metric, for each
stack and kind of attention, such as ``("decoder", "cross")``."""

MOST = 10**9
"""Examples of a split."""

Split = Literal["train", "valid", "test"]
"""A set of examples by its name."""


@dataclass(frozen=True)
class Tokens:
    """``count`` kinds of input tokens; ``padding`` fills up shorter inputs, ``front`` may lead them.

    >>> Tokens.shared(10)
    Tokens(count=12, padding=10, front=11)
    """

    count: int
    padding: int
    front: int

    @staticmethod
    def shared(vocabulary: int) -> "Tokens":
        """So many kinds that are neither padding nor in front, and these two behind them."""
        return Tokens(vocabulary + 2, padding=vocabulary, front=vocabulary + 1)


@dataclass(frozen=True)
class TourStep:
    """A step of a first visit in the explorer, each something to do.

    ``target`` is the part of the page that it is about, by its ``data-name``. ``until`` is what the step
    waits for and ``act`` the actions that do it, both in the words of ``explorer/js/types.js``. ``facts``
    are sentences that are true of certain runs, by their names: no step claims more of any other run.
    """

    title: str
    text: str
    target: str
    until: Mapping[str, Any]
    act: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """What reads inputs and says answers in a page without Python: ``source``, an ES module that exports

        read(text, facts, python) -> {tokens, labels, name, truth, targets}, or throws an Error
        answer(tokens, facts) -> string
        places(count, facts) -> names of the tokens of an answer of so many, if they differ with it

    ``facts`` are plain JSON, ``python`` is ``explorer/js/python.js``. The source imports nothing.
    """

    source: str
    facts: dict[str, Any]
    writes: bool
    """Whether inputs can be written; otherwise ``read`` only says that they cannot."""

    @staticmethod
    def beside(
        module: str, facts: dict[str, Any], *, file: str = "reader.js", writes: bool = True
    ) -> "Reader":
        """With the source in ``file``, which lies in the folder of a Python file."""
        return Reader(Path(module).with_name(file).read_text(encoding="utf-8"), facts, writes)


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """The base of all tasks.

    >>> sums = spec("addition", digits=2).task
    >>> isinstance(sums, Task), sums.kind, sums.places()
    (True, 'addition', ['10^0', '10^1', '10^2', 'end'])
    """

    kind: ClassVar[str]
    """Its name, in commands and in JSON."""
    noun: ClassVar[str] = "example"
    """What one example is called."""
    paired_by: ClassVar[tuple[str, ...]] = ()
    """Fields in which two runs must agree to be asked the same examples."""

    train: int = 10_000
    """Training examples."""
    valid: int = 2_000
    """Validation examples, for model selection."""
    test: int = 2_000
    """Test examples, for the final figure."""

    @classmethod
    def known_kinds(cls) -> "Mapping[str, type[Task]]":
        """What JSON may name in the place of this class: of the base all tasks that are found by name."""
        return {cls.kind: cls} if "kind" in vars(cls) else _Known()

    def __post_init__(self) -> None:
        for name in ("train", "valid", "test"):
            require(getattr(self, name) >= 1, f"task.{name}", getattr(self, name), "at least 1")
            require(getattr(self, name) <= MOST, f"task.{name}", getattr(self, name), f"at most {MOST:,}")

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """How many classes there are, or kinds of tokens of an answer."""

    @property
    def tokens(self) -> Tokens | None:
        """What inputs are made of; None for images, and where inputs and answers share one vocabulary."""
        return None

    @property
    def coupling(self) -> Columns:
        """Which tokens of inputs and answers belong together, for positions that go by it."""
        return Columns()

    @property
    def padding(self) -> int | None:
        """The input token that fills up shorter inputs; None where all have the same length."""
        return None if self.tokens is None else self.tokens.padding

    @property
    def start(self) -> int | None:
        """The token before an answer; None if the answer is a class."""
        return None

    @property
    def end(self) -> int | None:
        """The token behind an answer, and behind shorter ones to fill them up; None if there is none."""
        return None

    @property
    def target_length(self) -> int:
        return 1

    @property
    def stored_numbers(self) -> int:
        """Whole numbers that its examples are made of, at least."""
        return (self.train + self.valid + self.test) * (2 * self.target_length)

    @cached_property
    def input_length(self) -> int:
        """Tokens of the longest input of training."""
        return self.splits(0).train[slice(0, 1)].inputs[0].shape[1]

    @property
    def images(self) -> bool:
        return False

    @property
    def cell_shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of an image, or of each of its cells; None where inputs are tokens."""
        return None

    def settled(self) -> "Task":
        """The task as a run keeps it, with what is found by looking at its data written down."""
        return self

    @abstractmethod
    def splits(self, seed: int) -> "Splits":
        """Training, validation and test examples, apart from each other."""

    @abstractmethod
    def answer(self, tokens: "Tensor") -> str:
        """What the model said, as a person reads it: a class or tokens (T,)."""

    def parse(self, text: str) -> "Examples":
        """One example as a person writes it; a file or a number in a split for images."""
        raise InputError(f"inputs of the task {brief(self.kind)} cannot be written as text")

    def parse_all(self, texts: Sequence[str]) -> "list[Group]":
        """What ``parse`` gives of each of many inputs, those of the same length together."""
        return sets.grouped([self.parse(text) for text in texts])

    def show(self, example: "Examples") -> "Shown":
        """One example of tokens as a person reads it."""
        labels = self.symbols(example.inputs[0][0])
        return sets.Shown(" ".join(labels), labels, self.answer(example.targets.flatten()))

    def show_all(self, examples: "Examples") -> "list[Shown]":
        """What ``show`` gives of each."""
        return [self.show(examples[slice(place, place + 1)]) for place in range(len(examples))]

    def symbols(self, tokens: "Tensor") -> list[str]:
        """A printable sign for each token."""
        return [str(token) for token in tokens.tolist()]

    def suggestions(self) -> list[str]:
        """Inputs worth trying, as one writes them; none: the first validation examples are as good."""
        return []

    def note(self) -> str:
        """A sentence on what people should know of its answers, such as their order; empty: nothing."""
        return ""

    def tour(self) -> "tuple[TourStep, ...]":
        """Steps of a first visit to one of its runs in the explorer; none: those that suit any run."""
        return ()

    def reader(self) -> Reader:
        """What stands for ``parse``, ``show`` and ``answer`` in a page without Python; by default inputs
        cannot be written there, and an answer is the signs of its tokens.
        """
        signs = self.labels() if self.start is None else self.symbols(torch.arange(self.vocabulary))
        facts = {"kind": self.kind, "signs": signs, "separator": " ", "end": self.end}
        return Reader.beside(__file__, facts, writes=False)

    def input_words(self) -> str:
        """What the tokens of an input are, for those who use the model elsewhere."""
        return f"tokens of the task {self.kind}"

    def labels(self) -> list[str]:
        """Names of what a target can be, in the order of their numbers; tokens behind them, such as the end
        of an answer, have none.
        """
        every = torch.arange(self.vocabulary)
        return [self.answer(each) for each in every] if self.start is None else self.symbols(every)

    def places(self) -> list[str]:
        """Names of the targets of one example."""
        return ["class"] if self.start is None else [str(place + 1) for place in range(self.target_length)]

    def places_of(self, count: int) -> list[str]:
        """Names of the targets of an answer of ``count`` tokens, also where these are more than usual."""
        names = self.places()[:count]
        return [*names, *(str(place + 1) for place in range(len(names), count))]

    def strata(self, examples: "Examples") -> "dict[str, Tensor]":
        """Groups of examples to report by, as masks (N,): by default those with the same class."""
        if self.start is not None:
            return {}
        groups = [examples.targets == each for each in sorted(set(examples.targets.tolist()))]
        return {self.answer(examples.targets[group][0]): group for group in groups}

    @classmethod
    def presets(cls) -> "dict[str, Spec]":
        """Named specs, one of them ``default``."""
        return {"default": defaults.default_spec(cls())}

    @classmethod
    def studies(cls) -> tuple[Any, ...]:
        """What is to be asked of this task with many seeds: ``attnlab.studies.Study``."""
        return ()

    def default_model(self) -> ModelSpec:
        return defaults.token_model(self)

    def analyses(self) -> "Mapping[str, Callable[..., Result]]":
        """Analyses that only this task has, by the names under which runs keep what they found.

        Each takes a ``RunFolder``, and ``progress`` by its name.
        """
        return {}

    def results(self) -> "Sequence[type[Result]]":
        """Its own kinds of ``Evaluation``, ``Prediction`` and ``PatchResult`` of ``analysis``, if any."""
        return ()

    def sections(self, run: Any, story: Any) -> Any:
        """``story``, the ``report.page.Story`` of a run, with sections of this task's own."""
        return story

    def unseen(self, examples: "Examples", task: Any, seed: int) -> "tuple[Examples, Tensor]":
        """Examples of ``task``, which agrees with this one in ``paired_by``, as this task writes them, and
        which of them (N,) a run with this seed was neither trained on nor selected by.
        """
        splits = self.splits(seed)
        known = {tuple(row) for part in (splits.train, splits.valid) for row in part.inputs[0].tolist()}
        return examples, torch.tensor([tuple(row) not in known for row in examples.inputs[0].tolist()])

    def key_sets(self, examples: "Examples", model: ModelSpec) -> KeySets:
        """Keys that a head could look at, by the stack and kind of an attention; by default none."""
        return {}

    def contrasts(self, count: int, seed: int) -> "Pairs | Sequence[Pairs] | None":
        """Up to ``count`` pairs of examples that differ in one thing, or such pairs for each of several
        things, to patch between; by default None.
        """
        return None

    def check_model(self, model: ModelSpec) -> None:
        """Refuse a model that cannot do this task."""
        single: tuple[type, ...] = IMAGE_MODELS if self.images else (TokensModel,)
        several = PatchSeq2SeqModel if self.images else Seq2SeqModel
        if not isinstance(model, single if self.start is None else several):
            raise SpecError(f"model {brief(model.kind)} cannot do the task {brief(self.kind)}")


class _Known(Mapping[str, type[Task]]):
    """All tasks by their names, each imported when it is asked for."""

    def __getitem__(self, name: str) -> type[Task]:
        return find_task(name)

    def __iter__(self) -> Iterator[str]:
        return iter(task_names())

    def __len__(self) -> int:
        return len(task_names())

    def __contains__(self, name: object) -> bool:
        return name in task_names()
