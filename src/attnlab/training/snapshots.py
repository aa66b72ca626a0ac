"""Keeping weights on the way, so that one can see afterwards how a model came to be what it is.

Asked for n snapshots of T steps, those of step 0 and of n - 1 steps that are evenly spaced in their
logarithm are kept: the i-th of them is round(T ** ((i - 1) / (n - 2))), or the step after the one before
where rounding would give that again. Much happens early, so half of them lie before the square root of T.

Weights are those that would be evaluated: averaged ones where the spec asks for an average. A step that is
taken again after a kill gives the same bytes again.
"""

from typing import final

from attnlab.runs import Run, keep_snapshot
from attnlab.training.events import Listener
from attnlab.training.trainer import Trainer


def log_spaced(count: int, total: int) -> list[int]:
    """``count`` steps from 0 to ``total``, or every step if there are no more."""
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

    It stands before ``Checkpoints``, so that no saved state is past a snapshot that is missing.
    """

    def __init__(self, run: Run, trainer: Trainer) -> None:
        self._run = run
        self._asked = frozenset(asked_steps(trainer.spec.training.snapshots, trainer.total_steps))

    def started(self, trainer: Trainer) -> None:
        if trainer.step == 0:
            self.stepped(trainer)

    def stepped(self, trainer: Trainer) -> None:
        if self._asked and (trainer.step in self._asked or trainer.done):
            keep_snapshot(self._run, trainer.step, trainer.kept.state_dict())
