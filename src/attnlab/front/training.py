"""Training from Python, with live progress. Interrupting stops between two steps and saves."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any, final

from rich.text import Text

from attnlab.analysis import percent
from attnlab.analysis.image_classifier import ImageClassifier, Member
from attnlab.analysis.samples import first_samples
from attnlab.devices import find_device
from attnlab.display import Meter, say, stop_on_signal
from attnlab.figures.braille import LEGEND, card, picture_width, side_by_side
from attnlab.front.doctoring import TrainingDoctor, summary_lines
from attnlab.front.run import Run
from attnlab.front.specs import Start, check_options
from attnlab.front.specs import spec as make_spec
from attnlab.images import has_images
from attnlab.runs import create_run, numbered
from attnlab.specs import Spec, Task
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer, other_processor, train_run
from attnlab.training.trackers import Tracker, build_tracker

RUNS = Path("runs")


def train(
    task: Start,
    *,
    preset: str = "default",
    out: str | Path = "",
    checkpoint: float = 10.0,
    track: Sequence[Tracker] = (),
    show: int = 0,
    doctor: bool = False,
    **settings: Any,
) -> Run:
    """Train a model and keep everything about it in a run folder; interrupted, it is saved all the same.

    ``task``, ``preset`` and ``settings`` are those of ``spec``. ``out`` is the folder to create, by default
    runs/TASK-PRESET-sSEED, numbered if taken. ``checkpoint`` are the seconds between two saves of the
    training state. ``track`` names who gets the metrics besides the run folder. ``show`` shows so many
    validation images after each epoch. With ``doctor`` what is wrong is said as soon as it is sure, and a
    diagnosis is made at the end.

    >>> run = train("addition", digits=1, width=16, heads=2, epochs=1, train=64, valid=16, test=16, seed=3)
    >>> run.name
    'addition-default-s3'
    """
    made = make_spec(task, preset=preset, **settings)
    check_options(made.task, checkpoint=checkpoint, track=track, show=show)
    begun = begin(made, out, f"{made.task.kind}-{preset}-s{made.seed}")
    return begun.resume(checkpoint=checkpoint, track=track, show=show, doctor=doctor)


def begin(spec: Spec, out: str | Path, name: str) -> Run:
    """A new run folder, ready to be trained: ``out``, or runs/``name``, numbered if taken."""
    find_device(spec.training.device)  # before there is a run folder: it may be missing, and so may images
    _say_data(spec.task)
    settled = spec.settled()
    made = (
        create_run(Path(out), settled)
        if out
        else numbered(RUNS, name, lambda path: create_run(path, settled))
    )
    return Run(made.path, device=spec.training.device)


def resume(
    run: Run, *, checkpoint: float, track: Sequence[Tracker], show: int, doctor: bool = False
) -> None:
    """Train ``run`` to its end with live progress, or until it is interrupted, with all saved."""
    if run.summary() is not None:
        say(f"{run.path} is finished already")
    elif run.spec().training.epochs:
        say(f"training {run.path}")
    if run.file("metrics.jsonl").exists() and (moved := other_processor(run)):
        say(moved)
    trackers = [build_tracker(name, run) for name in dict.fromkeys(track)]
    with stop_on_signal() as stopping, Meter("training", 1) as meter:
        samples = [TrainingSamples(meter, show)] if show else []
        doctors = [TrainingDoctor(run, meter.line)] if doctor else []
        listeners = (TrainingMeter(meter), *samples, *trackers, *doctors)
        summary = train_run(run, listeners=listeners, stopping=stopping, checkpoint_seconds=checkpoint)
    for tracker in trackers:
        if tracker.failure:
            say(tracker.failure)
        if tracker.look:
            say(f"tracked by {tracker.name}; {tracker.look}")
    if summary is None:
        say(f"stopped and saved in {run.path}")
    elif doctor:
        for line in summary_lines(run.diagnose()):
            say(line)
        say(f"the whole diagnosis: attnlab doctor {quote(run.called)}")


def _say_data(task: Task) -> None:
    """Say which images are learned from, and loudly if they are only a sample."""
    if has_images(task):
        data = task.data
        say(f"images: {data.source}")
        if data.sample:
            say(
                f"WARNING: only the bundled sample of {len(data.train_labels):,} + "
                f"{len(data.test_labels):,} digits is there, so accuracies are lower; "
                "'attnlab data fetch' says why"
            )


@final
class TrainingMeter(Listener):
    """Shows steps as a bar and each epoch as a line."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def started(self, trainer: Trainer) -> None:
        self._meter.update(trainer.step, trainer.total_steps)

    def stepped(self, trainer: Trainer) -> None:
        self._meter.update(trainer.step)

    def logged(self, trainer: Trainer, record: StepRecord) -> None:
        self._meter.update(trainer.step, note=f"loss {record.loss:.4f}")

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        if trainer.total_steps == 0:  # a pruned run that is not trained
            return
        self._meter.line(
            f"epoch {record.epoch:>3} of {trainer.spec.training.epochs}   "
            f"loss {record.loss:.4f}   validation loss {record.valid_loss:.4f}, "
            f"exact {percent(record.valid_exact_match)}   {record.seconds:.0f} s"
        )


@final
class TrainingSamples(Listener):
    """Shows the same few validation images after each epoch, with what the model reads in them.

    What their marks mean is told once, before the first of them.
    """

    def __init__(self, meter: Meter, count: int) -> None:
        self._meter = meter
        self._count = count
        self._legend: tuple[str, ...] = LEGEND

    def epoch_ended(self, trainer: Trainer, record: EpochRecord) -> None:
        if not has_images(trainer.task):
            return
        member = Member("training", trainer.kept, trainer.task.scale)
        reader = ImageClassifier("training", trainer.task, (member,), trainer.spec.seed)
        was_training = trainer.kept.training
        trainer.kept.eval()
        samples = first_samples(reader, split="valid", count=self._count)
        trainer.kept.train(was_training)
        width = picture_width()
        pictures = side_by_side([card(sample, width) for sample in samples], width)
        lines: list[str | Text] = [*self._legend, *pictures]
        for line in lines:
            self._meter.line(line)
        self._legend = ()
