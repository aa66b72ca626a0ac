"""Hyperband (Li et al., 2018): trials that lag are given up after min, min * factor, ... epochs.

It is Optuna's: a trial belongs to one of log_factor(max / min) + 1 brackets, of which each begins to choose
a rung later than the one before; on every rung the best 1 / factor of the trials that came so far go on.
"""

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner

from attnlab.errors import SpecError
from attnlab.spec import Spec
from attnlab.studies.sweeps.keys import options
from attnlab.studies.sweeps.parts import SweepFile


def build_pruner(file: SweepFile, base: Spec) -> BasePruner:
    """The pruner that a file asks for."""
    wanted = file.hyperband
    if wanted is None:
        return NopPruner()
    epochs = _longest(file, base)
    if wanted.min_epochs > epochs:
        raise SpecError(f"the sweep prunes from epoch {wanted.min_epochs} on, but a run has only {epochs}")
    # A bracket that begins after the last epoch would choose nothing.
    most = min(wanted.max_epochs or epochs, epochs)
    return HyperbandPruner(
        min_resource=wanted.min_epochs, max_resource=most, reduction_factor=wanted.factor
    )


def lags(study: optuna.Study, number: int) -> bool:
    """Whether a trial is to be given up.

    A copy is asked, since the pruner notes at once how far the trial has come and would not say so again.
    """
    copy = optuna.create_study(study_name=study.study_name, direction=study.direction, pruner=study.pruner)
    copy.add_trials(study.get_trials(deepcopy=False))
    return study.pruner.prune(copy, copy.trials[number])


def chooses(file: SweepFile, spec: Spec, epoch: int) -> bool:
    """Whether a run may be given up after this epoch: on a rung, unless it is over anyway."""
    if file.hyperband is None:
        return False
    rung = file.hyperband.min_epochs
    while rung < epoch:
        rung *= file.hyperband.factor
    return rung == epoch < min(file.hyperband.max_epochs or epoch + 1, spec.training.epochs)


def _longest(file: SweepFile, base: Spec) -> int:
    """Epochs of the longest run of the search."""
    given = [value for value in options(file, "training.epochs") if isinstance(value, int | float)]
    return int(max(given, default=base.training.epochs))
