"""From a run folder to a trained run: start or resume, train, and write down how it ended."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch

from attnlab.devices import find_device
from attnlab.errors import RunError
from attnlab.images import has_images
from attnlab.runs import (
    Environment,
    RunFolder,
    describe_environment,
    load_model,
    load_start,
    rounds_alike,
    weights_bytes,
)
from attnlab.runs.environment import ENVIRONMENT, Source
from attnlab.runs.files import BEST, METRICS, MOST_WEIGHTS, STATE, SUMMARY, clear_halves, settle
from attnlab.storage import as_json
from attnlab.training.engines import has_half_products
from attnlab.training.events import Listener
from attnlab.training.observer import Observer
from attnlab.training.probes import Probes
from attnlab.training.records import Checkpoints, MetricsLog, Snapshots, load_state
from attnlab.training.temperature import answers_of, fit_temperature
from attnlab.training.threads import FollowLoad, Pace, choose_threads, keep_blocks
from attnlab.training.trainer import Trainer


def train_run(
    run: RunFolder,
    *,
    listeners: Sequence[Listener] = (),
    stopping: Callable[[], bool] = lambda: False,
    checkpoint_seconds: float = 10.0,
) -> dict[str, Any] | None:
    """Train ``run`` from where it stands; its summary, or None if it was asked to stop before the end."""
    with run.lock():
        summary = run.summary()
        if summary is not None:
            if run.file(STATE).exists():
                run.remove(STATE)
            return summary
        clear_halves(run.path)
        keep_blocks()
        with _own_threads(run) as threads, FollowLoad() as load:
            trainer = Trainer(run.spec(), load_start(run))
            if has_images(task := trainer.task):
                data, scale = task.data, list(task.scale)
                source = Source(source=data.source, sample=data.sample, sha256=data.sha256, scale=scale)
                _note(run, data=source)
            if trainer.spec.training.precision == "auto":
                half = has_half_products(trainer.spec.training, trainer.device)
                _note(run, precision="bfloat16" if half else "float32")
            goes_on = run.file(STATE).exists()
            if goes_on:
                load_state(run, trainer)
                _check_best(run, trainer)
                if other_processor(run):
                    _note(run, resumed_on=_environment(run).rounding)
            else:
                _note(run, device=str(trainer.device))
            own = (
                MetricsLog(run, goes_on=goes_on),
                Probes(run, goes_on=goes_on),
                Observer(run, every_seconds=checkpoint_seconds),
                Snapshots(run, trainer),
                Checkpoints(run, every_seconds=checkpoint_seconds),
                Pace(trainer.spec, threads),
                load,
            )
            trainer.train((*own, *listeners), stopping)
            return _close(run, trainer) if trainer.done else None


@contextmanager
def _own_threads(run: RunFolder) -> Iterator[int]:
    """Let torch use the number of threads that ``run`` began with, or a fresh choice, written down."""
    before, known = torch.get_num_threads(), run.environment().chosen_threads
    threads = known or choose_threads(run.spec())
    torch.set_num_threads(threads)
    if known is None:
        environment = replace(describe_environment(), chosen_threads=threads)
        run.write({ENVIRONMENT: as_json(environment.to_json())})
    try:
        yield threads
    finally:
        torch.set_num_threads(before)


def other_processor(run: RunFolder) -> str | None:
    """What to say when ``run`` is resumed where numbers round differently; None where they do not."""
    began, here = run.environment(), _environment(run)
    if rounds_alike(began, here):
        return None
    known, now = began.rounding, here.rounding
    differing = [key for key in now if known.get(key, now[key]) != now[key]]
    changed = "; ".join(f"{key} was {known[key]} and is {now[key]}" for key in differing)
    return f"{run.path} began on another machine, so its bytes may differ from an unbroken run: {changed}"


def _environment(run: RunFolder) -> Environment:
    """Of this machine, with the device that ``run`` is trained on here."""
    return replace(describe_environment(), device=str(find_device(run.spec().training.device)))


def _check_best(run: RunFolder, trainer: Trainer) -> None:
    """Refuse to go on without the best weights so far: the run would end with others and not say so."""
    try:
        if trainer.valid_losses:
            run.read(BEST, MOST_WEIGHTS)
    except (OSError, ValueError) as error:
        raise RunError(
            f"run {run.path} is damaged: {BEST} cannot be read ({error}); remove {STATE}, then resume: "
            "training begins again and ends with the same weights"
        ) from error


def _close(run: RunFolder, trainer: Trainer) -> dict[str, Any]:
    """Write the last weights and the summary, with the temperature of the best weights; the training state
    is no longer needed.
    """
    best = load_model(replace(run, device=str(trainer.device)))
    temperature = fit_temperature(*answers_of(trainer.spec.task, best, trainer.data.valid))
    measured = asdict(trainer.measure(trainer.data.valid))
    summary = {
        "steps": trainer.step,
        "epochs": len(trainer.valid_losses),
        "seconds": trainer.seconds,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "valid": {name: value for name, value in measured.items() if value is not None},
        "lowest_valid_loss": min(trainer.valid_losses),
        "examples": {"train": len(trainer.data.train), "valid": len(trainer.data.valid)},
    }
    if temperature != 1:
        summary["temperature"] = temperature
    run.write({"last.safetensors": weights_bytes(trainer.kept.state_dict()), SUMMARY: as_json(summary)})
    settle(run.path, without=[STATE], ended=[METRICS])
    return summary


def _note(run: RunFolder, **noted: Any) -> None:
    """Write down something about the machine or its data."""
    before = run.environment()
    if (after := replace(before, **noted)) != before:
        run.write({ENVIRONMENT: as_json(after.to_json())})
