"""The run folder: creating, opening and listing; ensembles of runs."""

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

from attnlab.devices import CPU
from attnlab.display import say
from attnlab.errors import ECHOED, LabError, RunError, SpecError, StorageError, brief, nearest
from attnlab.lazy import Later
from attnlab.reading import MOST_JSON, MOST_LINES, MOST_SPEC, parse_json, parse_json_lines, read_bytes
from attnlab.registry import CODE, require_code
from attnlab.results import Result
from attnlab.runs.environment import ENVIRONMENT, Environment
from attnlab.runs.files import (
    BEST,
    METRICS,
    MOST_WEIGHTS,
    SPEC,
    SUMMARY,
    read_file,
    read_known,
    settle,
    write_files,
)
from attnlab.runs.manifest import MANIFEST, digest
from attnlab.runs.observed import Observed
from attnlab.runs.records import Metrics, Summary, read_record
from attnlab.specs import Spec, from_json, to_json
from attnlab.storage import append_json_line, as_json, refuse_link, refusing

if TYPE_CHECKING:
    from attnlab import taps
    from attnlab.model import Model
    from attnlab.runs import weights
else:
    taps, weights = Later("attnlab.taps"), Later("attnlab.runs.weights")

T = TypeVar("T")
D = TypeVar("D")
R = TypeVar("R", bound=Result)

_ZOO = "zoo:"
TRAINING_LOCK = ".lock"
"""Held by the process that makes a run or trains it."""

ENSEMBLE = "ensemble.json"
"""The runs of an ensemble, by their paths from its folder, and what was measured when they were chosen."""


class NotKeptWarning(UserWarning):
    """What an analysis found could not be written into the folder of its run."""


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

    def read(self, name: str, most: int = MOST_LINES) -> bytes:
        """What a file of the run holds, if it is as it was written; see ``runs.files``."""
        return read_file(self.path, name, most)

    def write(self, files: Mapping[str, bytes], *, growing: Collection[str] = ()) -> None:
        """Replace files of the run together; see ``runs.files``."""
        write_files(self.path, files, growing=growing)

    def append(self, name: str, value: Any) -> None:
        """Add a line of JSON to a file that grows."""
        append_json_line(self.file(name), value)

    def remove(self, *names: str) -> None:
        """Remove files of the run."""
        settle(self.path, without=names)

    def folder(self, name: str) -> Path:
        """A folder in the run for what is not read again; no link: its maker says where it leads."""
        refuse_link(self.path / name)
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
        return self._read(SPEC, self._decoded)

    def _decoded(self, data: Any) -> Spec:
        if isinstance(data, dict) and data.get("source"):
            require_code(data.get("task"), data["source"], self.file(CODE))
        return from_json(Spec, data)

    def environment(self) -> Environment:
        """Versions, machine and threads of the training."""
        return self._read(ENVIRONMENT, lambda data: Environment.from_json(_object(data)))

    def metrics(self) -> Metrics:
        """How it trained: the loss over steps, and the accuracy after each epoch."""
        try:
            content, known = read_known(self.path, METRICS)
            bound = len(content) if known is None else content.rfind(b"\n", 0, known.size) + 1
            lines = [_object(line) for line in parse_json_lines(content[:bound].decode())]
            lines += _whole_lines(content[bound:])
            return Metrics(run=self.called, lines=[read_record(line) for line in lines])
        except FileNotFoundError:
            return Metrics(run=self.called, lines=[])
        except SpecError as error:
            reason = f"a line of {METRICS} lacks a value or has a wrong one ({error})"
        except (ValueError, OSError) as error:
            reason = f"{METRICS} cannot be read ({error})"
        raise RunError(f"run {self.path} is damaged: {reason}")

    def observed(self) -> Observed:
        """What was seen of its training while it ran; an older run has none."""
        return self._read("observed.json", lambda data: Observed.from_json(_object(data)))

    def summary(self) -> dict[str, Any] | None:
        """How training ended, or None while it has not."""
        if not self.file(SUMMARY).exists():
            return None
        return self._read(SUMMARY, _summarised)

    @property
    def temperature(self) -> float:
        """What logits of its best weights are divided by before probabilities are made of them; 1 until
        one was fitted on validation data.
        """
        summary = self.summary()
        return 1.0 if summary is None else float(summary.get("temperature", 1.0))

    def analysis(self, name: str) -> dict[str, Any] | None:
        """What an analysis found, or None if it was not run on the model as it is now."""
        file = f"analysis/{name}.json"
        if self.edited or not self.file(file).exists():
            return None
        found = self._read(file, _object, MOST_JSON)
        return found if found.get("weights") == self._fingerprint() else None

    def kept_part(self, name: str, kind: type[D]) -> D | None:
        """The fields of ``kind``, a dataclass, of what an analysis found; None if ``analysis`` is."""
        found = self.analysis(name)
        try:
            return None if found is None else from_json(kind, found, "it", extra=True)
        except SpecError as error:
            raise RunError(
                f"run {self.path} is damaged: analysis/{name}.json is wrong ({error})"
            ) from error

    def keep_analysis(self, name: str, found: dict[str, Any]) -> Path | None:
        """Write what an analysis found; None if the run is shipped or edited, or cannot be written to."""
        if self.shipped or self.edited:
            return None
        file = f"analysis/{name}.json"
        try:
            self.write({file: as_json({**found, "weights": self._fingerprint()})})
        except StorageError as error:  # it can be shown all the same
            warnings.warn(f"not kept: {error}", NotKeptWarning, stacklevel=2)
            return None
        return self.file(file)

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
        refuse_link(self.file(TRAINING_LOCK))
        with refusing(self.path):
            try:
                lock = FileLock(self.file(TRAINING_LOCK), blocking=False).acquire()
            except Timeout as error:
                raise RunError(f"run {self.path} is being trained by another process") from error
        with lock:
            yield

    def _fingerprint(self) -> str:
        """Twelve digits that change with the best weights."""
        try:
            content, known = read_known(self.path, BEST, MOST_WEIGHTS)
        except FileNotFoundError:
            return "none"
        except (OSError, ValueError) as error:
            raise RunError(f"run {self.path} is damaged: {BEST} cannot be read ({error})") from error
        return (known or digest(content)).sha256[:12]

    def _read(self, name: str, convert: Callable[[Any], T], most: int = MOST_SPEC) -> T:
        try:
            return convert(parse_json(self.read(name, most).decode()))
        except FileNotFoundError as error:
            raise RunError(f"run {self.path} is damaged: {name} is missing") from error
        except RunError:
            raise
        except (OSError, ValueError, LabError) as error:
            raise RunError(f"run {self.path} is damaged: {name} cannot be read ({error})") from error


