"""Run folders with a log that is written by hand, and fresh weights."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from attnlab.models import build_for
from attnlab.problems.sorting import Sorting
from attnlab.runs import EpochRecord, RunFolder, StepRecord, as_line, create_run, save_weights
from attnlab.specs import Constant, Spec, TokensModel, Training
from attnlab.storage import as_json

SPEC = Spec(
    task=Sorting(low=3, high=5, train=350, valid=40, test=40),
    model=TokensModel(width=12, heads=3, hidden=7, layers=1),
    training=Training(epochs=10, batch=7, lr=0.002, schedule=Constant(), threads=1),
)
STEPS = 500
Line = Callable[[float], float]
"""A value by the share of the training that is over."""


def run_with_log(
    path: Path,
    *,
    loss: Line,
    train: Line = lambda _: 0.6,
    valid: Line = lambda _: 0.6,
    valid_loss: Line | None = None,
    lr: Line = lambda _: 1.0,
    ended: bool = True,
    until: float = 1.0,
    spec: Spec = SPEC,
) -> RunFolder:
    """A run that logged what the lines say, up to the share ``until`` of its steps."""
    run = create_run(path, spec)
    torch.manual_seed(5)
    save_weights(run, "best", build_for(spec).state_dict())
    judged, lines = valid_loss or loss, list[dict[str, Any]]()
    for step in range(5, round(STEPS * until) + 1, 5):
        x = step / STEPS
        rate = spec.training.lr * lr(x)
        lines.append(as_line(StepRecord(step, 10 * x, rate, loss(x), train(x), float(step))))
        if step % 50 == 0:
            best = judged(x) <= min(judged(s / STEPS) for s in range(50, step + 1, 50))
            row = EpochRecord(
                step // 50, step, loss(x), judged(x), valid(x), valid(x), float(step), best=best
            )
            lines.append(as_line(row))
    run.write({"metrics.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode()})
    if ended:
        run.write({"summary.json": as_json(summary(lines))})
    return run


def summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    last = next(line for line in reversed(lines) if line["event"] == "epoch")
    valid = {
        "loss": last["valid_loss"],
        "token_accuracy": last["valid_token_accuracy"],
        "exact_match": last["valid_exact_match"],
    }
    return {
        "steps": last["step"],
        "epochs": last["epoch"],
        "seconds": 1.0,
        "parameters": 1,
        "valid": valid,
        "lowest_valid_loss": last["valid_loss"],
    }


def learning(rate: float, *, low: float = 0.02, high: float = 0.7) -> Line:
    """A loss that falls from ``high`` to ``low`` as exp(-rate x)."""
    return lambda x: low + (high - low) * math.exp(-rate * x)


def with_training(**changes: Any) -> Spec:
    return replace(SPEC, training=replace(SPEC.training, **changes))
