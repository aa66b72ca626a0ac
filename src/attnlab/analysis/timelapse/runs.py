"""The time-lapse of a run: every snapshot measured, and the moment in which it learned.

Of each snapshot: how good it was, where its heads looked, how far its positions had moved; and the points
of one tap at every step, in one plane, so that frames can be compared.

At each step the vectors are centred on their mean. The plane is that of the first two principal components
at the last step: one basis and one scale for all frames, and what training arrived at is seen to come
apart in it. (A basis of all steps together is that of the start, near which most log-spaced snapshots lie.)
So a point that moves has moved, and a cloud that looks small is small. Drift of the mean is not shown.
Beside each frame stand the share of its variance that the plane holds, and the silhouette of the labels
(Rousseeuw, 1987) in all dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.heads import METRICS, measure_heads, run_sets
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.positions import MovedResult, first_model, movements, run_places
from attnlab.analysis.project.points import Points, collect_answers, collect_points, tap_path
from attnlab.analysis.project.projection import FEWEST, silhouette
from attnlab.analysis.subjects import Subject, load_subject
from attnlab.analysis.timelapse.moments import Moment, find_moment, frames_around
from attnlab.errors import InputError, LabError
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Result, Row
from attnlab.runs import RunFolder, load_model, save_if_larger, snapshot_name, snapshot_steps
from attnlab.specs.task import KeySets
from attnlab.training import Measured, measure

SHOWN_ROWS = 64
"""Position vectors whose way is kept each for itself."""
CHANGED = 5
TOKEN = "digit"
SIZES = ("examples", "points")
"""What a time-lapse is measured on; one that is larger in either is kept."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Accuracy and loss on all validation examples, at snapshots and after each epoch of training."""

    step: list[int]
    accuracy: list[float]
    loss: list[float]


@dataclass(frozen=True, kw_only=True)
class HeadLine:
    """Metrics of one head over snapshots, and what uniform attention would have."""

    head: str
    metrics: dict[str, list[float]]
    uniform: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Change:
    head: str
    metric: str
    from_step: int
    to_step: int
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class TableLine:
    """How far the rows of a trained table of positions are from their start, by snapshot."""

    stack: str
    table: str
    rows: list[int]
    distance: list[list[float]]
    mean: list[float]
    sideways: list[float]
    start_norm: float


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


@dataclass(frozen=True, kw_only=True)
class Timelapse(Result):
    """What was measured, as columns over steps; ``metrics`` are those that heads have, in words."""

    shown_by: ClassVar[str] = "attnlab.tables.timelapse"

    run: str
    task: str
    steps: list[int]
    accuracy: list[float]
    token_accuracy: list[float]
    loss: list[float]
    curve: Curve
    moment: Moment
    metrics: dict[str, str]
    heads: list[HeadLine]
    changed: list[Change]
    positions: list[TableLine]
    examples: int
    valid: int
    points: int
    projection: Plane | None

    def records(self) -> list[Row]:
        """A row for each snapshot and number: of the whole model, where ``of`` is model, of a head, of a
        table of positions or of the projected tap.
        """
        columns: list[tuple[str, str, Sequence[float | None]]] = [
            ("model", "accuracy", self.accuracy),
            ("model", "token_accuracy", self.token_accuracy),
            ("model", "loss", self.loss),
            *((head.head, name, values) for head in self.heads for name, values in head.metrics.items()),
            *((f"{each.stack}, {each.table}", "moved", each.mean) for each in self.positions),
        ]
        if self.projection is not None:
            columns.append((self.projection.tap, "silhouette", self.projection.silhouette))
        return [
            {"step": step, "of": of, "metric": metric, "value": value}
            for of, metric, values in columns
            for step, value in zip(self.steps, values, strict=True)
        ]


Means = dict[str, dict[str, float]]
"""Values of metrics by the name of a head."""


@dataclass(frozen=True)
class Frame:
    """What a model was at one step."""

    step: int
    measured: Measured
    heads: Means
    uniform: Means
    moved: list[tuple[str, MovedResult]]


def timelapse_run(
    run: RunFolder,
    *,
    examples: int = 500,
    samples: int = 300,
    tap: str = "",
    token: str = TOKEN,
    progress: Progress = silent,
) -> Timelapse:
    """Everything about the snapshots of ``run``, kept in its folder by ``lapse_name``, unless a fuller one
    is kept there; no projection without ``samples``.
    """
    if samples and samples < FEWEST:
        raise InputError(f"samples is {samples}; it must be 0 for no projection, or at least {FEWEST}")
    if not samples and (tap or token != TOKEN):
        raise InputError("samples is 0, so nothing is projected; leave out tap and token")
    if examples < 1:
        raise InputError(f"examples is {examples}; it must be at least 1")
    moments, task = _moments(run), run.spec().task
    steps = sorted(moments)
    whole = load_subject(run, split="valid", count=2**31)
    some = replace(whole, examples=whole.examples[slice(0, examples)], strata={})
    sets = run_sets(run, some)
    frames: list[Frame] = []
    clouds: list[Points] = []
    with one_thread():
        for step in steps:
            model = moments[step]()
            heads, uniform = head_means(replace(some, model=model), sets)
            moved = [(stack.name, table) for stack in run_places(run, model) for table in movements(stack)]
            frames.append(Frame(step, measure(model, whole.examples), heads, uniform, moved))
            if samples and (task.images or token != TOKEN):
                clouds.append(collect_points(run, model, tap, token=token, samples=samples, split="valid"))
            elif samples:
                order = torch.arange(len(whole.examples))
                clouds.append(
                    collect_answers(task, model, whole.examples, tap, order=order, samples=samples)
                )
            progress(len(frames), len(steps))
    plane = None
    if samples:
        vectors, path = [cloud.vectors for cloud in clouds], tap_path(whole.model, tap)
        plane = one_plane(vectors, clouds[0].labels, tap=path, labels=task.labels())
    curve, lines = _curve(run, frames), _heads(frames)
    moment = find_moment(curve.step, curve.accuracy)
    found = Timelapse(
        run=run.name,
        task=task.kind,
        steps=steps,
        accuracy=[frame.measured.exact_match for frame in frames],
        token_accuracy=[frame.measured.token_accuracy for frame in frames],
        loss=[frame.measured.loss for frame in frames],
        curve=curve,
        moment=moment,
        metrics={
            name: what for name, what in METRICS.items() if any(name in head.metrics for head in lines)
        },
        heads=lines,
        changed=changed_most(steps, lines, moment),
        positions=_positions(frames),
        examples=len(some.examples),
        valid=len(whole.examples),
        points=0 if plane is None else plane.points,
        projection=plane,
    )
    save_if_larger(run, lapse_name(tap, token, samples), found, *SIZES)
    return found


