"""What is explored: the model of a run, or a wrapped model with examples. It answers a question at a time.

    bench = Bench.of_run(load("zoo:adder"))
    bench.describe()                               # a Subject: what the page must know of it
    bench.look(Question(TextInput("999+1")))       # a Scene: the answer, and all that led to it

Weights are those of the best epoch, or of a snapshot. A bench works on copies of models, each with a lock,
since edits change a model while it answers; nobody else notices.
"""

import copy
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, final

import torch

from attnlab.analysis.image_classifier import image_classifier
from attnlab.devices import to_device_of
from attnlab.errors import InputError, brief, nearest
from attnlab.explorer import describing
from attnlab.explorer.answering import Answerer, Happened, described, keep
from attnlab.explorer.edits import Edit, Off, Parts, changed, read_edit
from attnlab.explorer.plain_task import PlainTask
from attnlab.explorer.scene import (
    Abilities,
    Asked,
    DiagnosisForm,
    Guess,
    Job,
    JobResult,
    Neurons,
    Page,
    Question,
    Scene,
    SideLabels,
    SnapshotForm,
    Subject,
    Values,
    Want,
)
from attnlab.explorer.standins import plain_tensors
from attnlab.explorer.strata import Strata
from attnlab.explorer.tasks import Given, Inputs
from attnlab.foreign.model import Wrapped
from attnlab.lazy import Later
from attnlab.model import HIDDEN, Model
from attnlab.progress import Progress, silent
from attnlab.runs import RunFolder, load_model, snapshot_name, snapshot_steps
from attnlab.sets import Examples
from attnlab.taps import taps

if TYPE_CHECKING:
    from attnlab.explorer import findings, jobs
    from attnlab.explorer.findings import Doctor
else:
    jobs = Later("attnlab.explorer.jobs")  # it draws figures, which takes long to load
    findings = Later("attnlab.explorer.findings")

MODELS = 4
"""Models of snapshots that are kept in memory."""


@final
@dataclass(frozen=True)
class Locked:
    """An answerer, and the lock of its model."""

    answerer: Answerer
    lock: Any = field(default_factory=RLock)


