"""What is kept of a training in the run folder: metrics, snapshots, and the training state.

The state is all that decides how training goes on, in one safetensors file. Tensors (weights, their
average, what the optimisers remember, the generator) are stored as such; the few numbers beside them as
JSON in the file's header, so that both are replaced in one atomic write.
"""

import json
import time
from typing import Any, final

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from attnlab.devices import copy_to_cpu, generator_state, set_generator_state
from attnlab.errors import RunError
from attnlab.runs import RunFolder, as_line, keep_snapshot, save_weights
from attnlab.specs import spec_hash
from attnlab.storage import append_json_line, write_bytes, write_text
from attnlab.training.events import EpochRecord, Listener, StepRecord
from attnlab.training.trainer import Trainer

METRICS = "metrics.jsonl"
STATE = "state.safetensors"


@final
class MetricsLog(Listener):
    """Writes each record as a line of ``metrics.jsonl``."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run

    def started(self, trainer: Trainer) -> None:
        """Drop records of steps that will be taken again."""
        kept = [each for each in self._run.metrics().lines if each.step <= trainer.step]
        write_text(self._run.file(METRICS), "".join(json.dumps(as_line(each)) + "\n" for each in kept))

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        append_json_line(self._run.file(METRICS), as_line(record))

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        append_json_line(self._run.file(METRICS), as_line(record))


@final
class Checkpoints(Listener):
    """Saves the best weights and the state every few seconds and at a stop.

    The best weights wait in memory until then; they go first, so that no state lacks the weights it saw.
    """

    def __init__(self, run: RunFolder, *, every_seconds: float = 10.0) -> None:
        self._run = run
        self._every = every_seconds
        self._saved = time.monotonic()
        self._best: dict[str, Tensor] | None = None  # weights that are not on the disk yet

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        if record.best:
            self._best = copy_to_cpu(trainer.kept.state_dict())

    def stepped(self, trainer: Trainer) -> None:
        if time.monotonic() - self._saved >= self._every:
            self.stopped(trainer)

    def stopped(self, trainer: Trainer) -> None:
        if self._best is not None:
            save_weights(self._run.file("best.safetensors"), self._best)
            self._best = None
        save_state(self._run, trainer)
        self._saved = time.monotonic()


def log_spaced(count: int, total: int) -> list[int]:
    """``count`` steps from 0 to ``total``, evenly spaced in their logarithm; all if there are no more.

    The i-th after 0 is round(total ** ((i - 1) / (count - 2))), or the step after the one before where
    rounding would give that again. Much happens early: half of them lie before the root of ``total``.
    """
    if count > total:
        return list(range(total + 1))
    steps = [0]
    for place in range(count - 1):
        evenly = round(total ** (place / (count - 2))) if count > 2 else total
        steps.append(max(steps[-1] + 1, evenly))
    return steps


def asked_steps(snapshots: tuple[int, ...], total: int) -> list[int]:
    """What ``training.snapshots`` asks of a training of ``total`` steps."""
    return log_spaced(*snapshots, total) if len(snapshots) == 1 else list(snapshots)


@final
class Snapshots(Listener):
    """Keeps the weights of the steps that the spec asks for, and of the last, whenever it comes.

    Weights are those that would be evaluated: averaged ones where the spec asks for an average. A step that
    is taken again after a kill gives the same bytes again. It stands before ``Checkpoints``, so that no
    saved state is past a snapshot that is missing.
    """

    def __init__(self, run: RunFolder, trainer: Trainer) -> None:
        self._run = run
        self._asked = frozenset(asked_steps(trainer.spec.training.snapshots, trainer.total_steps))

    def started(self, trainer: Trainer) -> None:
        if trainer.step == 0:
            self.stepped(trainer)

    def stepped(self, trainer: Trainer) -> None:
        if self._asked and (trainer.step in self._asked or trainer.done):
            keep_snapshot(self._run, trainer.step, trainer.kept.state_dict())


def save_state(run: RunFolder, trainer: Trainer) -> None:
    tensors = _prefixed("model", trainer.model.state_dict())
    tensors |= _prefixed("optimiser", trainer.engine.tensors())
    if trainer.average is not None:
        tensors |= _prefixed("average", trainer.average.model.state_dict())
    tensors |= generator_state(trainer.device)
    numbers = {
        "spec": spec_hash(trainer.spec),
        "step": trainer.step,
        "seconds": trainer.seconds,
        "valid_losses": trainer.valid_losses,
        "perfect": trainer.perfect,
        "window": trainer.window,
        "epoch_loss": trainer.epoch_loss,
    }
    content = {name: value.cpu().contiguous() for name, value in tensors.items()}
    write_bytes(run.file(STATE), save(content, metadata={"numbers": json.dumps(numbers)}))


def load_state(run: RunFolder, trainer: Trainer) -> None:
    tensors, numbers = _read_state(run)
    if numbers.get("spec") != spec_hash(trainer.spec):
        raise RunError(
            f"run {run.path}: spec.json was changed after training began; start a new run with it"
        )
    try:
        trainer.model.load_state_dict(_under("model", tensors))
        trainer.engine.restore(_under("optimiser", tensors))
        if trainer.average is not None:
            trainer.average.model.load_state_dict(_under("average", tensors))
        set_generator_state(trainer.device, tensors)
        trainer.step = int(numbers["step"])
        trainer.seconds = float(numbers["seconds"])
        trainer.valid_losses = [float(loss) for loss in numbers["valid_losses"]]
        trainer.perfect = int(numbers.get("perfect", 0))  # which older states lack
        trainer.window = [(float(loss), float(exact)) for loss, exact in numbers["window"]]
        trainer.epoch_loss = float(numbers["epoch_loss"])
    except (RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"run {run.path}: {STATE} does not fit the run's spec ({reason})") from error


def _read_state(run: RunFolder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(run.file(STATE), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["numbers"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"run {run.path} is damaged: {STATE} cannot be read ({error})") from error


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
