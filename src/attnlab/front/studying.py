"""Several runs from Python: studies, sweeps and comparisons of two."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from attnlab.analysis.choices import SAMPLES
from attnlab.display import Meter
from attnlab.errors import SpecError, brief, nearest
from attnlab.front.loading import load_run
from attnlab.lazy import Later
from attnlab.presets import preset as find_preset
from attnlab.runs import RunFolder
from attnlab.specs import Spec, require
from attnlab.storage import check_out
from attnlab.studies.conduct import check_trackers
from attnlab.studies.jobs import POOL
from attnlab.studies.running import check_workers
from attnlab.studies.study import (
    EXACT_MATCH,
    MEASURES,
    STEPS_TO_99,
    Measure,
    Study,
    find_study,
    read_catalogue,
)
from attnlab.studies.sweeps.file import read_sweep, read_sweep_file
from attnlab.training.trackers import Tracker

if TYPE_CHECKING:
    from attnlab.analysis import compare as comparing
    from attnlab.analysis.compare import Comparison
    from attnlab.report import comparison as page
    from attnlab.studies.sweeps import conduct
    from attnlab.studies.sweeps.parts import SweepResult
else:
    comparing = Later("attnlab.analysis.compare")
    conduct = Later("attnlab.studies.sweeps.conduct")
    page = Later("attnlab.report.comparison")

COUNT = 20  # trials of a sweep that does not say


def study(
    variants: str | Mapping[str, Spec],
    *,
    seeds: int | None = None,
    name: str = "study",
    question: str = "",
    measures: Sequence[str | Measure] = (EXACT_MATCH, STEPS_TO_99),
    baseline: str | None = None,
    catalogue: str | Path | None = None,
) -> Study:
    """Variants of an experiment, each with the same seeds, to be run and compared with intervals.

    ``variants`` are specs by name, or the name of a built-in study or of one in ``catalogue``, a Python
    file that defines ``STUDIES``. ``seeds`` is how many, by default 5 or what the study says. ``name`` is
    what the folder of the result is called. ``measures`` are what every run is measured by: exact_match,
    valid_exact_match, steps_to_99, or a ``Measure`` of your own. With a ``baseline``, the variant of that
    name, paired differences are tested too.

    >>> one = spec("addition", digits=1, width=16, epochs=1, heads=1)
    >>> heads = study({"1 head": one, "2 heads": spec(one, heads=2)}, seeds=2)
    >>> heads.run(workers=1).frame()[["variant", "seed"]].values.tolist()
    [['1 head', 0], ['1 head', 1], ['2 heads', 0], ['2 heads', 1]]
    """
    if isinstance(variants, str):
        known = read_catalogue(Path(catalogue) if catalogue else None)
        made = find_study(variants, known)
    else:
        made = Study(
            name=name,
            question=question or f"How do {' and '.join(variants)} compare?",
            variants=dict(variants),
            measures=tuple(map(_measure, measures)),
            baseline=baseline,
            made_by="",
        )
    return made if seeds is None else replace(made, seeds=seeds)


def _measure(measure: str | Measure) -> Measure:
    if isinstance(measure, Measure):
        return measure
    if measure not in MEASURES:
        raise SpecError(f"there is no measure {brief(measure)}{nearest(measure, MEASURES)}")
    return MEASURES[measure]


def sweep(
    file: str | Path | Mapping[str, Any],
    *,
    count: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    task: str | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    pool: str | Path = POOL,
    retrain: int = 0,
    retrain_seeds: int = 5,
    track: Sequence[Tracker] = (),
) -> "SweepResult":
    """Search over specs as a sweep file says: one of Weights & Biases as it stands, or our short form.

    ``file`` is the file, or what it would hold. ``count`` are the trials in all, by default what the file
    says, or 20. Interrupted, it returns what there is so far, and the same call goes on where it was; a
    higher ``count`` extends the search. With one of ``workers`` the same ``seed`` gives the same search.
    ``task`` and ``preset`` take the place of the file's, ``out`` that of runs/sweeps/NAME. ``retrain``
    trains so many of the best specs again with ``retrain_seeds`` fresh seeds and measures them on test
    data.

    >>> small = {"digits": 1, "width": 16, "epochs": 1}
    >>> found = sweep({"set": small, "search": {"heads": [1, 2]}}, count=2, workers=1)
    >>> sorted(found.frame()["model.heads"])
    [1, 2]
    """
    require(count is None or count >= 1, "count", count, "at least 1")
    require(retrain >= 0, "retrain", retrain, "at least 0")
    require(retrain_seeds >= 1, "retrain_seeds", retrain_seeds, "at least 1")
    check_workers(workers)
    check_trackers(tuple(track))
    read = read_sweep(file, "sweep") if isinstance(file, Mapping) else read_sweep_file(Path(file))
    if not task and read.task.partition(":")[0].endswith(".py"):
        raise SpecError(
            f"{read.name} names the task file {read.task}, whose code would be run; if you know it, give "
            "it as task"
        )
    count = count or read.count or COUNT
    # all that decides the outcome of one worker
    words = ["attnlab", "sweep", str(file), "--count", str(count), "--seed", str(seed)]
    for flag, value in (("--task", task), ("--preset", preset)):
        words += [] if value is None else [flag, value]
    return conduct.run_sweep(
        read,
        find_preset(task or read.task, preset or read.preset),
        count=count,
        seed=seed,
        workers=workers,
        cluster=cluster,
        out=out,
        pool=Path(pool),
        retrain=retrain,
        retrain_seeds=retrain_seeds,
        track=tuple(track),
        command="" if isinstance(file, Mapping) else join(words),
    )


def compare(
    first: str | Path | RunFolder,
    second: str | Path | RunFolder,
    *,
    out: str = "",
    samples: int = SAMPLES,
) -> "Comparison":
    """Two runs side by side: specs, training, the same test examples with a paired test, heads.

    ``out`` is a file for a page with figures, which ends in .html. Heads are measured on ``samples``
    examples.

    >>> compare("zoo:adder", "zoo:adder", samples=50).answers.whole.difference
    0.0
    """
    check_out(out, ".html")
    runs = (load_run(first), load_run(second))
    with Meter("comparing", 1) as meter:
        found = comparing.compare_runs(*runs, samples=samples, progress=meter.update)
    if out:
        page.write_comparison(found, runs, Path(out), samples=samples)
    return found