def lapse_name(tap: str = "", token: str = TOKEN, samples: int = 1) -> str:
    """What it goes by: with what is not as by default, so that none takes the place of another."""
    words = [tap] if tap else []
    words += [] if token == TOKEN else ["".join(token.split())]
    return "-".join(["timelapse", *words, *([] if samples else ["no-points"])])


def _moments(run: RunFolder) -> dict[int, Callable[[], Model]]:
    """Models by their steps: the snapshots, or where fewer than two were kept, the first and the best."""
    steps, epochs = snapshot_steps(run), run.metrics().epochs
    if len(steps) > 1:
        return {step: partial(load_model, run, snapshot_name(step)) for step in steps}
    if not epochs:
        raise InputError(f"run {run.name} has not finished an epoch yet, so there is nothing to look at")
    best = min(epochs, key=lambda each: each.judged)
    return {0: lambda: first_model(run).to(run.device).eval(), best.step: lambda: run.model}


def head_means(subject: Subject, sets: KeySets) -> tuple[Means, Means]:
    """Every metric of every head, and what uniform attention would have."""
    measured = measure_heads(subject, sets)
    heads = [head for site in measured for head in site.head_names]
    means: Means = {head: {} for head in heads}
    uniform: Means = {head: {} for head in heads}
    for site, metrics in measured.items():
        for name, sums in metrics.items():
            rows = sums.rows.sum(dim=0)
            for index in rows.nonzero().flatten().tolist():
                for into, each in ((means, sums.heads), (uniform, sums.uniform)):
                    value = (each[:, index].sum() / rows[index]).item()
                    into[f"{site.path}.{index}"][name] = value
    return means, uniform


def _curve(run: RunFolder, frames: Sequence[Frame]) -> Curve:
    known = {each.step: (each.valid_exact_match, each.valid_loss) for each in run.metrics().epochs}
    known |= {frame.step: (frame.measured.exact_match, frame.measured.loss) for frame in frames}
    steps = sorted(known)
    accuracy, loss = ([known[step][which] for step in steps] for which in (0, 1))
    return Curve(step=steps, accuracy=accuracy, loss=loss)


def _heads(frames: Sequence[Frame]) -> list[HeadLine]:
    told = {
        head: {name: value for name, value in metrics.items() if name != "entropy_nats"}
        for head, metrics in frames[0].uniform.items()
    }
    return [
        HeadLine(
            head=head,
            metrics={name: [frame.heads[head][name] for frame in frames] for name in uniform},
            uniform=uniform,
        )
        for head, uniform in told.items()
    ]


def changed_most(steps: Sequence[int], heads: list[HeadLine], moment: Moment) -> list[Change]:
    """What changed most in the moment, if it was sudden: between the snapshots around it."""
    if not moment.sudden or moment.start is None or moment.end is None:
        return []
    before, after = frames_around(steps, moment.start, moment.end)
    rows = [
        Change(
            head=head.head,
            metric=name,
            from_step=steps[before],
            to_step=steps[after],
            before=values[before],
            after=values[after],
        )
        for head in heads
        for name, values in head.metrics.items()
    ]
    return sorted(rows, key=lambda row: -abs(row.after - row.before))[:CHANGED]


def _positions(frames: Sequence[Frame]) -> list[TableLine]:
    """Trained tables of positions: how far the rows that training reached are from where they started."""
    found = []
    for place, (stack, table) in enumerate(frames[0].moved):
        rows = torch.tensor(table.known).nonzero().flatten()
        shown = rows[:: max(1, -(-len(rows) // SHOWN_ROWS))].tolist()
        tables = [frame.moved[place][1] for frame in frames]
        found.append(
            TableLine(
                stack=stack,
                table=table.table,
                rows=shown,
                distance=[[each.distance[row] for row in shown] for each in tables],
                mean=[_mean(each.distance, rows) for each in tables],
                sideways=[_mean(each.sideways, rows) for each in tables],
                start_norm=_mean(table.start_norm, rows),
            )
        )
    return found


def _mean(values: list[float], rows: Tensor) -> float:
    return torch.tensor(values, dtype=torch.double)[rows].mean().item()


def one_plane(
    vectors: Sequence[Float[Tensor, "N D"]], label: Int[Tensor, "N"], *, tap: str, labels: list[str]
) -> Plane:
    """What points were at each step, in the plane of the last."""
    frames = [each.double().numpy() for each in vectors]
    if not all(np.isfinite(frame).all() for frame in frames):
        raise LabError("the values at this tap are not all finite, so they cannot be projected")
    centred = [frame - frame.mean(axis=0) for frame in frames]
    basis = _basis(centred[-1])
    flat = [frame @ basis for frame in centred]
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
