"""A sweep: Optuna (Akiba et al., 2019) proposes specs, the executor trains them, the folder remembers.

    sweep.json      the search as it was read, the spec it starts from, its seed
    trials.db       Optuna's storage
    best.json       the best spec, as ``attnlab train --spec`` takes it
    trials.json     the table of trials, and what is drawn from it

``bayes`` is the tree-structured Parzen estimator (Bergstra et al., 2011), ``early_terminate`` and ``prune``
are Hyperband (Li et al., 2018). Every trial draws from a generator seeded by the sweep's seed and its own
number, so a sweep that was stopped goes on as if it had not been; one worker gives the same sweep twice.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product
from math import inf, prod
from pathlib import Path
from typing import Any, final

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState

from attnlab.errors import LabError, RunError, SpecError
from attnlab.spec import Spec, spec_hash, to_json, with_settings
from attnlab.storage import refusing, write_json
from attnlab.studies.jobs import Event, Job, pool_run, run_name
from attnlab.studies.sweeps.parts import SweepFile
from attnlab.studies.sweeps.space import Choice, Distribution, Integers
from attnlab.training.trackers import Tracker

FORMAT = 1
STARTUP = 10  # trials drawn at random before the estimator has enough to go by
PATIENCE = 300  # proposals in a row that come to nothing before the sweep ends
UNIT_END = 1 - 1e-9  # quantile functions are defined below 1

optuna.logging.set_verbosity(optuna.logging.ERROR)


@final
class Sweep:
    """A search in a folder. It proposes jobs, hears how they end, and can be opened again at any time."""

    def __init__(
        self,
        file: SweepFile,
        base: Spec,
        folder: Path,
        *,
        seed: int,
        count: int,
        tracks: tuple[Tracker, ...] = (),
    ) -> None:
        self.file = file
        self.base = replace(base, seed=seed, training=replace(base.training, threads=1))
        self.folder = folder
        self.count = count
        self.exhausted = ""  # why no more trials are proposed, if not for their number
        self._seed = seed
        self._tracks = tracks
        _check_folder(folder, file, self.base, seed)
        self.study = optuna.create_study(
            storage=f"sqlite:///{(folder / 'trials.db').resolve()}",
            study_name="sweep",
            load_if_exists=True,
            direction=file.metric.goal,
            pruner=self._pruner(),
        )
        self._running: dict[str, Trial] = {}
        self._left_over = [trial.number for trial in self._trials(TrialState.RUNNING)]
        self._seen = {trial.user_attrs["spec"] for trial in self.study.trials if is_trial(trial)}

    def next_job(self) -> Job | None:
        """The next spec to try: one that was under way when the sweep was stopped, or a new one."""
        while self._left_over:
            if (job := self._prepare(self._adopt(self._left_over.pop(0)))) is not None:
                return job
        for _ in range(PATIENCE):
            if self._is_over():
                return None
            if (job := self._prepare(self._ask())) is not None:
                return job
        self.exhausted = f"{PATIENCE} proposals in a row were impossible or known already"
        return None

    def epoch(self, event: Event, answer: Callable[[bool], None]) -> None:
        """Hear of an epoch; ``answer`` whether the run may go on."""
        if self.file.hyperband is None:
            return
        trial = self._running[event.job]
        reported = self.study.trials[trial.number].intermediate_values
        if event.data["epoch"] not in reported:
            trial.report(float(event.data[self.file.metric.name]), event.data["epoch"])
        answer(not trial.should_prune())

    def end(self, event: Event, pool: Path) -> None:
        """Hear how a job ended; one that was stopped is left for the next start."""
        trial = self._running.pop(event.job)
        match event.kind:
            case "finished":
                run = pool_run(pool, self.spec_of(trial))
                assert run is not None
                self.study.tell(trial, metric_of(run.metrics(), self.file.metric.name))
            case "pruned":
                self.study.tell(trial, state=TrialState.PRUNED)
            case "failed":
                self._drop(trial, "error", event.data["error"])

    def number_of(self, job: str) -> int:
        """The number of the trial whose job this is."""
        return self._running[job].number

    def spec_of(self, trial: Trial | FrozenTrial) -> Spec:
        """The spec of a trial."""
        return with_settings(self.base, {**self.file.settings, **trial.user_attrs["parameters"]})

    def counted(self) -> list[FrozenTrial]:
        """Every trial that was started, in its order: neither skipped nor a double."""
        return [trial for trial in self.study.trials if is_trial(trial)]

    def skipped(self) -> list[FrozenTrial]:
        """Combinations that are impossible."""
        return [trial for trial in self.study.trials if "skipped" in trial.user_attrs]

    def _is_over(self) -> bool:
        counted, target = self.counted(), self.file.metric.target
        if len(counted) >= self.count:
            return True
        tried = len(self.study.trials) if self.file.method == "grid" else self._different()
        if tried >= self._combinations():
            self.exhausted = f"all {tried} combinations have been tried"
        values = [trial.value for trial in counted if trial.value is not None]
        if target is not None and any(self.is_as_good(value, target) for value in values):
            self.exhausted = f"the target {target:g} has been reached"
        return bool(self.exhausted)

    def _different(self) -> int:
        tried = self.counted() + self.skipped()
        return len({json.dumps(trial.user_attrs["parameters"]) for trial in tried})

    def _combinations(self) -> float:
        every = [distribution.values() for distribution in self.file.parameters.values()]
        return prod(inf if values is None else len(values) for values in every)

    def is_as_good(self, value: float, other: float) -> bool:
        return value >= other if self.file.metric.goal == "maximize" else value <= other

    def _ask(self) -> Trial:
        number = len(self.study.trials)
        self.study.sampler = self._sampler(number)
        if self.file.method == "grid":
            self.study.enqueue_trial(self._grid_point(number))
        return self.study.ask()

    def _adopt(self, number: int) -> Trial:
        """A trial of an earlier start; what it had not drawn yet is drawn as it would have been."""
        self.study.sampler = self._sampler(number)
        return Trial(self.study, self.study.trials[number]._trial_id)

    def _prepare(self, trial: Trial) -> Job | None:
        """The job of a trial, or None if it is impossible or a double."""
        parameters = {
            key: self._suggest(trial, key, distribution)
            for key, distribution in self.file.parameters.items()
        }
        trial.set_user_attr("parameters", parameters)
        try:
            spec = with_settings(self.base, {**self.file.settings, **parameters})
        except SpecError as error:
            self._drop(trial, "skipped", str(error))
            return None
        identity = spec_hash(spec)
        if identity in self._seen and trial.user_attrs.get("spec") != identity:
            self._drop(trial, "double", identity)
            return None
        self._seen.add(identity)
        trial.set_user_attr("spec", identity)
        self._running[run_name(spec)] = trial
        return Job(spec=spec, asks=self.file.hyperband is not None, tracks=self._tracks)

    def _suggest(self, trial: Trial, key: str, distribution: Distribution) -> Any:
        values = distribution.values()
        if values is not None and len(values) == 1:
            return values[0]
        if isinstance(distribution, Choice) or self.file.method == "grid":
            assert values is not None
            return values[trial.suggest_categorical(key, tuple(range(len(values))))]
        if isinstance(distribution, Integers):
            return trial.suggest_int(key, distribution.low, distribution.high)
        return distribution.quantile(min(trial.suggest_float(key, 0.0, 1.0), UNIT_END))

    def _grid_point(self, number: int) -> dict[str, int]:
        sizes = {key: len(d.values() or ()) for key, d in self.file.parameters.items()}
        points = product(*(range(size) for size in sizes.values()))
        point = next(islice(points, number, None))
        return {key: place for key, place in zip(sizes, point, strict=True) if sizes[key] > 1}

    def _sampler(self, number: int) -> BaseSampler:
        seed = (self._seed * 1_000_003 + number) % 2**32
        if self.file.method == "bayes" and not self._is_stuck():
            return TPESampler(seed=seed, n_startup_trials=STARTUP)
        return RandomSampler(seed=seed)

    def _is_stuck(self) -> bool:
        """Whether the last proposals were all known already: then chance finds what is left."""
        last = self.study.trials[-10:]
        return len(last) == 10 and all("double" in trial.user_attrs for trial in last)

    def _pruner(self) -> optuna.pruners.BasePruner:
        wanted = self.file.hyperband
        if wanted is None:
            return optuna.pruners.NopPruner()
        epochs = wanted.max_epochs or self._epochs()
        if wanted.min_epochs > epochs:
            raise SpecError(
                f"the sweep prunes from epoch {wanted.min_epochs} on, but a run has only {epochs}"
            )
        return optuna.pruners.HyperbandPruner(
            min_resource=wanted.min_epochs, max_resource=epochs, reduction_factor=wanted.factor
        )

    def _epochs(self) -> int:
        try:
            return with_settings(self.base, self.file.settings).training.epochs
        except SpecError:
            return self.base.training.epochs

    def _drop(self, trial: Trial, reason: str, text: str) -> None:
        trial.set_user_attr(reason, text)
        self.study.tell(trial, state=TrialState.FAIL)

    def _trials(self, state: TrialState) -> list[FrozenTrial]:
        return [trial for trial in self.study.trials if trial.state == state]


def is_trial(trial: FrozenTrial) -> bool:
    """Whether a run was started for it."""
    return "spec" in trial.user_attrs


def metric_of(metrics: list[dict[str, Any]], name: str) -> float:
    """The metric of the weights that are kept: those of the epoch with the lowest validation loss."""
    return float([line for line in metrics if line["event"] == "epoch" and line["best"]][-1][name])


def _check_folder(folder: Path, file: SweepFile, base: Spec, seed: int) -> None:
    """Write down what is searched, or refuse a folder that holds another search."""
    wanted = {"format": FORMAT, "search": repr(file), "base": to_json(base), "seed": seed}
    path = folder / "sweep.json"
    if not path.exists():
        with refusing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_json(path, wanted)
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({type(error).__name__}: {error})") from error
    if version != FORMAT:
        raise RunError(f"{path} has format {version!r}, but this version of attnlab reads format {FORMAT}")
    for key, what in (("search", "sweep file"), ("base", "spec"), ("seed", "seed")):
        if found.get(key) != wanted[key]:
            raise LabError(f"{folder} holds a sweep with another {what}; choose another folder with --out")
