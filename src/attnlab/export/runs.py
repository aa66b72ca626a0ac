"""From a run to an ONNX file: made, held against torch, and only then written."""

from dataclasses import dataclass
from pathlib import Path

import torch

from attnlab.errors import LabError
from attnlab.export.graph import Graph, make_graph
from attnlab.export.trials import Trial, run_trial
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run
from attnlab.spec import spec_hash
from attnlab.spec.codec import later
from attnlab.storage import write_bytes

BATCHES = (1, 2, 7, 64)
TOLERANCE = 1e-4
"""The largest difference of a logit, as a share of the largest logit, or of 1 if that is smaller."""


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


def export_run(run: Run, path: Path, *, progress: Progress = silent) -> Export:
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


@torch.inference_mode()
def compare(trial: Trial, graph: Graph, *, progress: Progress = silent) -> list[Check]:
    """The difference between torch and the graph at each size; one that is too large is refused."""
    sizes = [(batch, lengths) for batch in BATCHES for lengths in trial.lengths]
    checks = []
    for batch, lengths in sizes:
        inputs = trial.inputs(batch, lengths)
        wanted, found = trial.model(*inputs), graph.logits(inputs)
        difference = _difference(wanted, found)
        if not difference <= TOLERANCE:
            raise LabError(
                f"the graph differs from torch by {difference:.2g} of the largest logit at batch {batch}"
                + (f" and length {' and '.join(map(str, lengths))}" if lengths else "")
                + f", and {TOLERANCE:g} is allowed; nothing was written"
            )
        checks.append(Check(batch, list(lengths), difference))
        progress(len(checks), len(sizes))
    _compare_greedy(trial, graph)
    return checks


def _difference(wanted: torch.Tensor, found: torch.Tensor) -> float:
    if wanted.shape != found.shape:
        return float("inf")
    return ((wanted - found).abs().max() / wanted.abs().max().clamp(min=1)).item()


def _compare_greedy(trial: Trial, graph: Graph) -> None:
    if trial.start is None:
        return
    source = trial.inputs(BATCHES[-1], trial.lengths[0])[0]
    wanted = trial.model.answer(source, start=trial.start, length=trial.steps)
    found = graph.greedy(source, start=trial.start, length=trial.steps)
    apart = int((wanted != found).any(dim=1).sum())
    if apart:
        raise LabError(
            f"by greedy decoding the graph answers {apart} of {len(source)} examples otherwise than torch; "
            "nothing was written"
        )
