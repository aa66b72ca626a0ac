"""Live progress of a training."""

from typing import final

from rich.text import Text

from attnlab.analysis import percent
from attnlab.analysis.image_classifier import ImageClassifier, Member
from attnlab.analysis.samples import first_samples
from attnlab.cli.braille import LEGEND, card, picture_width, side_by_side
from attnlab.cli.output import Meter
from attnlab.images import has_images
from attnlab.training import EpochRecord, Listener, StepRecord, Trainer


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
