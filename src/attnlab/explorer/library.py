"""What can be explored: runs that were named, shipped ones, those in the folder ``runs``, a wrapped model.

A name from a page is compared with the names that are known, never used as a path. Models are read when
they are first opened, and read again when their weights have changed.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import LabError, RunError, brief, nearest
from attnlab.lazy import Later
from attnlab.runs import RunFolder, open_run, run_folders

if TYPE_CHECKING:
    from attnlab.explorer import bench
    from attnlab.explorer.scene import Explored, Listed
    from attnlab.model import Model
    from attnlab.sets import Examples
else:
    bench = Later("attnlab.explorer.bench")

RUNS = Path("runs")
OPEN = 8
"""Models that are kept in memory, at most; the one that was not asked for longest goes."""


@dataclass(frozen=True)
class Shelf:
    """One thing to explore. ``version`` changes with its weights; it raises if they are gone."""

    name: str
    listed: "Callable[[], Listed]"
    open: "Callable[[], Explored]"
    version: Callable[[], object] = lambda: None


class Library:
    """All that can be explored, by name; used by several threads."""

    def __init__(self, named: Iterable[Shelf], more: Callable[[], Iterable[Shelf]] = list) -> None:
        self._named = {each.name: each for each in named}
        self._more = more
        self._opened: OrderedDict[str, tuple[object, Explored]] = OrderedDict()
        self._lock = threading.Lock()

    def shelves(self) -> dict[str, Shelf]:
        """Those that were named first, then what is there now."""
        return self._named | {each.name: each for each in self._more() if each.name not in self._named}

    def list(self) -> "list[Listed]":
        return [each.listed() for each in self.shelves().values()]

    def open(self, name: str) -> "Explored":
        """What answers for ``name``, which is one of those in the list."""
        shelf = self._named.get(name) or self.shelves().get(name)
        if shelf is None:
            raise RunError(f"there is no run {brief(name)} here{nearest(name, self.shelves())}")
        with self._lock:
            opened, version = self._opened, shelf.version()
            if name not in opened or opened[name][0] != version:
                opened[name] = (version, shelf.open())
            opened.move_to_end(name)
            while len(opened) > OPEN:
                opened.popitem(last=False)
            return opened[name][1]


def run_library(names: Iterable[str] = (), folder: Path = RUNS) -> Library:
    """The runs called ``names``, those in ``folder``, and the shipped ones."""
    named = [open_run(name) for name in names]
    for each in named:
        each.spec()  # refuses code that is not trusted, and damage
    shipped = [open_run(f"zoo:{each.path.name}") for each in run_folders(open_run("zoo:adder").path.parent)]
    taken = {each.path.resolve() for each in named}

    def found() -> list[Shelf]:
        return [
            _of_run(each) for each in (*run_folders(folder), *shipped) if each.path.resolve() not in taken
        ]

    return Library([_of_run(each) for each in named], found)


def library_of(run: RunFolder) -> Library:
    """A single run."""
    return Library([_of_run(run)])


def model_library(model: "Model", data: "Examples", labels: Sequence[str] = ()) -> Library:
    """A wrapped model, which is asked about ``data``; ``labels`` name its classes."""

    def listed() -> "Listed":
        from attnlab.explorer.scene import Listed

        return Listed(model.called, model.called, "", None)

    return Library([Shelf(model.called, listed, lambda: bench.Bench.of_model(model, data, labels=labels))])


def _of_run(run: RunFolder) -> Shelf:
    return Shelf(run.called, lambda: _listed(run), lambda: bench.Bench.of_run(run), lambda: _version(run))


def _listed(run: RunFolder) -> "Listed":
    """A run that cannot be read is listed as well; it says why when it is opened."""
    from attnlab.explorer.scene import Listed

    try:
        task, summary = run.spec().task.kind, run.summary()
    except LabError:
        return Listed(run.called, run.name, "", None)
    accuracy = None if summary is None else summary["valid"].get("exact_match")
    return Listed(run.called, run.name, task, accuracy)


def _version(run: RunFolder) -> object:
    """What changes when weights are written."""
    try:
        weights = run.file("best.safetensors").stat()
        run.file("spec.json").stat()
    except OSError as error:
        if run.file("spec.json").exists():
            raise RunError(f"run {run.called} has no weights yet; wait for its first epoch") from error
        raise RunError(f"run {run.called} is no longer there; open another one") from error
    return weights.st_mtime_ns, weights.st_size
