"""How good a model is on a split, by greedy decoding and by teacher forcing, and where it is weak.

Greedy decoding feeds the model its own answers; teacher forcing feeds it the true ones. A model whose
decoding is deterministic gets an example wholly right by the one exactly when it does by the other:
as long as every argmax is right, both feed the same tokens. So the two exact matches are equal, and a
difference between them is a bug. Token accuracies differ, because a first mistake changes what follows.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlab.analysis.predict import answer_all, probability
from attnlab.analysis.statistics import proportion_interval
from attnlab.analysis.subjects import BATCH, batches, score
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, own_class, plain_fields
from attnlab.runs import RunFolder
from attnlab.sets import Examples, one_example
from attnlab.specs import Split, Task
from attnlab.specs.codec import later

LISTED = 100
"""Mistakes that are reported one by one."""


@dataclass(frozen=True)
class Forced:
    """How good a model is when the true tokens are fed."""

    exact_match: float
    token_accuracy: float
    loss: float


@dataclass(frozen=True)
class Stratum:
    """How many examples of one group are wholly right."""

    stratum: str
    examples: int
    exact_match: float
    exact_match_interval: Interval


@dataclass(frozen=True)
class Place:
    """How often one token of the answer is right."""

    place: str
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Evaluation(Result):
    """What ``evaluate`` measures of every task. A task that measures more has a subclass of it."""

    shown_by: ClassVar[str] = "attnlab.tables.evaluate"

    run: str = later("")
    noun: str = later("example")
    """What the task calls an example."""
    split: Split
    examples: int
    exact_match: float
    exact_match_interval: Interval
    token_accuracy: float
    teacher_forced: Forced
    by_stratum: list[Stratum]
    by_place: list[Place]

    @classmethod
    def measured(
        cls, whole: "Evaluation", task: Any, examples: Examples, said: Int[Tensor, "N T"]
    ) -> "Evaluation":
        """``whole`` with what this class adds, by what the model ``said`` to the examples of ``task``."""
        return whole

    def remarks(self) -> list[str]:
        return []

    def records(self) -> list[Row]:
        """A row for all examples together, and one for each group."""
        whole = Stratum("all", self.examples, self.exact_match, self.exact_match_interval)
        return [plain_fields(row) for row in (whole, *self.by_stratum)]


def evaluate(
    task: Task,
    model: Model,
    examples: Examples,
    *,
    split: Split = "test",
    run: str = "",
    progress: Progress = silent,
) -> Evaluation:
    """Measure ``model`` on examples of any task, by stratum and by place of the answer."""
    said, forced = answer_all(task, model, examples, progress=progress), score(model, examples)
    hits = said == examples.targets.reshape(said.shape)
    exact = hits.all(dim=1)
    count, right, interval = proportion(exact)
    whole = Evaluation(
        run=run,
        noun=task.noun,
        split=split,
        examples=count,
        exact_match=right,
        exact_match_interval=interval,
        token_accuracy=mean(hits),
        teacher_forced=Forced(forced.exact_match, mean(forced.right), forced.mean_loss),
        by_stratum=[
            Stratum(name, *proportion(exact[group])) for name, group in task.strata(examples).items()
        ],
        by_place=[
            Place(name, mean(hits[:, place])) for place, name in enumerate(task.places_of(hits.shape[1]))
        ],
    )
    return own_class(task, Evaluation).measured(whole, task, examples, said)


def evaluate_run(run: RunFolder, split: Split = "test", *, progress: Progress = silent) -> Evaluation:
    """Measure ``run`` on a split and keep the result."""
    spec = run.spec()
    examples = spec.task.splits(spec.seed)[split]
    found = evaluate(spec.task, run.model, examples, split=split, run=run.name, progress=progress)
    return run.keep(f"evaluate-{split}", found)


def kept_evaluation(run: RunFolder, split: Split = "test") -> Evaluation:
    return run.kept(f"evaluate-{split}", own_class(run.spec().task, Evaluation)) or evaluate_run(run, split)


def proportion(hits: Bool[Tensor, "N"]) -> tuple[int, float, Interval]:
    """How many there are, the share that is right, and its 95% interval."""
    count = int(hits.sum())
    return len(hits), count / len(hits), proportion_interval(count, len(hits))


def mean(hits: Bool[Tensor, "..."]) -> float:
    return hits.double().mean().item()


@dataclass(frozen=True)
class Mistake:
    """An example whose answer is not wholly right, and the probability of that answer."""

    input: str
    truth: str | None
    answer: str
    probability: float


@dataclass(frozen=True)
class Mistakes:
    """How many of the examples are answered wrongly, and the most confident of these answers."""

    examples: int
    count: int
    worst: list[Mistake]


def find_mistakes(task: Task, model: Model, examples: Examples) -> Mistakes:
    """What a model that reads tokens gets wrong, the most confident mistakes first."""
    said = answer_all(task, model, examples)
    wrong = (said != examples.targets.reshape(said.shape)).any(dim=1)
    missed, answers = examples[wrong], said[wrong]
    parts = zip(batches(missed, model), torch.split(answers, BATCH), strict=False)  # of none there is one
    sure = torch.cat([torch.zeros(0), *(probability(task, model, *part) for part in parts)])
    worst = sure.argsort(descending=True, stable=True)[:LISTED].tolist()
    shown = [task.show(one_example(missed, place, task.padding)) for place in worst]
    rows = [
        Mistake(each.name, each.truth, task.answer(answers[place]), sure[place].item())
        for place, each in zip(worst, shown, strict=True)
    ]
    return Mistakes(len(examples), len(missed), rows)
