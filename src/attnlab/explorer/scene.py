"""What the explorer's page is told: the subject, which no input changes, and the scene of one question.

The fields are the keys of the JSON that the page gets (``messages.py``), and of the types in
``js/types.js``; ``Values`` travel as bytes. A question names an input, edits and what is wanted; the scene
has the answer as it forms, attention patterns, what the model would answer after each layer, and hidden
values.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from attnlab.explorer.edits import Edit
from attnlab.model import Side
from attnlab.notation import Kind
from attnlab.progress import Progress
from attnlab.specs import Split

Asked = Literal["valid", "test"]
"""Splits whose examples are shown."""


@dataclass(frozen=True, eq=False)
class Values:
    """Numbers with a shape: 32-bit floats, or bytes of an image."""

    array: Float[np.ndarray, "..."] | UInt8[np.ndarray, "..."]

    @staticmethod
    def of(tensor: Tensor) -> "Values":
        """The numbers of a tensor on the CPU."""
        array = tensor.numpy()
        kept = array.dtype == np.uint8
        return Values(np.ascontiguousarray(array, dtype=np.uint8 if kept else np.float32))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and np.array_equal(self.array, other.array)

    __hash__ = None  # type: ignore[assignment]


# what does not depend on the input


@dataclass(frozen=True)
class ImageForm:
    """An image: its size, and the cells that it is made of. ``ink``: grey, light on dark, one shape a cell,
    as in MNIST.
    """

    channels: int
    height: int
    width: int
    rows: int = 1
    columns: int = 1
    ink: bool = False


@dataclass(frozen=True)
class Stratum:
    """A group of examples of a split; ``count`` is None until the examples have been answered."""

    name: str
    count: int | None


@dataclass(frozen=True)
class TaskForm:
    """How inputs are given and answers are read. ``labels`` name the logits; logits behind the last label
    are never said (the start token behind the classes of an image).
    """

    kind: str
    noun: str
    input: Literal["text", "image", "examples"]
    placeholder: str
    suggestions: list[str]
    image: ImageForm | None
    labels: list[str]
    places: list[str]
    answer: Literal["class", "sequence"]
    note: str
    splits: dict[Asked, list[Stratum]]
    tour: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class SiteForm:
    """One attention. Keys that a model joins from several parts are ``places`` of the answer."""

    path: str
    stack: str
    layer: int
    kind: Kind
    heads: int
    queries: Side
    keys: Literal["input", "answer", "places"]


@dataclass(frozen=True)
class LayerForm:
    path: str
    parts: list[str]


@dataclass(frozen=True)
class FeedForm:
    path: str
    hidden: int


@dataclass(frozen=True)
class StreamForm:
    """A place of the residual stream where the readout is applied early."""

    path: str
    name: str


@dataclass(frozen=True)
class PatchForm:
    """The tokens of an image: ``front`` ones first, then patches row by row."""

    rows: int
    columns: int
    front: int


@dataclass(frozen=True)
class ModelForm:
    """Sites, layers, feeds and streams are in the order of computation."""

    kind: str
    parameters: int
    sites: list[SiteForm]
    layers: list[LayerForm]
    feeds: list[FeedForm]
    streams: list[StreamForm]
    patches: PatchForm | None


@dataclass(frozen=True)
class SnapshotForm:
    """Weights on the way; ``accuracy`` is that of the epoch that ended there, if one did."""

    step: int
    epoch: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Abilities:
    """``findings``: whether a diagnosis can be shown."""

    ablate: bool
    explain: bool
    heads: bool
    pictures: bool
    snapshots: bool
    findings: bool


@dataclass(frozen=True)
class Subject:
    """What is explored: a run or a wrapped model."""

    name: str
    title: str
    facts: list[tuple[str, str]]
    task: TaskForm
    model: ModelForm
    snapshots: list[SnapshotForm]
    baselines: list[str]
    abilities: Abilities
    source: Literal["server", "widget", "handout"] = "server"


@dataclass(frozen=True)
class Listed:
    """A run in the list of runs; ``accuracy`` is that of validation, if it is known."""

    name: str
    title: str
    task: str
    accuracy: float | None


# a question


@dataclass(frozen=True)
class TextInput:
    """An input as the task writes it."""

    text: str


@dataclass(frozen=True)
class ExampleInput:
    """An example of a split."""

    split: Split
    index: int


@dataclass(frozen=True)
class PixelsInput:
    """An image (C, H, W) of 0 to 255, as the task has its images."""

    pixels: Values


Input = TextInput | ExampleInput | PixelsInput


@dataclass(frozen=True)
class Want:
    """Which patterns (True for all), whether early guesses, and the hidden values of which feed."""

    patterns: bool | tuple[str, ...] = True
    guesses: bool = True
    neurons: str | None = None


@dataclass(frozen=True)
class Question:
    """``other`` is the input that swapped values come from."""

    input: Input
    other: Input | None = None
    edits: tuple[Edit, ...] = ()
    snapshot: int | None = None
    want: Want = Want()


# the scene


@dataclass(frozen=True)
class ShownInput:
    name: str
    labels: list[str]
    truth: str | None
    pixels: Values | None


@dataclass(frozen=True)
class Token:
    """One token of an answer; ``top`` are the five likeliest."""

    label: str
    place: str
    probability: float
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Answer:
    """A class is one token. ``probability`` is the product over all tokens."""

    text: str
    probability: float
    correct: bool | None
    tokens: list[Token]


@dataclass(frozen=True)
class SideLabels:
    """Names of queries and keys by their side; those of the answer are the tokens fed, the start first."""

    input: list[str]
    answer: list[str]
    places: list[str]


@dataclass(frozen=True)
class Guess:
    """The softmax of an early readout (T, V)."""

    path: str
    values: Values


@dataclass(frozen=True)
class Neurons:
    """Hidden values (T, N) of a feed-forward part, a row a token."""

    path: str
    values: Values


@dataclass(frozen=True)
class Scene:
    """What happened while the model answered; ``patterns`` (H, T, S) by the path of their site."""

    input: ShownInput
    answer: Answer
    labels: SideLabels
    patterns: dict[str, Values]
    guesses: list[Guess]
    neurons: Neurons | None
    seconds: float


# examples and jobs


@dataclass(frozen=True)
class Item:
    index: int
    name: str
    truth: str | None
    pixels: Values | None


@dataclass(frozen=True)
class Page:
    """Some examples of a stratum, and how many it has."""

    total: int
    items: list[Item]


@dataclass(frozen=True)
class Job:
    """An analysis of one input, or of so many examples of a split; ``doctor`` takes none of them."""

    analysis: Literal["ablate", "explain", "heads", "doctor"]
    input: Input | None = None
    examples: int | None = None
    split: Asked = "valid"
    edits: tuple[Edit, ...] = ()
    other: Input | None = None
    snapshot: int | None = None


@dataclass(frozen=True)
class JobTable:
    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class JobResult:
    """What an analysis found, as the report shows it; figures are SVG."""

    title: str
    sentences: list[str]
    tables: list[JobTable]
    figures: list[str]


@dataclass(frozen=True)
class LineForm:
    name: str
    values: list[float | None]


@dataclass(frozen=True)
class CurveForm:
    """A picture of the evidence: lines over ``x``."""

    x_label: str
    y_label: str
    x: list[float | None]
    lines: list[LineForm]


@dataclass(frozen=True)
class FindingForm:
    """One finding of the doctor. ``source`` says what it rests on, ``why`` why the fault does harm."""

    kind: str
    severity: str
    confidence: float
    source: str
    text: str
    explained_by: str
    evidence: list[tuple[str, float | None]]
    curve: CurveForm | None
    remedy: str
    command: str
    code: str
    why: str


@dataclass(frozen=True)
class DiagnosisForm:
    """Findings, the most likely first; how many kinds were ``checked``; which could not be, and why."""

    findings: list[FindingForm]
    checked: str
    unchecked: list[tuple[str, str]]


class Explored(Protocol):
    """Who answers questions about one subject (``bench.Bench``)."""

    def describe(self) -> Subject: ...
    def look(self, question: Question) -> Scene: ...
    def examples(self, split: Asked, stratum: str, start: int, count: int) -> Page: ...
    def read(self, picture: bytes) -> Values: ...
    def findings(self) -> DiagnosisForm | None: ...
    def diagnose(self, progress: Progress) -> DiagnosisForm: ...
    def work(self, job: Job, progress: Progress) -> JobResult: ...
    def warm_up(self) -> None: ...
