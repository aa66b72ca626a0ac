"""Runs: a run is a folder, and whoever has the folder needs nothing else. In it lie

    spec.json            the experiment, resolved
    task.py              the file that defines its task, if that is no task of a package
    environment.json     versions, machine and threads it was trained with
    metrics.jsonl        a line for each logged step and each epoch
    start.safetensors    the weights that training began with, if they were not fresh
    best.safetensors     weights with the lowest validation loss: what every command uses
    last.safetensors     weights at the end
    state.safetensors    all that training needs to go on
    snapshots/           weights at chosen steps, if the spec asks for them
    summary.json         written when training has ended
    analysis/            what evaluate, verify and others found, as JSON

Metrics grow line by line; every other file is replaced as a whole or not at all.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.runs.environment import Environment, describe_environment, rounds_alike
    from attnlab.runs.folder import (
        Ensemble,
        RunFolder,
        check_unused,
        create_ensemble,
        create_run,
        find_ensemble,
        open_run,
        run_folders,
        save_if_larger,
        unused_path,
        why_kept_stays,
    )
    from attnlab.runs.listing import list_runs
    from attnlab.runs.records import EpochRecord, Metrics, ProbeRecord, StepRecord, as_line
    from attnlab.runs.weights import (
        create_run_from,
        keep_snapshot,
        load_model,
        load_start,
        save_weights,
        snapshot_name,
        snapshot_steps,
        weights_fingerprint,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Ensemble", "Environment", "EpochRecord", "Metrics", "ProbeRecord", "RunFolder", "StepRecord",
    "as_line", "check_unused", "create_ensemble", "create_run", "create_run_from",
    "describe_environment", "find_ensemble", "keep_snapshot", "list_runs", "load_model", "load_start",
    "open_run", "rounds_alike", "run_folders", "save_if_larger", "save_weights", "snapshot_name",
    "snapshot_steps", "unused_path", "weights_fingerprint", "why_kept_stays",
]  # fmt: skip
