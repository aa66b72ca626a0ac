"""The run folder: creating, opening and listing; ensembles of runs."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

from attnlab.devices import CPU
from attnlab.errors import LabError, RunError, SpecError, nearest
from attnlab.lazy import Later
from attnlab.registry import CODE, require_code, source_of
from attnlab.results import Result
from attnlab.runs.environment import Environment, describe_environment
from attnlab.runs.records import RECORDS, Metrics
from attnlab.specs import Spec, from_json, to_json
from attnlab.storage import make_folder, read_json_lines, refusing, write_json, write_text

if TYPE_CHECKING:
    from attnlab import taps
    from attnlab.model import Model
    from attnlab.runs import weights
else:
    taps, weights = Later("attnlab.taps"), Later("attnlab.runs.weights")

T = TypeVar("T")
R = TypeVar("R", bound=Result)

_ZOO = "zoo:"

ENSEMBLE = "ensemble.json"
"""The runs of an ensemble, by their paths from its folder, and what was measured when they were chosen."""

SUMMARY_KEYS = {"steps", "epochs", "seconds", "parameters", "valid"}
"""What a summary must say."""


@dataclass(frozen=True)
class RunFolder:
    """One run folder. A shipped run is read only: analyses of it are shown, not kept.

    ``device`` is where its model computes, whatever it was trained on.
    """

    path: Path
    shipped: bool = False
    device: str = CPU

    @property
    def name(self) -> str:
        name = self.path.resolve().name
        return f"{_ZOO}{name}" if self.shipped else name

    @property
    def called(self) -> str:
        """What a command is given to find this run."""
        return self.name if self.shipped else str(self.path)

    def file(self, name: str) -> Path:
        return self.path / name

    @cached_property
    def model(self) -> "Model":
        """The model with the best weights, read when it is first asked for."""
        return weights.load_model(self)

    def on_cpu(self) -> "RunFolder":
        """The same run for what computes in float64, or on weights alone."""
        return self if self.device == CPU else replace(self, device=CPU)

    @property
    def edited(self) -> bool:
        """Whether values in the model are changed at the moment, so that what it answers is not its own."""
        if "model" not in vars(self):
            return False
        return any(tap.active for tap in taps.taps(self.model).values())

    def spec(self) -> Spec:
        return self._read("spec.json", self._decoded)

    def _decoded(self, data: Any) -> Spec:
        if isinstance(data, dict) and data.get("source"):
            require_code(data.get("task"), data["source"], self.file(CODE))
        return from_json(Spec, data)

    def environment(self) -> Environment:
        """Versions, machine and threads of the training."""
        return self._read("environment.json", lambda data: Environment.from_json(_object(data)))

    def metrics(self) -> Metrics:
        """How it trained: the loss over steps, and the accuracy after each epoch."""
        try:
            lines = [_object(line) for line in read_json_lines(self.file("metrics.jsonl"))]
            kinds = [RECORDS[line["event"]] for line in lines]
            pairs = zip(kinds, lines, strict=True)
            made = [from_json(kind, line, "it", extra=True) for kind, line in pairs]
            return Metrics(run=self.called, lines=made)
        except SpecError as error:
            reason = f"a line of metrics.jsonl lacks a value or has a wrong one ({error})"
        except (ValueError, OSError, KeyError) as error:
            reason = f"metrics.jsonl cannot be read ({error})"
        raise RunError(f"run {self.path} is damaged: {reason}")

    def summary(self) -> dict[str, Any] | None:
        """How training ended, or None while it has not."""
        if not self.file("summary.json").exists():
            return None
        summary = self._read("summary.json", _object)
        if not summary.keys() >= SUMMARY_KEYS:
            raise RunError(f"run {self.path} is damaged: summary.json lacks a value")
        return summary

    def analysis(self, name: str) -> dict[str, Any] | None:
        """What an analysis found, or None if it was not run on the model as it is now."""
        file = f"analysis/{name}.json"
        if self.edited or not self.file(file).exists():
            return None
        found = self._read(file, _object)
        return found if found.get("weights") == self._fingerprint() else None

    def keep_analysis(self, name: str, found: dict[str, Any]) -> Path | None:
        """Write what an analysis found; None if the run is read only or its model is edited."""
        if self.shipped or self.edited:
            return None
        path = self.file(f"analysis/{name}.json")
        with refusing(path):
            path.parent.mkdir(exist_ok=True)
        write_json(path, {**found, "weights": self._fingerprint()})
        return path

    def kept(self, name: str, kind: type[R]) -> R | None:
        """The result that is kept under ``name``; None if there is none of the weights that are there now,
        or an older version kept less than ``kind`` has.
        """
        found = self.analysis(name)
        if found is None:
            return None
        try:
            return kind.from_json(found)
        except SpecError:
            return None

    def keep(self, name: str, result: R) -> R:
        """``result``, kept under ``name``; a shipped run keeps nothing."""
        self.keep_analysis(name, result.to_json())
        return result

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training this run; the lock goes with the process."""
        with refusing(self.path):
            try:
                lock = FileLock(self.file(".lock"), blocking=False).acquire()
            except Timeout as error:
                raise RunError(f"run {self.path} is being trained by another process") from error
        with lock:
            yield

    def _fingerprint(self) -> str:
        """Twelve digits that change with the best weights."""
        path = self.file("best.safetensors")
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "none"

    def _read(self, name: str, convert: Callable[[Any], T]) -> T:
        try:
            return convert(json.loads(self.file(name).read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise RunError(f"run {self.path} is damaged: {name} is missing") from error
        except RunError:
            raise
        except (OSError, ValueError, TypeError, LabError) as error:
            raise RunError(f"run {self.path} is damaged: {name} cannot be read ({error})") from error


def check_unused(path: Path) -> None:
    """Refuse a place that something lies at."""
    with refusing(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{path} exists already and is not empty; choose another folder for out")


def create_run(path: Path, spec: Spec) -> RunFolder:
    """A new folder with the spec and the environment in it; an existing one is refused, and so is a task
    from outside that breaks a rule.
    """
    check_unused(path)
    if not type(spec.task).__module__.startswith("attnlab."):
        from attnlab.checks import check_task

        check_task(spec.task, spec.seed)
    environment = describe_environment()  # takes a while, so before there is a folder
    make_folder(path)
    run = RunFolder(path)
    write_json(run.file("environment.json"), environment.to_json())
    if spec.source:
        source = source_of(spec.task.kind)  # as it was when the spec was made
        if source is None or source.sha256 != spec.source:
            raise RunError(f"the file of the task {spec.task.kind!r} is not the one that the spec names")
        write_text(run.file(CODE), source.text)
    write_json(run.file("spec.json"), to_json(spec))
    return run


def open_run(name: str) -> RunFolder:
    """A run by its folder, or a shipped one by ``zoo:NAME``."""
    if name.startswith(_ZOO):
        zoo, own = Path(str(files("attnlab"))) / "zoo", name.removeprefix(_ZOO)
        known = {run.path.name for run in run_folders(zoo)}
        if own not in known:
            raise RunError(f"{name!r} is not shipped{nearest(own, known)}")
        return RunFolder(zoo / own, shipped=True)
    path = Path(name)
    if not os.path.isdir(path):  # noqa: PTH112  # unlike Path.is_dir, false for a name that is too long
        raise RunError(f"run {name!r} is no folder; 'attnlab runs' lists the runs there are")
    if not (path / "spec.json").exists():
        if (path / ENSEMBLE).exists():
            rule = f"this needs one run; {ENSEMBLE} names its runs"
            raise RunError(f"folder {name!r} is an ensemble, and {rule}")
        raise RunError(f"folder {name!r} holds no run: spec.json is missing")
    return RunFolder(path)


def run_folders(folder: Path) -> list[RunFolder]:
    """Every run in ``folder``, by name."""
    if not folder.is_dir():
        return []
    return [RunFolder(path) for path in sorted(folder.iterdir()) if (path / "spec.json").exists()]


def unused_path(folder: Path, name: str) -> Path:
    """``folder/name``, or with -2, -3, ... behind it if that is taken."""
    path, number = folder / name, 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}"
    return path


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{data!r} is no object")
    return data


def save_if_larger(run: RunFolder, name: str, found: Result | dict[str, Any], *sizes: str) -> None:
    """Keep ``found`` under ``name``, unless what is kept there is larger in one of ``sizes``: a quick look
    at few inputs costs nothing.
    """
    if why_kept_stays(run, name, found, *sizes) is None:
        run.keep_analysis(name, to_json(found))


def why_kept_stays(run: RunFolder, name: str, found: Result | dict[str, Any], *sizes: str) -> str | None:
    """In which size the kept result is larger than ``found``, as a sentence; None if in none. ``sizes``
    are keys of both.
    """
    kept = None if run.shipped else run.analysis(name)
    if kept is None:
        return None
    plain = to_json(found)
    for size in sizes:
        if kept.get(size, 0) > plain[size]:
            file = run.file(f"analysis/{name}.json")
            return f"{file} stays as it is: it is of {kept[size]:,} {size}, this is of {plain[size]:,}"
    return None


@dataclass(frozen=True)
class Ensemble:
    """A folder that names runs whose probabilities are averaged.

    The runs stay where they are; whoever moves the folder takes them along.
    """

    path: Path
    device: str = CPU

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def file(self, name: str) -> Path:
        return self.path / name

    def read(self) -> dict[str, Any]:
        """The names of its runs, and what was found about them."""
        try:
            found: dict[str, Any] = json.loads(self.file(ENSEMBLE).read_text(encoding="utf-8"))
            if not found["runs"] or not all(isinstance(name, str) for name in found["runs"]):
                raise ValueError("it names no runs")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"ensemble {self.path} is damaged: {ENSEMBLE} cannot be read ({error})"
            ) from error
        return found

    def runs(self) -> list[RunFolder]:
        return [self._run(name) for name in self.read()["runs"]]

    def _run(self, name: str) -> RunFolder:
        try:
            found = open_run(name if name.startswith(_ZOO) else os.path.normpath(self.path / name))
            return replace(found, device=self.device)
        except LabError as error:
            raise RunError(f"ensemble {self.path} names a run that is not there: {error}") from error


def create_ensemble(path: Path, runs: Sequence[RunFolder], found: dict[str, Any]) -> Ensemble:
    """A new folder that names ``runs``, with what was found about them; an existing one is refused."""
    check_unused(path)
    make_folder(path)
    names = [run.name if run.shipped else os.path.relpath(run.path, path) for run in runs]
    write_json(path / ENSEMBLE, {**found, "runs": names})
    return Ensemble(path)


def find_ensemble(name: str) -> Ensemble | None:
    return Ensemble(Path(name)) if os.path.isfile(os.path.join(name, ENSEMBLE)) else None  # noqa: PTH113, PTH118
