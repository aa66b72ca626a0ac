"""A study: variants of an experiment, each with the same seeds, and the measures that compare them.

Studies are those of every task, and of a file of your own, ``--catalogue FILE``.
"""

import re
import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, final

from attnlab.errors import LabError, RunError, SpecError, brief, nearest
from attnlab.lazy import Later
from attnlab.reading import MOST_SPEC, read_bytes
from attnlab.registry import find_task, task_names
from attnlab.results import Part, Table, parts_html
from attnlab.runs import RunFolder
from attnlab.specs import Spec
from attnlab.studies.jobs import POOL
from attnlab.training.trackers import Tracker

if TYPE_CHECKING:
    from attnlab.studies import conduct
    from attnlab.studies.outcome import StudyResult
else:
    conduct = Later("attnlab.studies.conduct")

Unit = Literal["share", "count", "steps", "ratio", "number"]
Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class MeasureWords:
    """What a result says of a measure."""

    name: str
    title: str
    unit: Unit
    better: Better


@final
@dataclass(frozen=True, kw_only=True)
class Measure(MeasureWords):
    """A number that every run gives, and the analysis that it is read from (None: from the training)."""

    read: Callable[[RunFolder], float | None]
    """The value of a finished run; None if it never got there."""
    analysis: str | None = None


@dataclass(frozen=True)
class CurveWords:
    """What a result says of a curve, and what it is given ``over``."""

    name: str
    title: str
    over: str
    unit: Unit


@final
@dataclass(frozen=True, kw_only=True)
class Curve(CurveWords):
    """Numbers that every run gives over something, such as accuracy over length."""

    read: Callable[[RunFolder], Mapping[int, float]]
    """The numbers of a finished run."""
    analysis: str


@final
@dataclass(frozen=True, kw_only=True)
class Study:
    """Specs x seeds, and what is reported of them.

    Variants share seeds: seed 3 gives every variant of a task the same examples in the same order, so that
    differences are paired. Each run has one torch thread, so that results do not depend on the machine's
    cores; the thread is part of the spec.
    """

    name: str
    question: str
    variants: Mapping[str, Spec]
    measures: tuple[Measure, ...]
    seeds: int = 5
    first_seed: int = 0
    baseline: str | None = None
    """The variant that all others are compared with."""
    matches_heads: bool = False
    """Whether heads of different seeds are matched by what they do, and their roles counted."""
    curves: tuple[Curve, ...] = ()
    factors: tuple[str, str] | None = None
    """What two things the variants cross, each named ``row, column``: the variance is parted among them."""
    made_by: str | None = None
    """The command that runs it, if that is not ``attnlab study run NAME``; empty if there is none."""

    def run(
        self,
        *,
        workers: int | None = None,
        cluster: str | None = None,
        pool: str | Path = POOL,
        out: str | Path | None = None,
        retry: bool = False,
        track: Sequence[Tracker] = (),
    ) -> "StudyResult":
        """Train and analyse every run that is not finished yet, and keep the result in a folder.

        Interrupted, it returns what there is so far, and the same call goes on where it was.

        ``workers`` is the number of processes, by default one a core; ``cluster`` the address of a Ray
        cluster, or ``auto`` for the one on this machine. ``pool`` is the folder of runs that studies and
        sweeps share, ``out`` that of the result, by default results/NAME. ``retry`` tries runs again that
        failed for good, such as those whose loss became infinite. ``track`` names who gets the metrics of
        new runs besides their folders.
        """
        return conduct.run_study(
            self,
            workers=workers,
            cluster=cluster,
            pool=Path(pool),
            out=out,
            retry=retry,
            track=tuple(track),
        )

    def show(self, *, out: str | Path | None = None, pool: str | Path = POOL) -> "StudyResult":
        """The result that is kept in ``out``, by default results/NAME, or what the runs so far give."""
        return conduct.show_study(self, out=out, pool=Path(pool))

    def tables(self) -> list[Part]:
        """Its question, its variants and what is measured, for people."""
        rows = tuple((name, spec.task.kind, spec.model.kind) for name, spec in self.variants.items())
        measured = ", ".join(measure.title for measure in self.measures)
        return [
            Table(f"{self.name}: {self.question}", ("variant", "task", "model"), rows),
            f"{len(self.seed_list)} seeds each; measured: {measured}",
        ]

    def _repr_html_(self) -> str:
        return parts_html(self.tables())

    @property
    def command(self) -> str:
        """What runs it from a shell."""
        if self.made_by is not None:
            return self.made_by
        return f"attnlab study run {quote(self.name)} --seeds {self.seeds}"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", self.name):
            raise SpecError(f"study name {brief(self.name)} must be small letters, digits and hyphens")
        if not self.variants or not self.measures:
            raise SpecError(f"study {self.name} must have at least one variant and one measure")
        if self.baseline is not None and self.baseline not in self.variants:
            raise SpecError(f"study {self.name} has no variant {brief(self.baseline)} to compare with")
        if self.factors is not None:
            rows, columns = self.crossed()
            if set(self.variants) != {crossing(row, column) for row in rows for column in columns}:
                raise SpecError(
                    f"study {self.name} crosses {' x '.join(self.factors)}, but lacks a variant"
                )
        if self.seeds < 1:
            raise SpecError(f"study {self.name} has {self.seeds} seeds, but it must have at least 1")

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.first_seed, self.first_seed + self.seeds))

    @property
    def analyses(self) -> tuple[str, ...]:
        """Every analysis that a measure or curve is read from, once, and what heads are matched by."""
        sources: tuple[Measure | Curve, ...] = (*self.measures, *self.curves)
        read = dict.fromkeys(each.analysis for each in sources if each.analysis is not None)
        return (*read, "behaviour") if self.matches_heads else tuple(read)

    def crossed(self) -> tuple[list[str], list[str]]:
        """The values of both factors, in the order of the variants."""
        halves = [name.partition(", ")[::2] for name in self.variants]
        return list(dict.fromkeys(row for row, _ in halves)), list(dict.fromkeys(col for _, col in halves))

    def spec(self, variant: str, seed: int) -> Spec:
        """The spec of one run, settled: the pool goes by its hash, wherever a command is started."""
        base = self.variants[variant].settled()
        return replace(base, seed=seed, training=replace(base.training, threads=1))

    def specs(self) -> list[tuple[str, int, Spec]]:
        """Every run as (variant, seed, spec), seed by seed, so that all variants grow together."""
        return [(name, seed, self.spec(name, seed)) for seed in self.seed_list for name in self.variants]


