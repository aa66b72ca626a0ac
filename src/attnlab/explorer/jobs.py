"""Analyses that the page starts: ablate, explain and heads, on one input or on examples of a split.

What they find is shown as the report shows it: tables, sentences and figures. Edits are active meanwhile.
Nothing is kept in the run. Whoever wants to stop a job raises ``StoppedError`` when told of its progress.
"""

from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import torch

from attnlab.analysis import plural
from attnlab.analysis.ablate.ablation import Ablation, ablate
from attnlab.analysis.choices import BaselineName
from attnlab.analysis.explain.asking import Asked, explain_asked, judge_drawn, require_sight
from attnlab.analysis.explain.plain import explain_examples, explain_input, open_plain
from attnlab.analysis.explain.runs import Explained, explained_of
from attnlab.analysis.given_images import Picture
from attnlab.analysis.heads import describe_heads
from attnlab.analysis.image_classifier import ImageClassifier, Member
from attnlab.analysis.samples import read_inputs
from attnlab.analysis.subjects import Subject
from attnlab.errors import LabError
from attnlab.explorer.answering import Answerer
from attnlab.explorer.scene import Job, JobResult, JobTable
from attnlab.explorer.tasks import Given
from attnlab.figures.style import to_svg
from attnlab.images import has_images
from attnlab.progress import Progress, Stages
from attnlab.results import Result, Table
from attnlab.sets import Examples, Splits, shifted

ONE: tuple[BaselineName, ...] = ("mean", "zero")
"""What takes the place of heads of one input; there is no other to resample from."""
MANY: tuple[BaselineName, ...] = ("mean", "zero", "resample")
_DRAWING = Lock()  # settings of matplotlib are those of all threads


class StoppedError(LabError):
    """Somebody has cancelled the job."""


def work(answerer: Answerer, job: Job, name: str, progress: Progress) -> JobResult:
    """Do ``job`` with the model of ``answerer``, which nobody else uses; ``name`` is the run's."""
    given = None if job.input is None else answerer.inputs.read(job.input)
    length = answerer.inputs.task.input_length if given is None else len(given.shown.labels)
    doing = _Doing(answerer, job, given, name, progress)
    progress(0, 1)
    with answerer.changing(job.edits, job.other, length):
        found = {"ablate": doing.ablate, "explain": doing.explain, "heads": doing.heads}[job.analysis]()
    edited = f", with {plural(len(job.edits), 'edit')}" if job.edits else ""
    split = {"valid": "validation", "test": "test"}[job.split]
    whose = f"{job.examples:,} {split} examples" if given is None else given.shown.name
    return shown(found, f"{job.analysis} of {whose}, {name}{edited}")


def shown(found: Result, title: str) -> JobResult:
    """A result as people see it."""
    parts = found.tables()
    with _DRAWING:
        figures = [to_svg(each.draw(each.data)) for each in found.figures().values()]
    return JobResult(
        title=title,
        sentences=[part for part in parts if isinstance(part, str)],
        tables=[
            JobTable(part.title, list(part.columns), [[cell.strip() for cell in row] for row in part.rows])
            for part in parts
            if isinstance(part, Table)
        ],
        figures=figures,
    )


@dataclass(frozen=True)
class _Doing:
    """``given`` is the one input, None for examples of a split."""

    answerer: Answerer
    job: Job
    given: Given | None
    name: str
    progress: Progress

    def heads(self) -> Result:
        """Where every head looks."""
        subject = self._subject()
        found = describe_heads(
            subject, self.answerer.inputs.key_sets(subject.examples), progress=self.progress
        )
        return replace(found, run=self.name)

    def ablate(self) -> Result:
        """What is lost without each head."""
        subject, training = self._subject(), self.answerer.inputs.training
        plan = Ablation(baselines=ONE if len(subject.examples) < 2 else MANY)
        found = ablate(subject, training, plan, stages=_in_all(len(plan.baselines), self.progress))
        return replace(found, run=self.name)

    def explain(self) -> Result:
        """What the answer is attributed to."""
        require_sight(self.answerer.model)
        if not self.answerer.inputs.typed:
            return self._explain_plain()
        opened = self._opened()
        if self.given is not None:
            asked = _about(opened, self.given)
            return explain_asked(
                asked, opened.model, opened.background, name=self.name, progress=self.progress
            )
        split, numbers = self.job.split, opened.numbers(self.job.split)
        found = judge_drawn(
            lambda number: opened.ask(split, number),
            numbers,
            min(self._count, len(numbers)),
            opened.model,
            opened.background,
            progress=self.progress,
        )
        return replace(found, run=self.name, split=split)

    @property
    def _count(self) -> int:
        return self.job.examples or 1

    def _subject(self) -> Subject:
        """The examples; one input with what it is right to say, or else with what the model says."""
        inputs, task, model = self.answerer.inputs, self.answerer.inputs.task, self.answerer.model
        if self.given is not None:
            one = self._one(self.given)
            return Subject(model, one, {}, task.places_of(one.answer_length))
        examples = inputs.split(self.job.split)[slice(0, self._count)]
        return Subject(model, examples, task.strata(examples), task.places())

    @torch.no_grad()
    def _one(self, given: Given) -> Examples:
        task, targets = self.answerer.inputs.task, given.right
        if targets is None:
            said = self.answerer.happen(given, []).said
            targets = said if task.start is None else said[None]
        if task.start is None:
            return Examples(given.inputs, targets)
        return Examples((given.inputs[0], shifted(targets, task.start)), targets)

    def _opened(self) -> Explained:
        inputs, model, reader = self.answerer.inputs, self.answerer.model, None
        if has_images(inputs.task) and inputs.scale is not None:
            member = Member(self.name, model, inputs.scale)
            reader = ImageClassifier(self.name, inputs.task, (member,), inputs.seed)
        splits = Splits(inputs.training, inputs.split("valid"), inputs.split("test"))
        return explained_of(inputs.task, model, splits, reader)

    def _explain_plain(self) -> Result:
        model, data = self.answerer.model, self.answerer.inputs.split(self.job.split)
        if self.given is None:
            plain, count = open_plain(model, data.inputs, data=data), min(self._count, len(data))
            return explain_examples(plain, data, count, name=self.name, progress=self.progress)
        plain, targets = open_plain(model, self.given.inputs, data=data), self.given.right
        return explain_input(plain, self.given.inputs, targets, name=self.name, progress=self.progress)


def _about(opened: Explained, given: Given) -> Asked:
    """Questions about one input."""
    if opened.reader is None:
        assert given.targets is not None, "only drawings have none"
        return opened.about_tokens(Examples(given.inputs, given.targets))
    assert given.shown.pixels is not None, "images have pixels"
    array = given.shown.pixels.array
    (sample,) = read_inputs(opened.reader, [Picture(given.shown.name, array)])
    truth = None if given.right is None else given.right.flatten().tolist()
    return opened.about_image(replace(sample, truth=truth))


def _in_all(count: int, progress: Progress) -> Stages:
    """The progress of ``count`` stages as one."""
    before = -1

    def begin(stage: str) -> Progress:
        nonlocal before
        before += 1
        return partial(tell, before)

    def tell(before: int, done: int, total: int) -> None:
        progress(before * total + done, count * total)

    return begin
