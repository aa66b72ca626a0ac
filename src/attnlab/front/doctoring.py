"""Findings while a run is trained: each is told once, as soon as it is sure."""

import time
from collections.abc import Callable
from typing import final

from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.doctor.looking import Looks
from attnlab.doctor.loops import Watched
from attnlab.doctor.patient import Patient
from attnlab.runs import RunFolder
from attnlab.tables.doctor import brief_lines, counted
from attnlab.training import Listener, Trainer

COST, LEAST = 0.02, 1.0
"""The share of the training time that looks may take, and the seconds that they may always take."""


@final
class TrainingDoctor(Listener):
    """Looks at what was logged and observed so far, and reports what is certain."""

    def __init__(self, run: RunFolder, line: Callable[[str], None]) -> None:
        self._run = run
        self._line = line
        self._looks: Looks | None = None
        self._spent = 0.0

    def started(self, trainer: Trainer) -> None:
        self._looks = Looks(self._tell, trainer.total_steps)

    def stepped(self, trainer: Trainer) -> None:
        due = self._looks is not None and self._looks.due(trainer.step)
        if due and self._spent <= max(LEAST, COST * trainer.seconds):
            self._look(trainer, last=False)

    def diverged(self, trainer: Trainer) -> None:
        self._look(trainer, last=True)

    def _tell(self, finding: Finding) -> None:
        for each in brief_lines(finding):
            self._line(each)

    def _look(self, trainer: Trainer, *, last: bool) -> None:
        if self._looks is None or trainer.watch is None:
            return
        began = time.perf_counter()
        watched = Watched(
            observed=trainer.watch.observed(),
            metrics=self._run.metrics(),
            recipe=trainer.spec.training,
            choices=trainer.task.vocabulary,
            ended=False,
        )
        patient = Patient(
            self._run.called,
            run=self._run,
            examples=trainer.data.valid,
            training=trainer.data.train,
            watched=watched,
        )
        self._looks.look(patient, last=last)
        self._spent += time.perf_counter() - began


def summary_lines(found: Diagnosis) -> list[str]:
    """What a diagnosis found, two lines a finding; what others explain is left out."""
    causes = [each for each in found.findings if not each.explained_by]
    said = [line for each in causes for line in brief_lines(each)]
    count = len(found.findings)
    what = f"{count} {'finding' if count == 1 else 'findings'}" if count else "nothing found"
    return [f"doctor: {what}; {counted(found.checks)}", *said]
