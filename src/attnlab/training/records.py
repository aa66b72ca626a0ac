"""What is kept of a training in the run folder: metrics, snapshots, and the training state.

The state is all that decides how training goes on, in one safetensors file. Tensors (weights, their
average, what the optimisers remember, the generator) are stored as such; the few numbers beside them as
JSON in the file's header, so that both are replaced in one atomic write.
"""

import json
import time
from typing import Any, final

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attnlab.devices import copy_to_cpu, generator_state, set_generator_state
from attnlab.errors import RunError
from attnlab.reading import parse_json
from attnlab.runs import RunFolder, as_line, keep_snapshot, weights_bytes
from attnlab.runs.files import BEST, METRICS, MOST_WEIGHTS, STATE
from attnlab.specs import spec_hash
from attnlab.training.events import EpochRecord, Listener, StepRecord
from attnlab.training.trainer import Trainer


@final
class MetricsLog(Listener):
    """Writes each record as a line of ``metrics.jsonl``.

    A training that goes on from a saved state keeps the lines up to its step; one that begins, or begins
    again since nothing was saved, keeps none.
    """

    def __init__(self, run: RunFolder, *, goes_on: bool) -> None:
        self._run = run
        self._goes_on = goes_on

    def started(self, trainer: Trainer) -> None:
        """Drop records that will be written again."""
        lines = self._run.metrics().lines if self._goes_on else []
        kept = [json.dumps(as_line(each)) + "\n" for each in lines if each.step <= trainer.step]
        self._run.write({METRICS: "".join(kept).encode()}, growing=[METRICS])

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self._run.append(METRICS, as_line(record))

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        self._run.append(METRICS, as_line(record))


@final
class Checkpoints(Listener):
    """Saves the best weights and the state every few seconds and at a stop, and binds the metrics so far.

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
        best = {} if self._best is None else {BEST: weights_bytes(self._best)}
        self._run.write({**best, STATE: state_bytes(trainer)}, growing=[METRICS])
        self._best = None
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


def state_bytes(trainer: Trainer) -> bytes:
    """The file of all that decides how training goes on."""
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
    return save(content, metadata={"numbers": json.dumps(numbers)})


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
    except Exception as error:  # damage makes torch's optimisers and generators raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"run {run.path}: {STATE} does not fit the run's spec ({reason})") from error


def _read_state(run: RunFolder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        content = run.read(STATE, MOST_WEIGHTS)
        return load(content), _object(parse_json(_object(_metadata(content))["numbers"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"run {run.path} is damaged: {STATE} cannot be read ({error})") from error


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("its numbers are no object")
    return value


def saved_step(run: RunFolder) -> int:
    """How many steps are saved of a training; 0 if none are."""
    summary = run.summary()
    if summary is not None:
        return int(summary["steps"])
    if not run.file(STATE).exists():
        return 0
    try:
        return int(_read_state(run)[1]["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"run {run.path} is damaged: {STATE} names no step") from error


def _metadata(content: bytes) -> Any:
    """What the header of a safetensors file says beside its tensors: 8 bytes of length, then JSON."""
    length = int.from_bytes(content[:8], "little")
    return parse_json(content[8 : 8 + length].decode())["__metadata__"]


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