def open_run(name: str) -> RunFolder:
    """A run by its folder, or a shipped one by ``zoo:NAME``."""
    if name.startswith(_ZOO):
        shipped = {run.name: run for run in shipped_runs()}
        if name not in shipped:
            raise RunError(f"unknown shipped run {brief(name)}{nearest(name, shipped)}")
        return shipped[name]
    path = Path(name)
    if not os.path.isdir(path):  # noqa: PTH112  # unlike Path.is_dir, false for a name that is too long
        raise RunError(f"no run at {brief(name)}; {_meant(name)}'attnlab runs' lists your runs")
    if not (path / "spec.json").exists():
        if (path / ENSEMBLE).exists():
            rule = f"this needs one run; {ENSEMBLE} names its runs"
            raise RunError(f"folder {brief(name)} is an ensemble, and {rule}")
        raise RunError(f"folder {brief(name)} holds no run: spec.json is missing")
    if not (path / MANIFEST).exists():
        _say_unchecked(path)
    return RunFolder(path)


def _meant(name: str) -> str:
    """The run that was perhaps meant: a shipped one, or one in the folder of runs, by its name alone."""
    by_name = {run.path.name: run.called for run in [*run_folders(Path("runs")), *shipped_runs()]}
    close = get_close_matches(name[:ECHOED], by_name, n=1, cutoff=0.8)
    return f"did you mean {by_name[close[0]]!r}? " if close else ""


def shipped_runs() -> list[RunFolder]:
    """The runs that come with attnlab."""
    return [RunFolder(run.path, shipped=True) for run in run_folders(Path(str(files("attnlab"))) / "zoo")]


_unchecked: set[Path] = set()


def _say_unchecked(path: Path) -> None:
    """Say once of a run of an older version that nothing binds its files."""
    if path.resolve() not in _unchecked:
        _unchecked.add(path.resolve())
        say(f"run {path} has no {MANIFEST}, as those of older versions: damage to its files may go unseen")


def run_folders(folder: Path) -> list[RunFolder]:
    """Every run in ``folder``, by name; a folder that nobody lets us look into is none."""
    if not folder.is_dir():
        return []
    there = (path for path in sorted(folder.iterdir()) if os.path.exists(path / SPEC))  # noqa: PTH110
    return [RunFolder(path) for path in there]


def _summarised(data: Any) -> dict[str, Any]:
    Summary.from_json(data)
    return _object(data)


def _whole_lines(content: bytes) -> list[dict[str, Any]]:
    """JSON lines that nothing binds yet: behind one that was lost with the power nothing counts."""
    found = []
    with suppress(ValueError):
        for line in content.split(b"\n")[:-1]:
            found.append(_object(parse_json(line.decode())))
    return found


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{brief(data)} is not a JSON object")
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
        if isinstance(kept.get(size), int) and kept[size] > plain[size]:
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

    def folder(self, name: str) -> Path:
        """A folder in it for what is not read again; no link."""
        refuse_link(self.path / name)
        return self.path / name

    def read(self) -> dict[str, Any]:
        """The names of its runs, and what was found about them."""
        try:
            content = read_bytes(self.file(ENSEMBLE), MOST_JSON, links=False)
            found = _object(parse_json(content.decode()))
            if not from_json(_Named, found, "it", extra=True).runs:
                raise ValueError("it names no runs")
        except (OSError, ValueError, SpecError) as error:
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


@dataclass(frozen=True)
class _Named:
    """What an ensemble must say."""

    runs: list[str]


def find_ensemble(name: str) -> Ensemble | None:
    return Ensemble(Path(name)) if os.path.isfile(os.path.join(name, ENSEMBLE)) else None  # noqa: PTH113, PTH118
