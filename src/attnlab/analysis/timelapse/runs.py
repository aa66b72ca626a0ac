"""The time-lapse of a run: every snapshot measured, and the moment in which it learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import torch
from torch import Tensor

from attnlab.analysis.heads import METRICS
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.project.points import tap_path
from attnlab.analysis.timelapse.frames import (
    Cloud,
    Frame,
    Plane,
    collect_cloud,
    one_plane,
    set_stage,
    take_frame,
)
from attnlab.analysis.timelapse.moments import Moment, find_moment, frames_around
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.runs import Run, save_if_larger, snapshot_steps

FEWEST = 10
"""Points that can be projected."""
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
class Timelapse(Result):
    """What was measured, as columns over steps; ``metrics`` are those that heads have, in words."""

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


def timelapse_run(
    run: Run,
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
        raise InputError(f"--samples is {samples}; it must be 0 for no projection, or at least {FEWEST}")
    if not samples and (tap or token != TOKEN):
        raise InputError("--samples is 0, so nothing is projected; leave --tap and --token away")
    steps = _steps(run)
    stage = set_stage(run, examples)
    frames: list[Frame] = []
    clouds: list[Cloud] = []
    with one_thread():
        for step in steps:
            frame = take_frame(stage, step)
            if samples:
                clouds.append(
                    collect_cloud(run, frame.model, stage.valid, tap=tap, token=token, samples=samples)
                )
            frames.append(frame)
            progress(len(frames), len(steps))
    plane = None
    if samples:
        plane = one_plane(clouds, tap=tap_path(stage.some.model, tap), labels=run.spec().task.labels())
    curve, heads = _curve(run, frames), _heads(frames)
    moment = find_moment(curve.step, curve.accuracy)
    found = Timelapse(
        run=run.name,
        task=run.spec().task.kind,
        steps=steps,
        accuracy=[frame.measured.exact_match for frame in frames],
        token_accuracy=[frame.measured.token_accuracy for frame in frames],
        loss=[frame.measured.loss for frame in frames],
        curve=curve,
        moment=moment,
        metrics={
            name: what for name, what in METRICS.items() if any(name in head.metrics for head in heads)
        },
        heads=heads,
        changed=changed_most(steps, heads, moment),
        positions=_positions(frames),
        examples=len(stage.some.examples),
        valid=len(stage.valid),
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


def _steps(run: Run) -> list[int]:
    steps = snapshot_steps(run)
    if len(steps) < 2:
        many = "one snapshot" if steps else "no snapshots"
        spec = quote(str(run.file("spec.json")))
        raise InputError(
            f"run {run.name} has {many}, and a time-lapse needs two or more; train it again, keeping "
            f"some, with: attnlab train --spec {spec} --training.snapshots 24"
        )
    return steps


def _curve(run: Run, frames: Sequence[Frame]) -> Curve:
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
