"""What happens inside a model while it answers: the value at every tap, with names for its rows.

    seen = record_answers(task, model, examples)
    seen["decoder.1.cross.pattern"]          # (B, H, T, S)
    seen["decoder.1.cross.pattern"].keys     # what the keys stand for, for each example

The model answers first, by greedy decoding; then one pass is fed what it said. A decoder that is causal
computes at every place what it computed while it decoded, so this is what happened.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, final

import torch
from torch import Tensor

from attnlab.analysis.predict import answer, fed_inputs
from attnlab.devices import to_device_of
from attnlab.errors import InputError, brief, nearest
from attnlab.model import Model, Side
from attnlab.models.images import patch_grid
from attnlab.results import Drawing
from attnlab.sets import Examples, one_example
from attnlab.specs import Task
from attnlab.taps import record

WEIGHTS = ("scores", "pattern")  # taps with a row a query and a column a key
BY_KEY = ("k", "v")


@final
class Labelled(Tensor):
    """A recorded value that knows what its rows stand for; whatever is computed from it is a plain tensor.

    ``examples`` and ``heads`` name the first two axes of an attention's tap, ``queries`` and ``keys`` the
    others, for each example its own list. At taps without heads, ``queries`` are the tokens.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    examples: list[str]
    heads: list[str]
    queries: list[list[str]]
    keys: list[list[str]]


@final
@dataclass(frozen=True)
class Recording(Mapping[str, Labelled]):
    """Values by the names of their taps; ``examples`` are what was asked, ``answers`` what was said.

    ``said`` are, for each example, the tokens of its answer, where attentions have a query for each: those
    whose paths are in ``saying``.
    """

    examples: list[str]
    answers: list[str]
    taps: dict[str, Labelled] = field(repr=False)
    image: Tensor | None = field(default=None, repr=False)
    said: list[list[str]] = field(default_factory=list, repr=False)
    saying: frozenset[str] = field(default=frozenset(), repr=False)
    note: str = field(default="", repr=False)

    def __getitem__(self, name: str) -> Labelled:
        if name not in self.taps:
            raise InputError(f"nothing was recorded at {brief(name)}{nearest(name, self.taps)}")
        return self.taps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.taps)

    def __len__(self) -> int:
        return len(self.taps)

    def patterns(self, pattern: str = "*", *, example: int = 0) -> "list[AttentionPatterns]":
        """Where heads look in one example, of the attentions whose path matches ``pattern``."""
        if not 0 <= example < len(self.examples):
            raise InputError(f"example is {example}; there are {len(self.examples)}, counted from 0")
        found = {
            name.removesuffix(".pattern"): value
            for name, value in self.taps.items()
            if name.endswith(".pattern") and fnmatchcase(name.removesuffix(".pattern"), pattern)
        }
        if not found:
            known = [name.removesuffix(".pattern") for name in self.taps if name.endswith(".pattern")]
            raise InputError(f"no attention matches {brief(pattern)}{nearest(pattern, known)}")
        return [self._patterns(path, value, example) for path, value in found.items()]

    def _patterns(self, path: str, value: Labelled, example: int) -> "AttentionPatterns":
        """Of one attention; what is fed behind the end of the answer is left out."""
        queries, keys = value.queries[example], value.keys[example]
        says = self.said[example] if path in self.saying else None
        if says is not None:
            keys = keys[: len(says)] if keys == queries else keys
            queries = queries[: len(says)]
        return AttentionPatterns(path, value[example, :, : len(queries), : len(keys)], queries, keys, says)

    def plot(self, pattern: str = "*", *, example: int = 0) -> Any:
        """The patterns of all heads of the attentions that match, such as ``decoder.*.cross``."""
        drawing = self._drawing(pattern, example)
        return drawing.draw(drawing.data)

    def _drawing(self, pattern: str, example: int) -> Drawing:
        from importlib import import_module

        of = import_module("attnlab.figures.patterns")
        data = of.patterns_data(
            self.patterns(pattern, example=example),
            example=self.examples[example],
            answer=self.answers[example],
            note=self.note,
        )
        return Drawing(data, of.draw_patterns)

    def _repr_html_(self) -> str:
        from attnlab.results import Table, parts_html

        rows = [(name, str(tuple(value.shape))) for name, value in self.taps.items()]
        title = "; ".join(f"{a} → {b}" for a, b in zip(self.examples, self.answers, strict=True))
        return parts_html([Table(title, ("tap", "shape"), tuple(rows))])


