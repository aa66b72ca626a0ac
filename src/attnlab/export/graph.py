"""A model as an ONNX graph, and how far that is from torch.

Attention is written down as its formulas stand: the parts in which it is computed here for long sequences
depend on their length.
"""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.errors import LabError
from attnlab.export.trial import Inputs, Trial
from attnlab.models import attentions
from attnlab.progress import Progress, silent
from attnlab.taps import edit

BATCH = 3
"""Of the examples that the graph is made with; a batch of one would be taken for a rule."""
BATCHES = (1, 2, 7, 64)
TOLERANCE = 1e-4
"""The largest difference of a logit, as a share of the largest logit, or of 1 if that is smaller."""


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
class Check:
    """How far the graph is from torch at one size."""

    batch: int
    lengths: list[int]
    difference: float


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
