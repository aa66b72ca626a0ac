"""What a model was at one step: how good, where its heads looked, how far its positions had moved.

The points of one tap at every step, in one plane, so that frames can be compared.

At each step the vectors are centred on their mean. The plane is that of the first two principal components
at the last step: one basis and one scale for all frames, and what training arrived at is seen to come
apart in it. (A basis of all steps together is that of the start, near which most log-spaced snapshots lie.)
So a point that moves has moved, and a cloud that looks small is small. Drift of the mean is not shown.
Beside each frame stand the share of its variance that the plane holds, and the silhouette of the labels
(Rousseeuw, 1987) in all dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.heads import measure_heads, run_sets
from attnlab.analysis.positions import MovedResult, movements, run_places
from attnlab.analysis.project.points import collect_answers, collect_points
from attnlab.analysis.project.projection import silhouette
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.errors import InputError, LabError
from attnlab.examples import Examples
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.runs import Run, load_model, snapshot_name
from attnlab.spec.task import KeySets
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
    step: int
    model: Model
    measured: Measured
    heads: Means
    uniform: Means
    moved: list[tuple[str, MovedResult]]


def set_stage(run: Run, examples: int) -> Stage:
    """The validation examples of ``run``, and ``examples`` of them to look at heads with."""
    if examples < 1:
        raise InputError(f"--examples is {examples}; it must be at least 1")
    whole = load_subject(run, split="valid", count=2**31)
    some = replace(whole, examples=whole.examples[slice(0, examples)], strata={})
    return Stage(run, whole.examples, some, run_sets(run, some))


def take_frame(stage: Stage, step: int) -> Frame:
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


Vectors = Float[Tensor, "N D"]


@dataclass(frozen=True)
class Cloud:
    vectors: Vectors
    labels: Int[Tensor, "N"]


def collect_cloud(
    run: Run, model: Model, examples: Examples, *, tap: str, token: str, samples: int
) -> Cloud:
    """``samples`` points at ``tap`` of validation examples: classes of images, or answers."""
    task = run.spec().task
    if task.images or token != "digit":
        points = collect_points(run, model, tap, token=token, samples=samples, split="valid")
    else:
        order = torch.arange(len(examples))
        points = collect_answers(task, model, examples, tap, order=order, samples=samples)
    return Cloud(points.vectors, points.labels)


@dataclass(frozen=True, kw_only=True)
class Plane:
    """Points of one tap, by frame in the plane that is common to all; ``label`` counts ``labels``."""

    tap: str
    labels: list[str]
    points: int
    dimensions: int
    label: list[int]
    x: list[list[float]]
    y: list[list[float]]
    variance: list[float]
    silhouette: list[float | None]


def one_plane(clouds: Sequence[Cloud], *, tap: str, labels: list[str]) -> Plane:
    frames = [cloud.vectors.double().numpy() for cloud in clouds]
    if not all(np.isfinite(frame).all() for frame in frames):
        raise LabError("the values at this tap are not all finite, so they cannot be projected")
    centred = [frame - frame.mean(axis=0) for frame in frames]
    basis = _basis(centred[-1])
    flat = [frame @ basis for frame in centred]
    label = clouds[0].labels
    return Plane(
        tap=tap,
        labels=labels,
        points=len(label),
        dimensions=int(frames[0].shape[1]),
        label=label.tolist(),
        x=[[round(x, 4) for x in xy[:, 0].tolist()] for xy in flat],
        y=[[round(y, 4) for y in xy[:, 1].tolist()] for xy in flat],
        variance=[_share(xy, frame) for xy, frame in zip(flat, centred, strict=True)],
        silhouette=[silhouette(frame, label.numpy()) for frame in frames],
    )


def _basis(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "D 2"]:
    """The first two principal directions; the largest entry of each is positive."""
    spread = vectors.T @ vectors
    _, directions = np.linalg.eigh(spread)  # from small to large
    basis = directions[:, ::-1][:, :2]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), range(basis.shape[1])])
    return basis if basis.shape[1] == 2 else np.concatenate((basis, np.zeros_like(basis)), axis=1)


def _share(xy: Float[np.ndarray, "N 2"], vectors: Float[np.ndarray, "N D"]) -> float:
    whole = float((vectors**2).sum())
    return float((xy**2).sum()) / whole if whole > 0 else 0.0
