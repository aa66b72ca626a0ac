"""The time-lapse of a run: every snapshot measured, and the moment in which it learned."""

from collections.abc import Sequence
from shlex import quote
from typing import Any

from attnlab.analysis.heads import METRICS
from attnlab.analysis.parallel import one_thread
from attnlab.analysis.project import tap_path
from attnlab.analysis.timelapse.frames import Frame, set_stage, take_frame
from attnlab.analysis.timelapse.moments import Moment, find_moment, frames_around
from attnlab.analysis.timelapse.planes import Cloud, collect_cloud, label_names, one_plane
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.runs import Run, save_if_larger, snapshot_steps

FEWEST = 10
"""Points that can be projected."""
SHOWN_ROWS = 64
"""Position vectors whose way is kept each for itself."""
CHANGED = 5
TOKEN = "digit"
SIZES = ("examples", "points")
"""What a time-lapse is measured on; one that is larger in either is kept."""


def timelapse_run(
    run: Run,
    *,
    examples: int = 500,
    samples: int = 300,
    tap: str = "",
    token: str = TOKEN,
    progress: Progress = silent,
) -> dict[str, Any]:
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
    named = tap_path(stage.some.model, tap)
    found = {
        **describe_frames(run, frames),
        "examples": len(stage.some.examples),
        "valid": len(stage.valid),
        "points": len(clouds[0].labels) if samples else 0,
        "projection": {"tap": named, "labels": label_names(run), **one_plane(clouds)} if samples else None,
    }
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


def describe_frames(run: Run, frames: Sequence[Frame]) -> dict[str, Any]:
    """What was measured, as columns over steps."""
    steps = [frame.step for frame in frames]
    curve = _curve(run, frames)
    moment = find_moment(curve["step"], curve["accuracy"])
    heads = _heads(frames)
    return {
        "run": run.name,
        "task": run.spec().task.kind,
        "steps": steps,
        "accuracy": [frame.measured.exact_match for frame in frames],
        "token_accuracy": [frame.measured.token_accuracy for frame in frames],
        "loss": [frame.measured.loss for frame in frames],
        "curve": curve,
        "moment": moment.to_json(),
        "metrics": {
            name: what
            for name, what in METRICS.items()
            if name != "entropy_nats" and any(name in head["metrics"] for head in heads)
        },
        "heads": heads,
        "changed": changed_most(steps, heads, moment),
        "positions": _positions(frames),
    }


def _curve(run: Run, frames: Sequence[Frame]) -> dict[str, list[Any]]:
    """Accuracy and loss on all validation examples: at snapshots and after each epoch of training."""
    known = {
        line["step"]: (line["valid_exact_match"], line["valid_loss"])
        for line in run.metrics()
        if line["event"] == "epoch"
    }
    known |= {frame.step: (frame.measured.exact_match, frame.measured.loss) for frame in frames}
    steps = sorted(known)
    return {
        "step": steps,
        "accuracy": [known[step][0] for step in steps],
        "loss": [known[step][1] for step in steps],
    }


def _heads(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    return [
        {
            "head": head,
            "metrics": {
                name: [frame.heads[head][name] for frame in frames]
                for name in metrics
                if name != "entropy_nats"
            },
            "uniform": {name: value for name, value in metrics.items() if name != "entropy_nats"},
        }
        for head, metrics in frames[0].uniform.items()
    ]


def changed_most(steps: Sequence[int], heads: list[dict[str, Any]], moment: Moment) -> list[dict[str, Any]]:
    """What changed most in the moment, if it was sudden: between the snapshots around it."""
    if not moment.sudden or moment.start is None or moment.end is None:
        return []
    before, after = frames_around(steps, moment.start, moment.end)
    rows = [
        {
            "head": head["head"],
            "metric": name,
            "from_step": steps[before],
            "to_step": steps[after],
            "before": values[before],
            "after": values[after],
        }
        for head in heads
        for name, values in head["metrics"].items()
    ]
    return sorted(rows, key=lambda row: -abs(row["after"] - row["before"]))[:CHANGED]


def _positions(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """Trained tables of positions: how far the rows that training reached are from where they started."""
    found = []
    for place, (stack, table) in enumerate(frames[0].moved):
        rows = table.known.nonzero().flatten()
        shown = rows[:: max(1, -(-len(rows) // SHOWN_ROWS))]
        tables = [frame.moved[place][1] for frame in frames]
        found.append(
            {
                "stack": stack,
                "table": table.table,
                "rows": shown.tolist(),
                "distance": [each.distance[shown].tolist() for each in tables],
                "mean": [each.distance[rows].mean().item() for each in tables],
                "sideways": [each.sideways[rows].mean().item() for each in tables],
                "start_norm": table.start_norm[rows].mean().item(),
            }
        )
    return found