def crossing(row: str, column: str) -> str:
    return f"{row}, {column}"


WINDOWS = 10
TARGET = 0.99


def steps_to_target(run: RunFolder) -> float | None:
    """The first step by which the last ten logged windows of training batches were 99% wholly right.

    Batches are measured before the model learns from them. Each window holds a 200th of all steps; in the
    first epoch its examples are new to the model.
    """
    windows = run.metrics().steps
    for place in range(WINDOWS, len(windows) + 1):
        recent = windows[place - WINDOWS : place]
        if sum(record.exact_match for record in recent) / WINDOWS >= TARGET:
            return float(recent[-1].step)
    return None


def last_probe(run: RunFolder, key: Literal["entropy", "moved"]) -> float | None:
    values = [getattr(probe, key) for probe in run.metrics().probes]
    return next((float(value) for value in reversed(values) if value is not None), None)


def read_analysis(run: RunFolder, analysis: str) -> dict[str, Any]:
    found = run.analysis(analysis)
    if found is None:
        raise RunError(f"run {run.path} has no analysis {brief(analysis)}")
    return found


def wrong_analysis(run: RunFolder, analysis: str, why: str) -> RunError:
    """What to raise of an analysis that holds something else than it should."""
    return RunError(f"run {run.path} is damaged: analysis/{analysis}.json holds {why}")


def kept_value(
    name: str, title: str, analysis: str, *path: str | int, unit: Unit = "share", better: Better = "higher"
) -> Measure:
    """What an analysis keeps at ``path`` of its JSON."""

    def read(run: RunFolder) -> float | None:
        found: Any = read_analysis(run, analysis)
        try:
            for key in path:
                found = found[key]
            return None if found is None else float(found)
        except (LookupError, TypeError, ValueError) as error:
            raise wrong_analysis(run, analysis, "no number at " + ".".join(map(str, path))) from error

    return Measure(name=name, title=title, unit=unit, better=better, read=read, analysis=analysis)


EXACT_MATCH = kept_value("exact_match", "exact match on test examples", "evaluate-test", "exact_match")
ACCURACY = kept_value("accuracy", "test accuracy", "evaluate-test", "exact_match")
VALID_ACCURACY = kept_value("valid_accuracy", "validation accuracy", "evaluate-valid", "exact_match")
VALID_EXACT_MATCH = kept_value(
    "valid_exact_match", "exact match on validation examples", "evaluate-valid", "exact_match"
)
STEPS_TO_99 = Measure("steps_to_99", "steps to 99% exact match", "steps", "lower", read=steps_to_target)
MEASURES = {
    each.name: each for each in (EXACT_MATCH, VALID_EXACT_MATCH, STEPS_TO_99, ACCURACY, VALID_ACCURACY)
}


def find_study(name: str, studies: Mapping[str, Study]) -> Study:
    if name not in studies:
        raise SpecError(
            f"unknown study {brief(name)}{nearest(name, studies, command='attnlab study list')}"
        )
    return studies[name]


def read_catalogue(path: Path | None = None) -> dict[str, Study]:
    """The studies of all tasks that can be found, and those of the Python file ``path``, which must define
    ``STUDIES``.
    """
    found = {study.name: study for task in task_names() for study in find_task(task).studies()}
    if path is None:
        return found
    try:
        read_bytes(path, MOST_SPEC)  # else a device would be read without an end
        added = runpy.run_path(str(path)).get("STUDIES")
    except LabError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's program
        raise SpecError(f"catalogue {path} cannot be run ({type(error).__name__}: {error})") from error
    if not isinstance(added, (list, tuple)) or not all(isinstance(study, Study) for study in added):
        raise SpecError(f"catalogue {path} must define STUDIES, a list of attnlab.studies.Study")
    return {**found, **{study.name: study for study in added}}
