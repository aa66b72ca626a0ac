"""From a run to an ONNX file: a graph is made, held against torch, and only then written.

A classifier becomes one graph: its input in, logits out. An encoder-decoder becomes the graph of its
forward pass by teacher forcing, source and target so far in, logits of every next token out: greedy
decoding calls it once a token, without a cache, and appends the likeliest token each time. Batches may have
any size, and so may sequences of tokens; images keep theirs.

Attention is written down as its formulas stand: the parts in which it is computed here for long sequences
depend on their length.
"""

import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.image_classifier import image_classifier
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.specs import Task, spec_hash
from attnlab.specs.codec import later
from attnlab.storage import write_bytes
from attnlab.taps import edit

Inputs = tuple[Tensor, ...]
Lengths = tuple[int, ...]
BEYOND, FURTHEST = 4, 512
"""How many times the usual length is tried too, and up to which length: memory grows with its square."""
BATCH = 3
"""Of the examples that the graph is made with; a batch of one would be taken for a rule."""
BATCHES = (1, 2, 7, 64)
TOLERANCE = 1e-4
"""The largest difference of a logit, as a share of the largest logit, or of 1 if that is smaller."""


@dataclass(frozen=True)
class Trial:
    """What a graph is tried on: ``inputs(batch, lengths)`` are validation examples of a run's own task;
    ``lengths`` has a number for each input of tokens.

    The first lengths are the usual ones, those of the task. ``free`` says which axes of each input may have
    any size. ``start`` is the token that greedy decoding begins with, None for a classifier, and ``steps``
    the tokens that it says.
    """

    model: Model
    names: tuple[str, ...]
    free: tuple[tuple[int, ...], ...]
    inputs: Callable[[int, Lengths], Inputs]
    lengths: tuple[Lengths, ...]
    start: int | None = None
    steps: int = 0
    about: str = ""


@dataclass(frozen=True)
class Graph:
    """An ONNX graph in bytes, ready to be run."""

    content: bytes
    names: tuple[str, ...]
    session: Any

    def logits(self, inputs: Inputs) -> Float[Tensor, "B *T V"]:
        """What onnxruntime computes."""
        given = {name: part.numpy() for name, part in zip(self.names, inputs, strict=True)}
        return torch.from_numpy(self.session.run(["logits"], given)[0])

    def greedy(self, source: Tensor, *, start: int, length: int) -> Int[Tensor, "B T"]:
        """The likeliest next token, ``length`` times."""
        tokens = torch.full((len(source), 1), start)
        for _ in range(length):
            following = self.logits((source, tokens))[:, -1:].argmax(dim=-1)
            tokens = torch.cat((tokens, following), dim=1)
        return tokens[:, 1:]


@dataclass(frozen=True)
class GraphInput:
    """An input of a graph; an axis that may have any size has a name."""

    name: str
    shape: list[str | int]


@dataclass(frozen=True)
class Check:
    """How far the graph is from torch at one size."""

    batch: int
    lengths: list[int]
    difference: float


@dataclass(frozen=True, kw_only=True)
class Export(Result):
    """What was written, and how far it is from torch; ``start`` and ``steps`` are of greedy decoding."""

    run: str
    file: str
    bytes: int
    inputs: list[GraphInput]
    spec: str
    task: str
    about: str
    start: str | None = later(None)
    steps: str | None = later(None)
    tolerance: float
    difference: float
    checks: list[Check]


def export_run(run: RunFolder, path: Path, *, progress: Progress = silent) -> Export:
    """Write the model of ``run`` to ``path``, and tell how far it is from torch."""
    trial = run_trial(run)
    spec = run.spec()
    notes = {"run": run.name, "spec": spec_hash(spec), "task": spec.task.kind, "about": trial.about}
    if trial.start is not None:
        notes |= {"start": str(trial.start), "steps": str(trial.steps)}
    graph = make_graph(trial, notes)
    checks = compare(trial, graph, progress=progress)
    write_bytes(path, graph.content)
    return Export(
        file=str(path),
        bytes=len(graph.content),
        inputs=[GraphInput(part.name, list(part.shape)) for part in graph.session.get_inputs()],
        **notes,
        tolerance=TOLERANCE,
        difference=max(check.difference for check in checks),
        checks=checks,
    )


def run_trial(run: RunFolder) -> Trial:
    """The model of ``run``, with inputs of its task."""
    task, model = run.spec().task, run.model
    examples = task.splits(run.spec().seed).valid
    images = int(task.images)  # how many inputs come before those of tokens
    usual = tuple(part.shape[1] for part in examples[slice(0, 1)].inputs[images:])

    def inputs(batch: int, lengths: Lengths) -> Inputs:
        parts = examples[torch.arange(batch) % len(examples)].inputs
        tokens = zip(parts[images:], lengths, strict=True)
        return (*parts[:images], *(_resized(each, length, task.padding) for each, length in tokens))

    @torch.inference_mode()
    def taken(lengths: Lengths) -> bool:
        """Whether there is memory for so many tokens, and the model has places for them."""
        if max(lengths) > max(FURTHEST, *usual):
            return False
        try:
            model(*inputs(1, lengths))
        except LabError:
            return False
        return True

    first = "images" if images else "tokens" if task.start is None else "source"
    names = (first,) if task.start is None else (first, "target")
    return Trial(
        model,
        names,
        tuple((0,) if name == "images" else (0, 1) for name in names),
        inputs,
        (usual, *filter(taken, _other_lengths(task, usual))),
        task.start,
        0 if task.start is None else task.target_length,
        f"{first}: {_about(run, task)}",
    )