@final
class Bench:
    """A subject that answers: ``weights`` gives the model of a snapshot, or of None the best one."""

    def __init__(
        self,
        name: str,
        title: str,
        inputs: Inputs,
        *,
        facts: Callable[[], list[tuple[str, str]]],
        snapshots: Sequence[SnapshotForm] = (),
        weights: Callable[[int], Model] | None = None,
        doctor: "Callable[[], Doctor] | None" = None,
    ) -> None:
        self.name, self.title, self.inputs = name, title, inputs
        self.strata = Strata(inputs)
        self._facts, self._snapshots, self._load = facts, list(snapshots), weights
        self._make_doctor = doctor
        self._best = Locked(Answerer.of(inputs))
        self._others: OrderedDict[int, Locked] = OrderedDict()
        self._lock = RLock()

    @staticmethod
    def of_run(run: RunFolder) -> "Bench":
        """The model of a run, shipped or own."""
        return Bench(
            run.called,
            describing.task_title(run.spec().task),
            replace(run_inputs(run), model=copy.deepcopy(run.model)),
            facts=lambda: describing.run_facts(run),
            snapshots=describing.snapshot_forms(run),
            weights=lambda step: load_model(run, snapshot_name(step)),
            doctor=lambda: findings.RunDoctor(run),
        )

    @staticmethod
    def of_model(model: Model, data: Examples, *, labels: Sequence[str] = (), name: str = "") -> "Bench":
        """A wrapped model, asked about examples. ``labels`` name its classes."""
        rowed = model.batch_first() if isinstance(model, Wrapped) else model
        inputs = plain_inputs(copy.deepcopy(rowed), data, labels)
        facts = describing.model_facts(model)
        return Bench(
            name or model.called,
            model.called,
            inputs,
            facts=lambda: facts,
            doctor=lambda: findings.ModelDoctor(copy.deepcopy(rowed), data),
        )

    # what it is

    @property
    def answerer(self) -> Answerer:
        """The model with the best weights, and what stands in for its parts; for one thread at a time."""
        return self._best.answerer

    def describe(self) -> Subject:
        """What does not depend on the input."""
        answerer = self.answerer
        with self._best.lock:
            form = describing.model_form(answerer)
            task = describing.task_form(self.strata, answerer.labels)
        heads = bool(form.sites)
        return Subject(
            name=self.name,
            title=self.title,
            facts=self._facts(),
            task=task,
            model=form,
            snapshots=self._snapshots,
            baselines=["zero", "mean", "resample"] if answerer.parts.outputs() else [],
            abilities=Abilities(
                ablate=heads,
                explain=heads and describing.explainable(answerer.model),
                heads=heads,
                pictures=task.input == "image",
                snapshots=bool(self._snapshots),
                findings=self._make_doctor is not None,
            ),
        )

    def examples(self, split: Asked, stratum: str = "all", start: int = 0, count: int = 24) -> Page:
        """Some of the examples of a stratum."""
        return self.strata.page(split, stratum, start, count, lambda: self._copied(self._best).model)

    def read(self, picture: bytes) -> Values:
        """A picture file as the task has its images."""
        return self.inputs.read_picture(picture)

    # what is wrong with it

    @cached_property
    def _doctor(self) -> "Doctor":
        if self._make_doctor is None:
            raise InputError(f"nothing is known of how {self.name} was trained")
        return self._make_doctor()

    def findings(self) -> DiagnosisForm | None:
        """The diagnosis that is kept."""
        kept = None if self._make_doctor is None else self._doctor.kept()
        return None if kept is None else findings.diagnosis_form(kept)

    def diagnose(self, progress: Progress = silent) -> DiagnosisForm:
        """What the doctor finds now, on a model of its own; kept where that can be."""
        return findings.diagnosis_form(self._doctor.diagnose(progress))

    # what it answers

    def look(self, question: Question) -> Scene:
        """Answer a question."""
        began = time.perf_counter()
        locked, given = self._at(question.snapshot), self.inputs.read(question.input)
        with locked.lock, torch.inference_mode():
            return _scene(locked.answerer, given, question, began)

    def work(self, job: Job, progress: Progress = silent) -> JobResult:
        """An analysis, on a model of its own, so that questions need not wait for it."""
        return jobs.work(self._copied(self._at(job.snapshot)), job, self.name, progress)

    def warm_up(self) -> None:
        """Find the means that stand in for parts, which takes long, on a model of its own."""
        if self.answerer.parts.outputs() and not self.answerer.stand_ins.knows("mean"):
            self._copied(self._best).stand_ins.get("mean", 0)

    @staticmethod
    def _copied(locked: Locked) -> Answerer:
        """With a model of its own, copied while nobody edits the other."""
        with locked.lock:
            return locked.answerer.copied()

    def _at(self, snapshot: int | None) -> Locked:
        """The model with the weights of a snapshot."""
        if snapshot is None:
            return self._best
        steps = [each.step for each in self._snapshots]
        if self._load is None or snapshot not in steps:
            raise InputError(f"there is no snapshot {snapshot}{nearest(str(snapshot), map(str, steps))}")
        with self._lock:
            if snapshot not in self._others:
                model = self._load(snapshot)
                self._others[snapshot] = Locked(Answerer.of(replace(self.inputs, model=model)))
                while len(self._others) > MODELS:
                    self._others.popitem(last=False)
            self._others.move_to_end(snapshot)
            return self._others[snapshot]


def run_inputs(run: RunFolder) -> Inputs:
    """What can be given to the model of a run."""
    spec = run.spec()
    scale = image_classifier(run).members[0].scale if spec.task.images else None
    return Inputs(spec.task, run.model, spec.seed, scale, typed=True, spec=spec.model)


def plain_inputs(model: Model, data: Examples, labels: Sequence[str] = ()) -> Inputs:
    """Examples for a wrapped model."""
    if not len(data):
        raise InputError("there are no examples to look at; give at least 1")
    with torch.inference_mode():
        classes = model(*data[slice(0, 1)].inputs).shape[-1]
    if labels and len(labels) != classes:
        raise InputError(f"there are {len(labels)} labels for {classes} classes; give one for each")
    task = PlainTask(data=data, classes=classes, names=tuple(labels))
    return Inputs(task, model, 0, None, typed=False)


@contextmanager
def changed_run(
    run: RunFolder, edits: Sequence[Edit | dict[str, Any]], other: Any, snapshot: int | None = None
) -> Iterator[None]:
    """Apply edits to the model of a run itself, and give it the weights of a snapshot, while the context is
    open.
    """
    with nullcontext() if snapshot is None else _weights_of(run, snapshot):
        answerer = Answerer.of(run_inputs(run))
        given = None if other is None else answerer.inputs.named(other)
        with answerer.changing([read_edit(each) for each in edits], given):
            yield


