"""Trackers: the records of a training, mirrored to TensorBoard or to Weights & Biases.

The run folder holds every metric whether or not anybody tracks; a tracker is a second place for those who
like its pages. Its package is imported only if it is asked for, its files lie in the run folder, and one
that fails on the way is dropped, since no chart is worth a run.
"""

import hashlib
import importlib
import json
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from shlex import quote
from textwrap import indent, shorten
from typing import TYPE_CHECKING, Any, Literal, final

from attnlab.errors import LabError, brief
from attnlab.runs import RunFolder
from attnlab.specs import Spec, spec_hash, to_json
from attnlab.training.events import EpochRecord, Listener, StepRecord

if TYPE_CHECKING:
    from attnlab.training.trainer import Trainer

Tracker = Literal["tensorboard", "wandb"]

_MODULES: dict[Tracker, str] = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}


def load_tracker(name: Tracker) -> Any:
    """Import the package of a tracker; a missing one is a user error."""
    remedy = f"pip install 'attnlab[{name}]'"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the package's own dependencies
            return importlib.import_module(_MODULES[name])
    except ImportError as error:
        raise LabError(f"track {name} needs the package {name}; install it with: {remedy}") from error
    except Exception as error:  # a package that does not fit the others raises anything
        raise LabError(
            f"track {name} needs the package {name}, which is there but cannot be imported "
            f"({_reason(error)}); install it again with: {remedy}"
        ) from error


class Backend(ABC):
    """What a tracker has to be able to do. Anything may go wrong in it: ``Tracking`` copes."""

    @abstractmethod
    def open(self, run: RunFolder, spec: Spec, step: int) -> str:
        """Begin, or go on behind ``step``; says how people get to see it, if they can."""

    @abstractmethod
    def write(self, step: int, values: dict[str, float]) -> None:
        """Keep ``values``, which were measured at ``step``."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more will come."""


@final
class TensorBoard(Backend):
    """Event files in ``RUN/tensorboard``."""

    def __init__(self) -> None:
        self._module = load_tracker("tensorboard")
        self._hook = threading.excepthook

    def open(self, run: RunFolder, spec: Spec, step: int) -> str:
        folder = run.folder("tensorboard")
        # Steps that were written before a kill but not saved are taken again: hide their first records.
        self._writer = self._module.SummaryWriter(str(folder), purge_step=step + 1)
        threading.excepthook = self._worker_died
        self._writer.add_text("spec", indent(json.dumps(to_json(spec), indent=2), "    "), step)
        return f"see it with: tensorboard --logdir {quote(str(folder))}"

    def write(self, step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)
        self._writer.flush()  # a kill must not lose what the saved state has behind it

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            threading.excepthook = self._hook

    def _worker_died(self, event: threading.ExceptHookArgs) -> None:
        """The thread that writes raises its failure again in ``write``; its own traceback helps nobody."""
        if not type(event.thread).__module__.startswith("tensorboard."):
            self._hook(event)


@final
class WandB(Backend):
    """A Weights & Biases run in ``RUN/wandb``; offline, without a question, if there is no account."""

    def __init__(self) -> None:
        self._wandb = load_tracker("wandb")

    def open(self, run: RunFolder, spec: Spec, step: int) -> str:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # it would report from offline runs too
        quiet = self._wandb.Settings(silent=True, console="off", reinit="finish_previous")
        settings = self._wandb.setup(quiet).settings
        self._run = self._wandb.init(
            id=hashlib.sha256(f"{spec_hash(spec)} {run.name}".encode()).hexdigest()[:16],
            resume="allow",
            name=run.name,
            project=settings.project or "attnlab",
            dir=str(run.folder("wandb").resolve().parent),
            mode=self._mode(settings.mode),
            config=to_json(spec),
            settings=quiet,
        )
        if self._run.disabled:
            return ""
        if self._run.offline:
            return f"send it with: wandb sync {quote(str(run.file('wandb')))}/offline-run-*"
        return f"see it at: {self._run.url}"

    def write(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)  # a step that is taken again has the same values

    def close(self) -> None:
        self._run.finish()

    def _mode(self, asked: str) -> str:
        """What was asked for; but never a prompt in the middle of a command."""
        if asked in ("offline", "dryrun", "disabled") or self._wandb.login(prompt=False, verify=False):
            return asked
        if os.environ.get("WANDB_MODE"):
            raise LabError(
                f"WANDB_MODE is {brief(asked)}, but wandb knows no account: run 'wandb login' or unset it"
            )
        return "offline"


@final
class Tracking(Listener):
    """Hands records to a backend. A start that fails is a user error; a later failure ends the
    tracking and nothing else."""

    def __init__(self, name: Tracker, run: RunFolder, backend: Backend) -> None:
        self.name = name
        self.look = ""  # how people get to see it; empty until training starts
        self.failure = ""  # a sentence about the failure, if there was one
        self._run = run
        self._backend = backend

    def started(self, trainer: "Trainer") -> None:
        try:
            self.look = self._backend.open(self._run, trainer.spec, trainer.step)
        except Exception as error:
            raise LabError(
                f"{self.name} could not start ({_reason(error)}); the run {self._run.path} is kept; when "
                f"that is solved, resume it with track {self.name}"
            ) from error

    def logged(self, trainer: "Trainer", record: StepRecord) -> None:
        self._write(trainer, record, "loss", "exact_match", "lr")

    def epoch_ended(self, trainer: "Trainer", record: EpochRecord) -> None:
        self._write(trainer, record, "loss", "valid_loss", "valid_token_accuracy", "valid_exact_match")

    def stopped(self, trainer: "Trainer") -> None:
        self._attempt(trainer, self._backend.close)

    def _write(self, trainer: "Trainer", record: StepRecord | EpochRecord, *keys: str) -> None:
        values = {f"{record.event}/{key}": getattr(record, key) for key in keys}
        if not self.failure:
            self._attempt(trainer, lambda: self._backend.write(trainer.step, values))

    def _attempt(self, trainer: "Trainer", action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self.failure = self.failure or (
                f"{self.name} failed at step {trainer.step} ({_reason(error)}) and was left out; "
                "metrics.jsonl has every record"
            )


def build_tracker(name: Tracker, run: RunFolder) -> Tracking:
    """A listener that mirrors the records of ``run``."""
    return Tracking(name, run, TensorBoard() if name == "tensorboard" else WandB())


def _reason(error: Exception) -> str:
    """What an error says, in one line that is not too long."""
    return shorten(str(error), 240) or type(error).__name__
