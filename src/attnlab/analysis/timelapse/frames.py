"""What a model was at one step: how good, where its heads looked, how far its positions had moved."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.analysis.heads import KeySets, measure_heads, run_sets
from attnlab.analysis.positions import Moved, movements, run_places
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.errors import InputError
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.runs import Run, load_model, snapshot_name
from attnlab.training import Measured, measure

Means = dict[str, dict[str, float]]
"""Values of metrics by the name of a head."""


@dataclass(frozen=True)
class Stage:
    """What every frame of a run is measured on: all examples for accuracy, some of them for heads."""

    run: Run
    valid: Examples
    some: Subject
    sets: KeySets


@dataclass(frozen=True)
class Frame:
    """The model after ``step`` steps."""

    step: int
    model: Model
    measured: Measured
    heads: Means
    uniform: Means
    moved: list[tuple[str, Moved]]


def set_stage(run: Run, examples: int) -> Stage:
    """The validation examples of ``run``, and ``examples`` of them to look at heads with."""
    if examples < 1:
        raise InputError(f"--examples is {examples}; it must be at least 1")
    whole = load_subject(run, split="valid", count=2**31)
    some = replace(whole, examples=whole.examples[slice(0, examples)], strata={})
    return Stage(run, whole.examples, some, run_sets(run, some))


def take_frame(stage: Stage, step: int) -> Frame:
    """Measure the snapshot of one step."""
    name = snapshot_name(step)
    model = load_model(stage.run, name)
    heads, uniform = head_means(replace(stage.some, model=model), stage.sets)
    moved = [(stack.name, table) for stack in run_places(stage.run, name) for table in movements(stack)]
    return Frame(step, model, measure(model, stage.valid), heads, uniform, moved)


def head_means(subject: Subject, sets: KeySets) -> tuple[Means, Means]:
    """Every metric of every head, and what uniform attention would have."""
    means: Means = {}
    uniform: Means = {}
    measured = measure_heads(subject, sets)
    for path, metrics in measured.items():
        for index in range(attentions(subject.model)[path].heads):
            head = f"{path}.{index}"
            counts = {name: sums.rows[:, index].sum() for name, sums in metrics.items()}
            known = [name for name, count in counts.items() if count > 0]
            means[head] = {name: _mean(metrics[name].heads, index, counts[name]) for name in known}
            uniform[head] = {name: _mean(metrics[name].uniform, index, counts[name]) for name in known}
    return means, uniform


def _mean(sums: Tensor, index: int, count: Tensor) -> float:
    return float(torch.div(sums[:, index].sum(), count))
