"""A sweep: Optuna (Akiba et al., 2019) proposes specs, the executor trains them, the folder remembers.

One worker gives the same sweep twice, and a sweep that was stopped or killed goes on as if it had not been.
In the folder lie

    sweep.json      the search as it was read, the spec it starts from, its seed
    trials.db       Optuna's storage
    trials.json     the table of trials, and what is drawn from it
    best.json       the best spec, as ``attnlab train --spec`` takes it
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, final

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from attnlab.errors import LabError, RunError, SpecError, brief
from attnlab.reading import read_json
from attnlab.specs import Spec, spec_hash, to_json, with_settings
from attnlab.storage import refuse_link, refusing, write_json
from attnlab.studies.jobs import Event, Job, pool_run, run_name
from attnlab.studies.sweeps import proposing
from attnlab.studies.sweeps.parts import SweepFile
from attnlab.training.trackers import Tracker

FORMAT = 1
DATABASE = "trials.db"

optuna.logging.set_verbosity(optuna.logging.ERROR)


@final
@dataclass(frozen=True)
class Written:
    """What ``sweep.json`` holds."""

    format: int
    search: str
    base: Spec
    seed: int


def claim_folder(folder: Path, file: SweepFile, base: Spec, seed: int) -> FileLock:
    """Write down what is searched, or refuse a folder that holds another search; keep others out."""
    # How many trials there are to be, and what the file says in vain, may change from start to start.
    search = replace(file, count=None, notes=())
    wanted = to_json(Written(FORMAT, repr(search), base, seed))
    path = folder / "sweep.json"
    is_new = not path.exists()
    if not is_new:
        _compare(path, wanted)
    refuse_link(folder / ".lock")
    with refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", blocking=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise RunError(f"another process works on the sweep in {folder}") from error
    if is_new:
        write_json(path, wanted)
    return lock


def open_storage(folder: Path) -> RDBStorage:
    """Optuna's storage. The path does not go through a URL, in which some of its signs have a meaning.

    Connections are not pooled: a storage that is refused gives nobody a chance to close a pool.
    """
    for path in folder.glob(f"{DATABASE}*"):  # SQLite's own files beside it too
        refuse_link(path)
    connect = partial(sqlite3.connect, folder / DATABASE)
    with storing(folder):
        try:
            return RDBStorage("sqlite://", engine_kwargs={"creator": connect, "poolclass": NullPool})
        except RuntimeError as error:  # written by another version of Optuna
            raise _refusal(folder, error) from error


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turn what Optuna's storage cannot read or write into one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _refusal(folder, error) from error
    except OptunaError as error:
        raise _refusal(folder, error.__cause__ or error) from error


def _refusal(folder: Path, error: BaseException) -> RunError:
    reason = str(getattr(error, "orig", None) or error).splitlines()[0].strip().rstrip(".")
    return RunError(f"{folder / DATABASE} cannot be used as Optuna's storage ({reason})")


def _compare(path: Path, wanted: dict[str, Any]) -> None:
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error})") from error
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        here = f"this version of attnlab reads format {FORMAT}"
        raise RunError(f"{path} has format {brief(version)}, but {here}")
    for key, what in (("search", "sweep file"), ("base", "spec"), ("seed", "seed")):
        if found.get(key) != wanted[key]:
            raise LabError(
                f"{path.parent} holds a sweep with another {what}; choose another folder for out"
            )


STUCK = 10  # proposals in a row that come to nothing before chance takes over
PATIENCE = 300  # and before the sweep ends


@final
class Sweep:
    """A search in a folder. It proposes jobs, hears how they end, and can be opened again at any time.

    Each proposal is a trial of Optuna's with attributes of ours: its ``parameters``; ``spec`` if a run was
    started for it, else why not, ``skipped`` (impossible) or ``double``; ``error`` if its run failed;
    ``given_up``, the epoch at which it lagged.
    """

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
        self.ended = ""  # why no more trials are proposed, if not for their number
        self._seed = seed
        self._tracks = tracks
        proposing.check_keys(file, self.base)
        pruner = proposing.build_pruner(file, self.base)
        self._lock = claim_folder(folder, file, self.base, seed)
        self._storage = open_storage(folder)
        with storing(folder):
            self.study = optuna.create_study(
                storage=self._storage,
                study_name="sweep",
                load_if_exists=True,
                direction=file.metric.goal,
                pruner=pruner,
            )
            self._left_over = [trial for trial in self.trials() if not trial.state.is_finished()]
            # What no other trial may be: the hash of its spec, or the combination that is impossible.
            ended = [trial.user_attrs for trial in self.trials() if trial.state.is_finished()]
            self._seen = {each.get("spec") or json.dumps(each["parameters"]) for each in ended}
        self._running: dict[str, Trial] = {}

    def __enter__(self) -> "Sweep":
        return self

    def __exit__(self, *error: object) -> None:
        self._storage.remove_session()
        self._storage.engine.dispose()
        self._lock.release()

    def next_job(self) -> Job | None:
        """The next spec to try: one that was under way when the sweep was stopped, or a new one."""
        while not self.is_over():
            if (job := self._prepare(self._ask())) is not None:
                return job
        return None

    def is_over(self) -> bool:
        if self._left_over:
            return False
        trials, metric = self.trials(), self.file.metric
        if sum(map(_is_counted, trials)) >= self.count:
            return True
        drawn = [trial.user_attrs["parameters"] for trial in trials if "parameters" in trial.user_attrs]
        tried = len(set(map(json.dumps, drawn)))
        values = [
            trial.value
            for trial in trials
            if trial.state == TrialState.COMPLETE and trial.value is not None
        ]
        if metric.target is not None and any(map(metric.reaches, values)):
            self.ended = f"the target {metric.target:g} has been reached"
        elif tried >= proposing.combinations(self.file):
            self.ended = f"all {tried} combinations have been tried"
        elif self.file.method != "grid" and _in_vain(trials) >= PATIENCE:
            self.ended = f"{PATIENCE} proposals in a row were impossible or known already"
        return bool(self.ended)

    def epoch(self, event: Event) -> bool | None:
        """Hear of an epoch, perhaps not for the first time; whether the run may go on, if it asks."""
        if self.file.hyperband is None:
            return None
        trial, epoch = self._running[event.job], event.data["epoch"]
        reported = self.trials()[trial.number].intermediate_values
        if epoch not in reported:
            trial.report(float(event.data[self.file.metric.name]), epoch)
        is_news = epoch >= max(reported, default=0)
        if is_news and proposing.chooses(self.file, self.spec_of(trial), epoch):
            if proposing.lags(self.study, trial.number):
                trial.set_user_attr("given_up", epoch)
            trial.should_prune()  # notes how far the trial has come
        return trial.user_attrs.get("given_up") != epoch

    def end(self, event: Event, pool: Path) -> None:
        """Hear how a job ended; one that was stopped is left for the next start."""
        trial = self._running.pop(event.job)
        match event.kind:
            case "finished":
                run = pool_run(pool, self.spec_of(trial))
                assert run is not None
                # Of the weights that are kept: those of the epoch with the lowest validation loss.
                kept = [record for record in run.metrics().epochs if record.best][-1]
                self.study.tell(trial, float(getattr(kept, self.file.metric.name)))
            case "pruned":
                self.study.tell(trial, state=TrialState.PRUNED)
            case "failed":
                self._drop(trial, "error", event.data["error"])

    def number_of(self, job: str) -> int:
        return self._running[job].number

    def spec_of(self, trial: Trial | FrozenTrial) -> Spec:
        """The spec of a trial, settled: the pool goes by its hash, wherever a command is started."""
        return with_settings(self.base, {**self.file.settings, **trial.user_attrs["parameters"]}).settled()

    def trials(self) -> list[FrozenTrial]:
        """Every proposal, by its number; to be read only, since a copy of all takes its time."""
        return self.study.get_trials(deepcopy=False)

    def counted(self) -> list[FrozenTrial]:
        """Every trial that was started: neither skipped nor a double."""
        return [trial for trial in self.trials() if _is_counted(trial)]

    def skipped(self) -> list[FrozenTrial]:
        """Combinations that are impossible, each once."""
        return [trial for trial in self.trials() if "skipped" in trial.user_attrs]

    def _ask(self) -> Trial:
        """A trial of an earlier start, which goes on drawing where it was, or a new one."""
        earlier = self._left_over.pop(0) if self._left_over else None
        trials = self.trials()
        number = len(trials) if earlier is None else earlier.number
        stuck = _in_vain(trials[:number]) >= STUCK
        self.study.sampler = proposing.build_sampler(self.file, self._seed, number, stuck=stuck)
        return self.study.ask() if earlier is None else Trial(self.study, earlier._trial_id)

    def _prepare(self, trial: Trial) -> Job | None:
        """The job of a trial, or None if it is impossible or a double."""
        parameters = proposing.suggest(self.file, trial)
        trial.set_user_attr("parameters", parameters)
        try:
            spec = self.spec_of(trial)
        except SpecError as error:
            self._drop(trial, "skipped" if self._is_new(json.dumps(parameters)) else "double", str(error))
            return None
        if not self._is_new(identity := spec_hash(spec)):
            self._drop(trial, "double", identity)
            return None
        trial.set_user_attr("spec", identity)
        self._running[run_name(spec)] = trial
        return Job(spec=spec, asks=self.file.hyperband is not None, tracks=self._tracks)

    def _is_new(self, identity: str) -> bool:
        known = identity in self._seen
        self._seen.add(identity)
        return not known

    def _drop(self, trial: Trial, reason: str, text: str) -> None:
        trial.set_user_attr(reason, text)
        self.study.tell(trial, state=TrialState.FAIL)


def _is_counted(trial: FrozenTrial) -> bool:
    return "spec" in trial.user_attrs


def _in_vain(trials: list[FrozenTrial]) -> int:
    """How many of the last proposals in a row came to nothing."""
    return len(list(takewhile(lambda trial: not _is_counted(trial), reversed(trials))))
