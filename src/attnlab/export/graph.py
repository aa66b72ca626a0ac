"""A model as an ONNX graph, and how far it is from torch.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.errors import LabError
from attnlab.export.trials import Trial
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.taps import edit

BATCH = 3
"""Of the examples that the graph is made with; a batch of one would be taken for a rule."""


@dataclass(frozen=True)
class Graph:
    """An ONNX graph in bytes, ready to be run."""

    content: bytes
    names: tuple[str, ...]
    session: Any

    def logits(self, inputs: tuple[Tensor, ...]) -> Float[Tensor, "B *T V"]:
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
    with _quietly(), _by_formulas(trial.model):
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


def _by_formulas(model: Model) -> Any:
    return edit(model, {f"{path}.scores": lambda scores: scores for path in attentions(model)})


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
