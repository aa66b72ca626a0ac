"""A run in Python: a trained model, and everything that can be asked of it, as methods.

Their names and arguments are those of the commands, which are thin layers over these methods. Each shows
its progress, returns a ``Result`` that shows itself, and keeps it in the run folder. The model is read
once, so what is changed in it by ``without`` holds for every method meanwhile; such results are not kept.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final, overload

from attnlab.analysis.choices import BaselineName, check_views
from attnlab.devices import CPU, find_device
from attnlab.display import Meter, meters, say
from attnlab.errors import InputError
from attnlab.front.card import run_card
from attnlab.front.specs import check_options
from attnlab.lazy import Later
from attnlab.registry import trusting
from attnlab.results import Part, parts_html
from attnlab.runs import RunFolder, open_run
from attnlab.specs import Split, Task

if TYPE_CHECKING:
    from attnlab.analysis import analyses, predict, record, subjects
    from attnlab.analysis import heads as head_analysis
    from attnlab.analysis.ablate import ablation, baselines
    from attnlab.analysis.ablate.ablation import AblationResult
    from attnlab.analysis.evaluate import Evaluation
    from attnlab.analysis.heads import HeadsResult
    from attnlab.analysis.image_evaluation import ImageEvaluation
    from attnlab.analysis.predict import Prediction
    from attnlab.analysis.record import Recording
    from attnlab.front import training
    from attnlab.training.trackers import Tracker
else:
    ablation, analyses, baselines, head_analysis, predict, record, subjects = Later.parts(
        "attnlab.analysis",
        "ablate.ablation", "analyses", "ablate.baselines", "heads", "predict", "record", "subjects",
    )  # fmt: skip
    training = Later("attnlab.front.training")


def load(run: "str | Path | RunFolder", *, device: str = CPU, trust: bool = False) -> "Run":
    """A run by its folder, or a shipped one by ``zoo:NAME``.

    ``device`` is where its model computes: ``"cpu"``, ``"auto"`` (an accelerator if torch finds one), or a
    device of torch such as ``"cuda:1"``; results are on the CPU.
    A run of a task of your own keeps a copy of the task's file. ``trust`` lets that copy be executed; it is
    not needed for a file that you have named or imported yourself.

    >>> load("zoo:adder").predict("374+814").text
    '1188'
    """
    folder = run if isinstance(run, RunFolder) else open_run(str(run))
    with trusting(trust):
        folder.spec()
    return Run(folder.path, folder.shipped, device if device == CPU else str(find_device(device)))


@final
@dataclass(frozen=True)
class Run(RunFolder):
    """A trained model and everything known about it; made by ``train`` and ``load``.

    >>> run = load("zoo:adder")
    >>> run.evaluate(split="valid").exact_match
    1.0
    """

    @property
    def task(self) -> Task:
        """What it was trained to do."""
        return self.spec().task

    def tables(self) -> list[Part]:
        """Task, model, size, accuracy and how it was trained, for people."""
        return run_card(self)

    def _repr_html_(self) -> str:
        return parts_html(self.tables())

    def resume(self, *, checkpoint: float = 10.0, track: "Sequence[Tracker]" = (), show: int = 0) -> "Run":
        """Go on with a training that was stopped, to the same bytes as if it had not been; this run.

        ``checkpoint`` are the seconds between two saves of the training state. ``track`` names who gets the
        metrics besides the run folder. ``show`` shows so many validation images after each epoch.
        """
        if self.shipped:
            say(f"{self.name} is finished already")
            return self
        check_options(self.task, checkpoint=checkpoint, track=track, show=show)
        training.resume(self, checkpoint=checkpoint, track=track, show=show)
        vars(self).pop("model", None)  # it may have been read before
        return self

    @overload
    def predict(self, inputs: str) -> "Prediction": ...
    @overload
    def predict(self, inputs: list[str] | tuple[str, ...]) -> "list[Prediction]": ...
    def predict(self, inputs: str | list[str] | tuple[str, ...]) -> "Prediction | list[Prediction]":
        """The answer to an input as the task writes it (``"374+814"``; of images a file, or ``"test:7"``),
        its probability, and whether it is correct; a list of inputs gives a list.
        """
        if isinstance(inputs, str):
            (only,) = self.predict([inputs])
            return only
        return analyses.predict_inputs(self, inputs)

    def evaluate(self, *, split: Split = "test", views: int = 1) -> "Evaluation | ImageEvaluation":
        """How good it is on examples that it was not trained on.

        Use ``split="valid"`` for model selection and ``test`` once, for the final figure. ``views`` above 1
        also averages each image's probabilities over 5 or 9 shifts by a pixel, reported separately.
        """
        check_views(views)
        if views > 1 and not self.task.images:
            raise InputError(f"views is {views}, but only images can be moved; {self.name} reads none")
        with Meter("evaluating", 1) as meter:
            return analyses.evaluate_any(self, split, views=views, progress=meter.update)

    def record(self, inputs: str | Sequence[str], *taps: str) -> "Recording":
        """The value at every tap while it answers, or at those that match, such as ``"*.pattern"``."""
        names, examples = analyses.examples_of(self, [inputs] if isinstance(inputs, str) else inputs)
        return record.record_answers(self.task, self.model, examples, *taps, names=names)

    @contextmanager
    def without(self, *heads: str, to: BaselineName = "zero", seed: int = 0) -> Iterator["Run"]:
        """Take heads out for as long as the context is open; everything asked of the run is without them.

        ``to`` is what takes the place of a head's output: nothing (``zero``), its mean over training
        examples (``mean``) or the constant with the lowest loss (``optimal``). What a head gives for
        another example (``resample``) fits only the examples that ``ablate`` asks.
        """
        if to == "resample":
            raise InputError("to is 'resample', which only ablate() can do; use zero, mean or optimal")
        examples = subjects.load_subject(self, split="train", count=ablation.TRAINING)
        with meters() as stages:
            baseline = baselines.make_baseline(to, examples, examples.examples, seed, stages)
        with baselines.masked(self.model, baselines.mask_without(self.model, heads), baseline):
            yield self

    def heads(self, *, split: Split = "valid", examples: int = 2000) -> "HeadsResult":
        """Where every head looks on many examples, each number beside that of uniform attention."""
        with Meter("measuring heads", examples) as meter:
            return head_analysis.heads_run(self, split=split, count=examples, progress=meter.update)

    def ablate(
        self,
        *,
        baselines: Sequence[BaselineName] = ("optimal", "mean", "zero", "resample"),
        heads: Sequence[str] = (),
        pairs: bool = False,
        shapley: int = 0,
        split: Split = "valid",
        examples: int = 2000,
        seed: int = 0,
    ) -> "AblationResult":
        """Take out every head, alone and together with others, and measure what is lost.

        ``baselines`` are what takes the place of a head's output; the first is the one heads are ranked by.
        ``pairs`` also takes out every two heads at once, ``shapley`` estimates Shapley values from so many
        orders of the heads.
        """
        plan = ablation.Ablation(
            baselines=tuple(baselines), heads=tuple(heads), pairs=pairs, orders=shapley, seed=seed
        )
        with meters() as stages:
            return ablation.ablate_run(self, plan, split=split, count=examples, stages=stages)