def _resized(rows: Int[Tensor, "B L"], length: int, padding: int | None) -> Int[Tensor, "B M"]:
    """Rows of another length, cut off or begun again behind what is no padding."""
    if length <= rows.shape[1]:
        return rows[:, :length]
    filled = torch.ones_like(rows) if padding is None else rows != padding
    return rows.take_along_dim(torch.arange(length) % filled.sum(dim=1, keepdim=True).clamp(min=1), dim=1)


def _other_lengths(task: Task, usual: Lengths) -> list[Lengths]:
    """Shorter ones than usual, and much longer ones where inputs are tokens."""
    beyond = tuple(BEYOND * each for each in usual)
    if task.images:
        tried = [tuple(min(most, each) for each in usual) for most in (2, 1)]
    elif task.start is None:
        tried = [(min(5, *usual),), (min(2, *usual),), beyond]
    else:
        told, said = usual
        tried = [(told, 1), (max(1, told - 2), min(2, said)), beyond]
    return [each for each in dict.fromkeys(tried) if each != usual]


def _about(run: RunFolder, task: Task) -> str:
    """What the numbers of inputs and logits stand for."""
    read = task.input_words()
    if task.images:
        mean, deviation = image_classifier(run).members[0].scale
        read = f"(pixels of 0 to 1, ink 1, less {mean}) / {deviation}"
    if task.start is None:
        *names, last = task.labels()
        return f"{read}; logits: of {', '.join(names)} and {last}"
    target = f"target: the start token {task.start} and the answer's tokens so far"
    return f"{read}; {target}; logits: of every next token"


def require_onnx() -> None:
    """Say what to install if it is not there."""
    for module in ("onnx", "onnxruntime", "onnxscript"):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise LabError(f"export needs the package {module}; pip install 'attnlab[onnx]'") from error


def make_graph(trial: Trial, notes: dict[str, str]) -> Graph:
    """The model of ``trial`` as a graph that carries ``notes``."""
    require_onnx()
    import onnx
    import onnxruntime

    free = tuple(
        {axis: "batch" if axis == 0 else f"{name}_length" for axis in axes}
        for name, axes in zip(trial.names, trial.free, strict=True)
    )
    by_formulas = {f"{path}.scores": lambda scores: scores for path in attentions(trial.model)}
    with _quietly(), edit(trial.model, by_formulas):
        try:
            made = torch.onnx.export(
                trial.model,
                trial.inputs(BATCH, trial.lengths[0]),
                dynamo=True,
                dynamic_shapes=free,
                input_names=trial.names,
                output_names=("logits",),
                verbose=False,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            raise LabError(f"torch can make no graph of this model ({_cause(error)})") from error
    if made is None:
        raise LabError("torch made no graph of this model")
    proto = made.model_proto
    onnx.helper.set_model_props(proto, notes)
    onnx.checker.check_model(proto)
    content = proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return Graph(content, trial.names, session)


def _cause(error: BaseException) -> str:
    """The first line of what went wrong first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).splitlines()), type(error).__name__)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without torch's remarks about other packages."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


@torch.inference_mode()
def compare(trial: Trial, graph: Graph, *, progress: Progress = silent) -> list[Check]:
    """The difference between torch and the graph at each size; one that is too large is refused."""
    sizes = [(batch, lengths) for batch in BATCHES for lengths in trial.lengths]
    checks = []
    for batch, lengths in sizes:
        inputs = trial.inputs(batch, lengths)
        difference = _difference(trial.model(*inputs), graph.logits(inputs))
        if not difference <= TOLERANCE:
            raise LabError(
                f"the graph differs from torch by {difference:.2g} of the largest logit at batch {batch}"
                + (f" and length {' and '.join(map(str, lengths))}" if lengths else "")
                + f", and {TOLERANCE:g} is allowed; nothing was written"
            )
        checks.append(Check(batch, list(lengths), difference))
        progress(len(checks), len(sizes))
    if trial.start is not None:
        source = trial.inputs(BATCHES[-1], trial.lengths[0])[0]
        wanted = trial.model.answer(source, start=trial.start, length=trial.steps)
        found = graph.greedy(source, start=trial.start, length=trial.steps)
        apart = int((wanted != found).any(dim=1).sum())
        if apart:
            raise LabError(
                f"by greedy decoding the graph answers {apart} of {len(source)} examples otherwise than "
                "torch; nothing was written"
            )
    return checks


def _difference(wanted: Tensor, found: Tensor) -> float:
    if wanted.shape != found.shape:
        return float("inf")
    return ((wanted - found).abs().max() / wanted.abs().max().clamp(min=1)).item()
