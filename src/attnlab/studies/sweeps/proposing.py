"""Where the values of a trial come from: Optuna's samplers, each draw with a seed of its own.

``bayes`` is the tree-structured Parzen estimator (Bergstra et al., 2011). Every draw is seeded by the
sweep's seed, the trial's number and the parameter, so that a search that was cut short, even between two
draws, goes on as it would have.

Hyperband (Li et al., 2018) gives trials up that lag after min, min * factor, ... epochs. It is Optuna's: a
trial belongs to one of log_factor(max / min) + 1 brackets, of which each begins to choose a rung later than
the one before; on every rung the best 1 / factor of the trials that came so far go on.
"""

from collections.abc import Callable
from itertools import islice, product
from math import inf, prod
from typing import Any, final
from zlib import crc32

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial

from attnlab.errors import SpecError, nearest
from attnlab.specs import Spec, with_settings
from attnlab.specs.experiment import known_keys
from attnlab.studies.sweeps.parts import Method, SweepFile
from attnlab.studies.sweeps.space import Choice, Distribution, Integers

UNIT_END = 1 - 1e-9  # quantile functions are defined below 1


def check_keys(file: SweepFile, base: Spec) -> None:
    """Refuse a key that no spec of the search has, before anything is trained.

    A variant has keys of its own, so a key below one that the file sets as well is looked up in each of
    the values that this one may have.
    """
    every = (*file.settings, *file.parameters)
    for key in every:
        above = [other for other in every if key.startswith(f"{other}.")]
        choices = [{other: option} for other in above for option in options(file, other)]
        try:
            specs = [with_settings(base, choice) for choice in choices] or [base]
        except SpecError:  # possible only together with something else: the trials will tell
            continue
        known = {name for spec in specs for name in known_keys(spec)}
        if key not in known:
            raise SpecError(f"{key} is not a key of this spec{nearest(key, known)}")


def options(file: SweepFile, key: str) -> tuple[Any, ...]:
    """The values that the file gives a key: all, or the ends of a range; none if it does not name it."""
    if key in file.settings:
        return (file.settings[key],)
    if key not in file.parameters:
        return ()
    distribution = file.parameters[key]
    return distribution.values() or (distribution.quantile(0.0), distribution.quantile(UNIT_END))


STARTUP = 10  # trials drawn at random before the estimator has enough to go by


Draw = Callable[[optuna.Study, FrozenTrial, str, BaseDistribution], Any]


@final
class OneTrial(RandomSampler):
    """The sampler of one trial: ``draw`` gives each of its values by itself."""

    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self._draw = draw

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._draw(study, trial, param_name, param_distribution)


def build_sampler(file: SweepFile, seed: int, number: int, *, stuck: bool) -> BaseSampler:
    """The sampler of trial ``number``; where the estimator is ``stuck``, chance finds what is left."""
    if file.method == "grid":
        point = _grid_point(file, number)
        return OneTrial(lambda study, trial, name, distribution: point[name])

    def draw(study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        own = crc32(f"{seed} {number} {name}".encode())
        estimates = file.method == "bayes" and not stuck
        sampler = TPESampler(seed=own, n_startup_trials=STARTUP) if estimates else RandomSampler(own)
        return sampler.sample_independent(study, trial, name, distribution)

    return OneTrial(draw)


def suggest(file: SweepFile, trial: Trial) -> dict[str, Any]:
    """A value for every parameter; what the trial has drawn before stays."""
    return {key: _suggest(trial, key, each, file.method) for key, each in file.parameters.items()}


def combinations(file: SweepFile) -> float:
    """How many there are."""
    every = [distribution.values() for distribution in file.parameters.values()]
    return float(prod(inf if values is None else len(values) for values in every))


def _suggest(trial: Trial, key: str, distribution: Distribution, method: Method) -> Any:
    values = distribution.values()
    if values is not None and len(values) == 1:
        return values[0]
    if values is not None and (isinstance(distribution, Choice) or method == "grid"):
        return values[trial.suggest_categorical(key, tuple(range(len(values))))]
    if isinstance(distribution, Integers):
        return trial.suggest_int(key, distribution.low, distribution.high)
    return distribution.quantile(min(trial.suggest_float(key, 0.0, 1.0), UNIT_END))


def _grid_point(file: SweepFile, number: int) -> dict[str, int]:
    """Which value of each parameter: the last one changes first."""
    sizes = {key: len(d.values() or ()) for key, d in file.parameters.items()}
    points = product(*(range(size) for size in sizes.values()))
    return dict(zip(sizes, next(islice(points, number, None)), strict=True))


def build_pruner(file: SweepFile, base: Spec) -> BasePruner:
    wanted = file.hyperband
    if wanted is None:
        return NopPruner()
    given = [value for value in options(file, "training.epochs") if isinstance(value, int | float)]
    epochs = int(max(given, default=base.training.epochs))  # of the longest run of the search
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
