"""The runs in a folder, with what is known of each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from attnlab.errors import RunError
from attnlab.results import Result, Row, plain_fields
from attnlab.runs.folder import RunFolder, run_folders, shipped_runs
from attnlab.specs import spec_hash
from attnlab.specs.codec import unwritten

FOLDER = Path("runs")
"""Where runs are, unless another folder is named."""


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run: of its spec, of its last epoch, and of a verification if there is one."""

    run: str
    task: str
    seed: int
    spec: str
    epochs: int
    planned_epochs: int
    valid_exact_match: float | None
    correct: int | None
    total: int | None
    status: str


@dataclass(frozen=True)
class Verified:
    """What a verification says at least."""

    correct: int
    total: int


@dataclass(frozen=True, kw_only=True)
class DamagedRun:
    """A folder that cannot be read; ``status`` says why."""

    run: str
    status: str


@dataclass(frozen=True, kw_only=True)
class RunList(Result):
    """Runs by their names."""

    shown_by: ClassVar[str] = "attnlab.tables.runs"

    folder: str = unwritten("")
    runs: list[ListedRun | DamagedRun]

    def records(self) -> list[Row]:
        """A row for each run; what is not known of a damaged one is None."""
        names = list(ListedRun.__dataclass_fields__)
        return [dict.fromkeys(names) | plain_fields(each) for each in self.runs]


def list_runs(folder: str | Path = FOLDER) -> RunList:
    """The runs in ``folder``: task, seed, epochs, accuracy on validation examples, and whether each is
    finished.

    >>> run = train("addition", digits=1, width=16, heads=2, epochs=1, train=64, valid=16, test=16)
    >>> list_runs().records()[0]["run"]
    'addition-default-s0'
    """
    return RunList(folder=str(folder), runs=[_described(run) for run in run_folders(Path(folder))])


def list_shipped() -> RunList:
    """The runs that come with attnlab, by the names that commands take."""
    return RunList(folder="shipped runs", runs=[_described(run) for run in shipped_runs()])


def _described(run: RunFolder) -> ListedRun | DamagedRun:
    try:
        spec, summary = run.spec(), run.summary()
        epochs = run.metrics().epochs
        verified = run.kept_part("verify", Verified)
    except RunError as error:
        return DamagedRun(run=run.name, status=str(error))
    return ListedRun(
        run=run.name,
        task=spec.task.kind,
        seed=spec.seed,
        spec=spec_hash(spec),
        epochs=len(epochs),
        planned_epochs=spec.training.epochs,
        valid_exact_match=epochs[-1].valid_exact_match if epochs else None,
        correct=verified.correct if verified else None,
        total=verified.total if verified else None,
        status="finished" if summary else "unfinished",
    )