@dataclass(frozen=True)
class AttentionPatterns:
    """Patterns (H, T, S) of one attention, with a sign for each query and each key.

    ``says`` are the tokens that a decoder says at its queries, each the one behind the token that goes in.
    """

    attention: str
    pattern: Tensor
    queries: list[str]
    keys: list[str]
    says: list[str] | None = None

    @property
    def head_names(self) -> list[str]:
        """The names of its heads."""
        return [f"{self.attention}.{index}" for index in range(len(self.pattern))]


@torch.no_grad()
def record_answers(
    task: Task, model: Model, examples: Examples, *taps: str, names: Sequence[str] = ()
) -> Recording:
    """Record the taps that match while ``model`` answers ``examples``, by default all of them.

    ``names`` are those of the examples; tokens name themselves. A row of a decoder is labelled with the
    token that goes in at that place; what comes out stands in the next row. A token of an input is labelled
    as the task shows it, a patch of an image with its row and column, and a key that the model joins from
    several patches with the place of the answer that it stands for.
    """
    said = answer(task, model, examples)
    inputs = fed_inputs(task, examples, said)
    with record(model, *(taps or ("*",))) as seen:
        model(*to_device_of(model, *inputs))
    shown = [] if task.images else [task.show(one) for one in _singly(task, examples)]
    called = list(names) or [each.name for each in shown]
    labels = Labels(
        called,
        model,
        _Tokens(task, inputs, [each.labels for each in shown]),
        tuple(task.places_of(examples.answer_length)),
    )
    values = {name: labels.of(name, value.cpu()) for name, value in seen.items()}
    image = inputs[0] if task.images else None
    saying = frozenset(site.path for site in model.sites() if site.queries == "answer")
    symbols = [task.symbols(_to_end(row, task.end)) for row in said] if saying else []
    answers = [task.answer(each) for each in said]
    return Recording(called, answers, values, image, symbols, saying, task.note())


def _to_end(tokens: Tensor, end: int | None) -> Tensor:
    """An answer as far as its first token of the end, if it has one."""
    ends = (tokens == end).nonzero()[:, 0].tolist() if end is not None else []
    return tokens[: ends[0] + 1] if ends else tokens


def _singly(task: Task, examples: Examples) -> list[Examples]:
    return [one_example(examples, number, task.padding) for number in range(len(examples))]


@final
@dataclass(frozen=True)
class Labels:
    """``tokens`` gives the signs of the tokens of a side, which are so many, for each of the ``examples``.
    ``places`` are those of the answer, for which keys stand that the model joins from several tokens.
    """

    examples: list[str]
    model: Model
    tokens: Callable[[Side, int], list[list[str]]]
    places: tuple[str, ...] = ()

    def of(self, name: str, value: Tensor) -> Labelled:
        """The value at the tap ``name`` with what its rows stand for."""
        path, _, last = name.rpartition(".")
        site = next((each for each in self.model.sites() if each.path == path), None)
        made = value.as_subclass(Labelled)
        made.examples, made.heads, made.queries, made.keys = self.examples, [], [], []
        if site is None:
            made.queries = self.tokens(self.model.side(path), value.shape[1]) if value.dim() == 3 else []
            return made
        made.heads = [] if last == "out" else site.head_names
        rows = value.shape[1 if last == "out" else 2]
        keyed = site.kind == "cross" and self.model.joined_keys() is not None
        if last not in BY_KEY:
            made.queries = self.tokens(site.queries, rows)
        if last in (*WEIGHTS, *BY_KEY):
            count = value.shape[3] if last in WEIGHTS else rows
            joined = [list(self.places)] * len(self.examples)
            made.keys = joined if keyed else self.tokens(site.keys, count)
        return made


@dataclass(frozen=True)
class _Tokens:
    """Signs of tokens: of the input as the task shows them, of the answer as they were fed."""

    task: Task
    inputs: tuple[Tensor, ...]
    shown: list[list[str]]

    def __call__(self, side: Side, count: int) -> list[list[str]]:
        if side == "answer":
            return [self.task.symbols(row) for row in self.inputs[1]]
        if self.task.images:
            return [fronted(patch_names(self.inputs[0].shape[-2:], count), count)] * len(self.inputs[0])
        return [fronted(labels, count - self.inputs[0].shape[1] + len(labels)) for labels in self.shown]


def fronted(names: list[str], count: int) -> list[str]:
    """``names`` with so many tokens in front that there are ``count``."""
    return ["cls"] * (count - len(names)) + names


def patch_names(image: Sequence[int], tokens: int) -> list[str]:
    """``row,column`` of each patch of an image."""
    rows, columns = patch_grid(image, tokens)
    return [f"{row},{column}" for row in range(rows) for column in range(columns)]