@contextmanager
def changed_model(
    model: Wrapped,
    edits: Sequence[Edit | dict[str, Any]],
    data: Examples | None,
    other: tuple[torch.Tensor, ...] | None,
) -> Iterator[None]:
    """Apply edits to a wrapped model itself while the context is open. ``data`` are examples that means are
    made from, and that others are taken from; ``other`` is an input to swap from.
    """
    own, plain = model.batch_first(), [read_edit(each) for each in edits]
    made = [each.to for each in plain if isinstance(each, Off) and each.to != "zero"]
    if made and data is None:
        raise InputError(f"to is {brief(made[0])}, which is made from examples; give them as data")
    if other is not None and len(other[0]) != 1:
        raise InputError(f"other has {len(other[0])} inputs; values are swapped from one")
    parts = Parts.of(own)
    with plain_tensors():
        values = None if other is None else outputs_of(own, other, parts)
    if data is None:
        nothing = {name: torch.zeros((1,) * _axes(name)) for name in parts.outputs()}
        with changed(parts, plain, lambda _: lambda: nothing, values):
            yield
    else:
        with Answerer.of(plain_inputs(own, data)).applying(plain, values):
            yield


def _axes(tap: str) -> int:
    """Of hidden values (B, T, N), or of z (B, H, T, K)."""
    return 3 if tap.endswith(HIDDEN) else 4


def outputs_of(model: Wrapped, inputs: tuple[torch.Tensor, ...], parts: Parts) -> dict[str, torch.Tensor]:
    """Every output of heads and feed-forward parts while it computes."""
    with keep(parts, parts.outputs()) as seen:
        model(*to_device_of(model, *inputs))
    return seen


@contextmanager
def _weights_of(run: RunFolder, snapshot: int) -> Iterator[None]:
    """The weights of a snapshot in the model of a run; a tap that changes nothing marks it as edited."""
    steps = snapshot_steps(run)
    if snapshot not in steps:
        raise InputError(f"there is no snapshot {snapshot}{nearest(str(snapshot), map(str, steps))}")
    own, temperature = copy.deepcopy(run.model.state_dict()), run.model.temperature
    marks = [tap for name, tap in taps(run.model).items() if name.endswith(".z")]
    if not marks:
        raise InputError(f"{run.called} has no attention, so nothing of it can be changed")
    with marks[0].applying(lambda value: value):
        run.model.load_state_dict(load_model(run, snapshot_name(snapshot)).state_dict())
        run.model.temperature = 1.0
        try:
            yield
        finally:
            run.model.load_state_dict(own)
            run.model.temperature = temperature


def _scene(answerer: Answerer, given: Given, question: Question, began: float) -> Scene:
    want, parts = question.want, answerer.parts
    sites = _wanted_sites(answerer, want)
    streams = answerer.model.early_streams() if want.guesses else []
    neurons = [] if want.neurons is None else [f"{want.neurons}{HIDDEN}"]
    if want.neurons is not None and want.neurons not in parts.feeds:
        raise InputError(
            f"there is no feed-forward part {brief(want.neurons)}{nearest(want.neurons, parts.feeds)}"
        )
    names = [*(f"{path}.pattern" for path in sites), *streams, *neurons]
    with answerer.changing(question.edits, question.other, len(given.shown.labels)):
        happened = answerer.happen(given, names)
        guesses = [Guess(path, _guess(answerer, happened, path)) for path in streams]
    return Scene(
        input=given.shown,
        answer=described(answerer.inputs.task, happened, given, answerer.labels),
        labels=_side_labels(answerer, given, happened),
        patterns={path: Values.of(happened.seen[f"{path}.pattern"][0].cpu()) for path in sites},
        guesses=guesses,
        neurons=None
        if want.neurons is None
        else Neurons(want.neurons, Values.of(happened.seen[neurons[0]][0].cpu())),
        seconds=time.perf_counter() - began,
    )


def _wanted_sites(answerer: Answerer, want: Want) -> list[str]:
    known = list(answerer.parts.sites)
    if isinstance(want.patterns, bool):
        return known if want.patterns else []
    for path in want.patterns:
        if path not in known:
            raise InputError(f"there is no site {brief(path)}{nearest(path, known)}")
    return list(dict.fromkeys(want.patterns))


def _guess(answerer: Answerer, happened: Happened, path: str) -> Values:
    logits = answerer.model.early(happened.seen[path], *happened.fed)
    sayable = logits.reshape(-1, logits.shape[-1])[:, : len(answerer.labels)]
    return Values.of((sayable / answerer.model.temperature).softmax(dim=-1).cpu())


def _side_labels(answerer: Answerer, given: Given, happened: Happened) -> SideLabels:
    task, probe = answerer.inputs.task, answerer.probe
    own = answerer.input_labels(given, probe.tokens)
    answered = len(happened.said) if task.start is None else 0
    fed = task.symbols(happened.fed[1][0]) if task.start is not None else []
    return SideLabels(
        input=["cls"] * probe.front + own,
        answer=fed or ([str(place + 1) for place in range(answered)] if answered > 1 else []),
        places=task.places_of(len(happened.said)),
    )
