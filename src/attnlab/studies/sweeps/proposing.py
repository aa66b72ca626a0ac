"""Where the values of a trial come from: Optuna's samplers, each draw with a seed of its own.

``bayes`` is the tree-structured Parzen estimator (Bergstra et al., 2011). Every draw is seeded by the
sweep's seed, the trial's number and the parameter, so that a search that was cut short, even between two
draws, goes on as it would have.
"""

from collections.abc import Mapping
from itertools import islice, product
from math import inf, prod
from typing import Any, final
from zlib import crc32

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial

from attnlab.studies.sweeps.keys import UNIT_END
from attnlab.studies.sweeps.parts import Method, SweepFile
from attnlab.studies.sweeps.space import Choice, Distribution, Integers

STARTUP = 10  # trials drawn at random before the estimator has enough to go by


@final
class Seeded(BaseSampler):
    """The sampler of one trial, for ``bayes`` and ``random``."""

    def __init__(self, method: Method, seed: int, number: int) -> None:
        self._method = method
        self._name = f"{seed} {number}"
        self._jointly = self._sampler("")

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._jointly.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._jointly.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        sampler = self._sampler(param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _sampler(self, what: str) -> BaseSampler:
        seed = crc32(f"{self._name} {what}".encode())
        return (
            TPESampler(seed=seed, n_startup_trials=STARTUP)
            if self._method == "bayes"
            else RandomSampler(seed)
        )


@final
class Planned(BaseSampler):
    """The sampler of one trial whose values are known beforehand, for ``grid``."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._values[param_name]


def build_sampler(file: SweepFile, seed: int, number: int, *, stuck: bool) -> BaseSampler:
    """The sampler of trial ``number``; where the estimator is ``stuck``, chance finds what is left."""
    if file.method == "grid":
        return Planned(_grid_point(file, number))
    return Seeded("random" if stuck else file.method, seed, number)


def suggest(file: SweepFile, trial: Trial) -> dict[str, Any]:
    """A value for every parameter; what the trial has drawn before stays."""
    return {
        key: _suggest(trial, key, distribution, file.method)
        for key, distribution in file.parameters.items()
    }


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
