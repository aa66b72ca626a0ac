"""Runs that answer together: their probabilities are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn, final

from attnlab.analysis.choices import SURE, check_sure, check_views
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier, open_classifier
from attnlab.analysis.image_evaluation import (
    EnsembleScores,
    ImageEvaluation,
    measure_ensemble,
)
from attnlab.analysis.samples import ShownImages
from attnlab.display import Meter
from attnlab.errors import InputError, RunError, SpecError, brief
from attnlab.front import image_answers
from attnlab.front.image_answers import OnRefusal
from attnlab.front.loading import load_run
from attnlab.images import ImageTask
from attnlab.results import Part, Table, parts_html
from attnlab.runs import Ensemble, RunFolder, check_unused, create_ensemble, numbered, open_run
from attnlab.specs import Split


@final
@dataclass(frozen=True)
class RunEnsemble(Ensemble):
    """Several runs as one that classifies images; made by ``Run.ensemble`` and ``load``."""

    shipped: ClassVar[bool] = False

    @cached_property
    def classifier(self) -> ImageClassifier:
        """All of its models."""
        return open_classifier(self)

    @property
    def task(self) -> ImageTask:
        """What its runs were trained to do."""
        return self.classifier.task

    @property
    def scores(self) -> EnsembleScores:
        """What its runs were worth alone and together when it was made."""
        try:
            return EnsembleScores.from_json(self.read())
        except SpecError as error:
            raise RunError(f"ensemble {self.path} was never measured ({error}); make it again") from error

    def tables(self) -> list[Part]:
        """Its runs, for people; ``scores`` says how good they are."""
        names = tuple((run.called, run.spec().model.kind) for run in self.runs())
        return [Table(f"ensemble {self.path}", ("run", "model"), names)]

    def _repr_html_(self) -> str:
        return parts_html(self.tables())

    def evaluate(self, *, split: Split = "test", views: int = 1) -> ImageEvaluation:
        """How good it is on images that its runs were not trained on; as ``Run.evaluate``."""
        check_views(views)
        return image_answers.evaluated(self.classifier, split, views)

    def predict(self, inputs: Any, *, refused: OnRefusal = "raise", sure: float = SURE) -> Any:
        """The answer to an image, or a list of answers; as ``Run.predict``."""
        check_sure(sure)
        return image_answers.answers(self.classifier, inputs, refused, sure)

    def show(
        self, *, samples: int = 10, wrong: bool = False, split: Split = "test", seed: int = 0
    ) -> ShownImages:
        """Some images with what it says about them; as ``Run.show``."""
        return image_answers.shown(self.classifier, samples=samples, wrong=wrong, split=split, seed=seed)

    def __getattr__(self, name: str) -> NoReturn:
        """What only single runs have is refused in a sentence."""
        from attnlab.front.run import Run

        if not name.startswith("_") and hasattr(Run, name):
            open_run(str(self.path))  # raises
        raise AttributeError(f"{brief(type(self).__name__)} has no attribute {brief(name)}")


def join(
    first: RunFolder, others: Sequence[str | Path | RunFolder], *, best: int, out: str | Path
) -> RunEnsemble:
    """A new folder that names several runs, or the best of them on validation images."""
    runs = [first, *(load_run(each, device=first.device) for each in others)]
    different = list({run.path.resolve(): run for run in runs}.values())
    if len(different) < 2:
        raise InputError(f"an ensemble needs at least 2 different runs; given: {len(different)}")
    readers = [image_classifier(run) for run in different]
    if out:
        check_unused(Path(out))
    with Meter("evaluating", 1) as meter:
        chosen, found = measure_ensemble(readers, best=best, progress=meter.update)

    def create(path: Path) -> Ensemble:
        return create_ensemble(path, [different[i] for i in chosen], found.to_json())

    made = create(Path(out)) if out else numbered(Path("runs"), "ensemble", create)
    return RunEnsemble(made.path)
