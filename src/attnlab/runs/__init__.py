"""Runs: a run is a folder, and whoever has the folder needs nothing else. In it lie

    manifest.json        the SHA-256 and the size of every other file
    spec.json            the experiment, resolved
    task.py              the file that defines its task, if that is no task of a package
    environment.json     versions, machine and threads it was trained with
    metrics.jsonl        a line for each logged step and each epoch
    observed.json        what was seen of its steps while it trained
    start.safetensors    the weights that training began with, if they were not fresh
    best.safetensors     weights with the lowest validation loss: what every command uses
    last.safetensors     weights at the end
    state.safetensors    all that training needs to go on
    snapshots/           weights at chosen steps, if the spec asks for them
    summary.json         written when training has ended
    analysis/            what evaluate, verify and others found, as JSON

Metrics grow line by line; every other file is replaced as a whole or not at all. What is read must be as
it was written: ``files`` says how.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import on_demand

if TYPE_CHECKING:
    from attnlab.runs.creating import check_unused, create_ensemble, create_run, numbered, place_run
    from attnlab.runs.environment import Environment, describe_environment, rounds_alike
    from attnlab.runs.files import find_damage
    from attnlab.runs.folder import (
        Ensemble,
        RunFolder,
        find_ensemble,
        open_run,
        run_folders,
        save_if_larger,
        why_kept_stays,
    )
    from attnlab.runs.listing import list_runs, list_shipped
    from attnlab.runs.observed import Answers, LayerSample, Observed, Sample
    from attnlab.runs.records import EpochRecord, Metrics, ProbeRecord, StepRecord, as_line
    from attnlab.runs.weights import (
        create_run_from,
        keep_snapshot,
        load_model,
        load_start,
        save_weights,
        snapshot_name,
        snapshot_steps,
        weights_bytes,
        weights_file,
        weights_fingerprint,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "Answers", "Ensemble", "Environment", "EpochRecord", "LayerSample", "Metrics", "Observed",
    "ProbeRecord", "RunFolder", "Sample", "StepRecord", "as_line", "check_unused", "create_ensemble",
    "create_run", "create_run_from", "describe_environment", "find_damage", "find_ensemble",
    "keep_snapshot", "list_runs", "list_shipped", "load_model", "load_start", "numbered", "open_run",
    "place_run", "rounds_alike", "run_folders", "save_if_larger", "save_weights", "snapshot_name",
    "snapshot_steps", "weights_bytes", "weights_file", "weights_fingerprint", "why_kept_stays",
]  # fmt: skip
