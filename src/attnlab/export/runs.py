"""From a run to an ONNX file: a graph is made, held against torch, and only then written.

A classifier becomes one graph: its input in, logits out. An encoder-decoder becomes the graph of its
forward pass by teacher forcing, source and target so far in, logits of every next token out: greedy
decoding calls it once a token, without a cache, and appends the likeliest token each time. Batches may have
any size, and so may sequences of tokens; images keep theirs.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from attnlab.export.graph import TOLERANCE, Check, compare, make_graph
from attnlab.export.instructions import make_instructions
from attnlab.export.trial import run_trial
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.specs.codec import later
from attnlab.storage import write_bytes, write_json


@dataclass(frozen=True)
class GraphInput:
    """An input of a graph; an axis that may have any size has a name."""

    name: str
    shape: list[str | int]


@dataclass(frozen=True, kw_only=True)
class Export(Result):
    """What was written, and how far it is from torch; ``start`` and ``steps`` are of greedy decoding.

    ``instructions`` is the file that says what the numbers of inputs and logits stand for.
    """

    run: str
    file: str
    instructions: str
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
    """Write the model of ``run`` and instructions beside it, and tell how far the graph is from torch."""
    trial = run_trial(run)
    told = make_instructions(run, trial)
    notes = {"run": told.run, "spec": told.spec, "task": told.task.kind, "about": told.about}
    if trial.start is not None:
        notes |= {"start": str(trial.start), "steps": str(trial.steps)}
    content = told.to_json()
    graph = make_graph(trial, {**notes, "instructions": json.dumps(content, ensure_ascii=False)})
    checks = compare(trial, graph, progress=progress)
    write_bytes(path, graph.content)
    beside = path.with_name(f"{path.name}.json")
    write_json(beside, content)
    return Export(
        file=str(path),
        instructions=str(beside),
        bytes=len(graph.content),
        inputs=[GraphInput(part.name, list(part.shape)) for part in graph.session.get_inputs()],
        **notes,
        tolerance=TOLERANCE,
        difference=max(check.difference for check in checks),
        checks=checks,
    )
