"""Runs by their names."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.devices import CPU, find_device
from attnlab.front.run import Run
from attnlab.lazy import Later
from attnlab.registry import trusting
from attnlab.runs import RunFolder, find_ensemble, open_run

if TYPE_CHECKING:
    from attnlab.front import ensemble
else:
    ensemble = Later("attnlab.front.ensemble")


def load(run: str | Path | RunFolder, *, device: str = CPU, trust: bool = False) -> Run | Any:
    """A run by its folder, or a shipped one by ``zoo:NAME``.

    The folder of an ensemble gives what has ``evaluate``, ``predict`` and ``show``.

    ``device`` is where its model computes: ``"cpu"``, ``"auto"`` (an accelerator if torch finds one), or a
    device of torch such as ``"cuda:1"``; results are on the CPU.
    A run of a task of your own keeps a copy of the task's file. ``trust`` lets that copy be executed; it is
    not needed for a file that you have named or imported yourself.

    >>> load("zoo:adder").predict("374+814").text
    '1188'
    """
    joined = None if isinstance(run, RunFolder) else find_ensemble(str(run))
    if joined is None:
        return load_run(run, device=device, trust=trust)
    with trusting(trust):
        for each in joined.runs():
            each.spec()
    return ensemble.RunEnsemble(joined.path, _where(device))


def load_run(run: str | Path | RunFolder, *, device: str = CPU, trust: bool = False) -> Run:
    """The same for what needs a single run."""
    folder = run if isinstance(run, RunFolder) else open_run(str(run))
    with trusting(trust):
        folder.spec()
    return Run(folder.path, folder.shipped, _where(device))


def _where(device: str) -> str:
    return device if device == CPU else str(find_device(device))
