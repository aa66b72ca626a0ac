"""The rules that every task keeps, asked before anything is trained.

``check_task`` calls each method that training and analyses call, on a bounded number of examples. What
breaks a rule is refused in one sentence that names the task's file, or its module, the method and the rule.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from textwrap import shorten
from typing import NoReturn, TypeVar

import numpy as np
import torch
from torch import Tensor

from attnlab.errors import InputError, LabError, SpecError
from attnlab.registry import source_of
from attnlab.sets import Examples, Shown, Splits, one_example, shifted
from attnlab.specs.task import Split, Task, Tokens

T = TypeVar("T")

SPLITS: tuple[Split, ...] = ("train", "valid", "test")
FEW = 20
"""Examples of each split that are shown, parsed and answered."""
PART = 500
"""Examples whose inputs are compared at a time."""
MOST = 2**25
"""Numbers of all inputs of a split that are compared with those of the others."""
AGAIN = 100
"""Examples of a split that are drawn twice."""


@lru_cache(maxsize=16)
def check_task(task: Task, seed: int = 0) -> None:
    """Refuse a task that breaks a rule."""
    ask = _Asking(task)
    kinds = _Kinds.of(ask)
    splits = ask("splits", Splits, seed)
    for name in SPLITS:
        _check_examples(ask, kinds, name, splits[name])
    _check_apart(ask, splits)
    _check_drawing(ask, seed)
    _check_epochs(ask, kinds, splits)
    _check_words(ask, kinds, splits)


@dataclass(frozen=True)
class _Asking:
    """Calls a method or reads a property of a task, and refuses what it must not do."""

    task: Task

    def __call__(self, name: str, kind: type[T], *words: object) -> T:
        """What ``task.name`` is, or says to ``words``, which must be a ``kind``."""
        value = self.maybe(name, kind, *words)
        if value is None:
            self.refuse(name, f"returned None; it must be of type {kind.__name__}")
        return value

    def maybe(self, name: str, kind: type[T], *words: object) -> T | None:
        """The same, or None."""

        def asked() -> object:
            value = getattr(self.task, name)
            return value(*words) if callable(value) else value

        value = self.try_to(name, asked)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.refuse(name, f"returned {_short(value)}; it must be of type {kind.__name__}")
        return value

    def try_to(self, name: str, action: Callable[[], T]) -> T:
        """Do what calls the method ``name``."""
        try:
            return action()
        except LabError as error:
            if name == "parse" and isinstance(error, InputError):
                raise
            said = str(error)
            named = f": {self.task.kind} " in said  # by a function that draws
            raise SpecError(said if named else f"{self.method(name)}: {said}") from error
        except Exception as error:  # it is the user's program
            raise SpecError(f"{self.method(name)} raised {said_by(error)}") from error

    def method(self, name: str) -> str:
        """What messages call a method: by the file that defines the task, or by its module."""
        source, own = source_of(self.task.kind), type(self.task)
        return f"{own.__module__ if source is None else source.path}: {own.__name__}.{name}"

    def refuse(self, name: str, rule: str) -> NoReturn:
        raise SpecError(f"{self.method(name)} {rule}")


def said_by(error: Exception) -> str:
    """What an error says, in one line that is not too long."""
    return shorten(f"{type(error).__name__}: {error}", 240)


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class _Kinds:
    """How many kinds of tokens there are, and how answers are made of them."""

    inputs: int | None
    answers: int
    start: int | None
    length: int

    @staticmethod
    def of(ask: _Asking) -> "_Kinds":
        answers = ask("vocabulary", int)
        tokens, start = ask.maybe("tokens", Tokens), ask.maybe("start", int)
        shared = Tokens.shared(answers).count if start is None else answers
        kinds = None if ask("images", bool) else shared if tokens is None else tokens.count
        if answers < 2:
            ask.refuse("vocabulary", f"is {answers}; it must be at least 2")
        if start is not None and not 0 <= start < answers:
            ask.refuse("start", f"is {start}; tokens of an answer go from 0 to {answers - 1}")
        found = _Kinds(kinds, answers, start, ask("target_length", int))
        places = ask("places", list)
        if len(places) != found.length or not all(isinstance(each, str) for each in places):
            ask.refuse("places", f"returned {_short(places)}; target_length asks for {found.length} names")
        return found


def _check_examples(ask: _Asking, kinds: _Kinds, name: Split, examples: object) -> None:
    """Shapes and tokens of a split."""
    what = f"gave {name} examples"
    if not isinstance(examples, Examples) or not isinstance(examples.targets, Tensor):
        ask.refuse("splits", f"gave {_short(examples)} for {name}; it must be Examples of tensors")
    if not len(examples):
        ask.refuse("splits", f"{what} without a single one; each split needs some")
    targets = examples.targets
    shape = (len(targets),) if kinds.start is None else (len(targets), kinds.length)
    if tuple(targets.shape) != shape:
        rule = "a class each" if kinds.start is None else f"target_length, {kinds.length}, tokens each"
        ask.refuse("splits", f"{what} with targets of shape {tuple(targets.shape)}; it must be {rule}")
    _check_range(ask, f"{what} with the target", targets, kinds.answers, "vocabulary")
    part = ask.try_to("splits", lambda: examples[slice(0, PART)])
    inputs = ask.try_to("splits", lambda: part.inputs)
    if not inputs or not all(isinstance(each, Tensor) and len(each) == len(part) for each in inputs):
        ask.refuse("splits", f"{what} whose inputs are not tensors with a row for each target")
    if kinds.inputs is not None:
        _check_range(ask, f"{what} with the input token", inputs[0], kinds.inputs, "tokens")
    if kinds.start is None:
        return
    if len(inputs) != 2 or not torch.equal(inputs[1], shifted(part.targets, kinds.start)):
        way = "make it with attnlab.sets.shifted(targets, start)"
        ask.refuse("splits", f"{what} whose second input is not the answer behind the start token; {way}")


def _check_range(ask: _Asking, what: str, tokens: Tensor, kinds: int, method: str) -> None:
    if tokens.is_floating_point() or tokens.dtype == torch.bool:
        ask.refuse("splits", f"{what}s of type {tokens.dtype}; they must be whole numbers")
    odd = tokens[(tokens < 0) | (tokens >= kinds)]
    if len(odd):
        ask.refuse("splits", f"{what} {int(odd[0])}; {method} allows 0 to {kinds - 1}")


def _check_apart(ask: _Asking, splits: Splits) -> None:
    """No input stands in two splits."""
    known: dict[int, tuple[Split, int]] = {}
    for name in SPLITS:
        for number, row in enumerate(_rows(splits[name], ask.task.padding)):
            other, at = known.setdefault(hash(row), (name, number))
            if other != name:
                same = f"gave {name} example {number} the same input as {other} example {at}"
                ask.refuse("splits", f"{same}; no input may be in two splits")


def _rows(examples: Examples, padding: int | None) -> Iterator[bytes]:
    """Inputs without the padding behind them, as many as are compared."""
    left = MOST
    for start in range(0, len(examples), PART):
        first = examples[slice(start, start + PART)].inputs[0]
        left -= first.numel()
        if left < 0 and start:
            return
        rows = first.numpy()
        lengths = [rows.shape[1]] * len(rows) if padding is None else (rows != padding).sum(axis=1).tolist()
        yield from (row[:length].tobytes() for row, length in zip(rows, lengths, strict=True))


def _check_drawing(ask: _Asking, seed: int) -> None:
    """The same seed gives the same examples, whatever else draws numbers."""
    small, drawn = _smaller(ask.task), []
    for other in range(2):
        with other_chance(other):
            drawn.append(ask.try_to("splits", lambda: small.splits(seed)))
    for name in SPLITS:
        pairs = zip(*((*each[name].stored, each[name].targets) for each in drawn), strict=True)
        if not all(torch.equal(one, other) for one, other in pairs):
            rule = "everything random must come from the seed"
            ask.refuse("splits", f"gave other {name} examples for the same seed; {rule}")


def _smaller(task: Task) -> Task:
    """The task with fewer examples, if it can have them."""
    try:
        return replace(task, **{name: min(AGAIN, getattr(task, name)) for name in SPLITS})
    except Exception:  # whatever rule of its own it has
        return task


@contextmanager
def other_chance(seed: int) -> Iterator[None]:
    """A seed for everything that draws without a generator of its own; afterwards that is as before."""
    ours, theirs = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(ours)
            np.random.set_state(theirs)


def _check_epochs(ask: _Asking, kinds: _Kinds, splits: Splits) -> None:
    """What epochs and steps get in the place of the training examples is like them."""
    if splits.resample is not None:
        resample = splits.resample
        examples = ask.try_to("splits", lambda: resample(1))
        _check_examples(ask, kinds, "train", examples)
        if len(examples) != len(splits.train):
            ask.refuse("splits", f"renews {len(splits.train)} training examples as {len(examples)}")
    if splits.augment is not None:
        altered, part = splits.augment, splits.train[slice(0, FEW)]
        _check_examples(ask, kinds, "train", ask.try_to("splits", lambda: altered(part, 0)))


def _check_words(ask: _Asking, kinds: _Kinds, splits: Splits) -> None:
    """Answers, groups, and for tokens what people read and write."""
    strata = ask("strata", dict, splits.test)
    for name, group in strata.items():
        if not isinstance(group, Tensor) or group.dtype != torch.bool or len(group) != len(splits.test):
            ask.refuse("strata", f"gave {_short(group)} for {name!r}; a group is a mask of the examples")
    for name in SPLITS:
        for number in range(min(FEW, len(splits[name]))):
            example = one_example(splits[name], number, ask.task.padding)
            ask("answer", str, example.targets.flatten())
            if kinds.inputs is not None:
                text = _shown(ask, "show", example, f"{name} example {number}").name
                for each in (text, text[:-1], text[: len(text) // 2], text + text, f"{text} {text}"):
                    _check_text(ask, kinds, each)
    for text in ("", "0", "-1", "x", "?", "0 1", "é"):
        if kinds.inputs is not None:
            _check_text(ask, kinds, text)


def _shown(ask: _Asking, method: str, example: Examples, what: str) -> Shown:
    gives = "accepts" if method == "parse" else "is given"
    try:
        shown = ask.task.show(example)
        labels = len(shown.labels)
    except Exception as error:
        ask.refuse(method, f"{gives} {what}, and show raised {said_by(error)}")
    length = example.inputs[0].shape[1]
    if not isinstance(shown, Shown) or labels != length:
        ask.refuse(method, f"{gives} {what}, and show gave {labels} labels for {length} tokens")
    return shown


def _check_text(ask: _Asking, kinds: _Kinds, text: str) -> None:
    """``parse`` refuses a text, or makes an example of it that ``show`` can show."""
    try:
        example = ask("parse", Examples, text)
    except InputError:
        return
    tokens = example.inputs[0]
    if tokens.dim() != 2 or len(tokens) != 1 or len(example) != 1:
        ask.refuse("parse", f"made {len(example)} examples of {_short(text)}; it must make one")
    assert kinds.inputs is not None
    odd = tokens[(tokens < 0) | (tokens >= kinds.inputs)]
    if len(odd):
        rule = f"tokens allows 0 to {kinds.inputs - 1}"
        ask.refuse("parse", f"made the token {int(odd[0])} of {_short(text)}; {rule}")
    name = _shown(ask, "parse", example, repr(text)).name
    try:
        again = ask("parse", Examples, name).inputs[0]
    except InputError as error:
        ask.refuse("parse", f"accepts {_short(text)}, and not what show makes of it, {name!r} ({error})")
    if not torch.equal(again, tokens):
        ask.refuse("parse", f"reads what show makes of {_short(text)}, {name!r}, as another input")
