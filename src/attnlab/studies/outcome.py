"""From finished runs to one result: every seed's value, means with intervals, paired differences.

A result is a pure function of the study and of the runs in the pool. All that depends on the clock is
apart, under ``timings``, so that a study gives the same bytes for the rest, interrupted or not.
"""

from collections.abc import Collection, Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

from attnlab.analysis.statistics import (
    MatchedKind,
    RoleCount,
    SeedValues,
    Share,
    compare_seeds,
    describe_seeds,
    holm,
)
from attnlab.errors import RunError, SpecError, brief
from attnlab.reading import read_json
from attnlab.results import Interval, Result, Row
from attnlab.runs import Environment, RunFolder, describe_environment
from attnlab.specs import from_json, require, to_json
from attnlab.specs.codec import later
from attnlab.studies.jobs import failure, is_done, pool_run, run_name, seconds_of
from attnlab.studies.study import Curve, CurveWords, MeasureWords, Study, crossing, read_analysis

FORMAT = 1
FILE = "study.json"
RESULTS = Path("results")
SHIPPED = Path(__file__).parents[3] / RESULTS
"""The results that come with a clone of the repository."""


@final
@dataclass(frozen=True)
class RunCount:
    finished: int
    wanted: int


@final
@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """All seeds at one place of a curve."""

    at: int
    values: list[float | None]
    n: int
    mean: float | None
    interval: Interval | None
    anecdotal: bool


@final
@dataclass(frozen=True)
class Failed:
    seed: int
    error: str


@final
@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant: its spec without the seed, its runs, and what was measured."""

    name: str
    spec: dict[str, Any]
    runs: list[str]
    measures: dict[str, SeedValues]
    curves: dict[str, list[CurvePoint]] | None = later(None)
    failed: list[Failed]


@final
@dataclass(frozen=True, kw_only=True)
class Difference:
    """A variant less the baseline; ``p_holm`` is adjusted over all variants of the measure."""

    measure: str
    variant: str
    differences: list[float | None]
    n: int
    mean: float | None
    interval: Interval | None
    p: float | None
    p_holm: float | None = later(None)


@final
@dataclass(frozen=True, kw_only=True)
class MeasureVariance:
    """What each factor explains of the variance of one measure."""

    measure: str
    rows: Share
    columns: Share
    both: Share
    seeds: Share


@final
@dataclass(frozen=True)
class Factors:
    """Two crossed factors, their values, and what they explain."""

    names: list[str]
    rows: list[str]
    columns: list[str]
    variance: list[MeasureVariance]


@final
@dataclass(frozen=True)
class HeadsAcrossSeeds:
    """What the heads of the runs of one variant have in common."""

    variant: str
    seeds: list[int]
    roles: list[RoleCount]
    kinds: list[MatchedKind]


@final
@dataclass(frozen=True, kw_only=True)
class StudyResult(Result):
    """All that a study found."""

    shown_by: ClassVar[str] = "attnlab.tables.study"

    format: int
    study: str
    question: str
    command: str
    environment: Environment
    commits: list[str]
    seeds: list[int]
    baseline: str | None
    complete: bool
    runs: RunCount
    measures: list[MeasureWords]
    curves: list[CurveWords] | None = later(None)
    variants: list[VariantResult]
    differences: list[Difference]
    timings: dict[str, list[float | None]]
    heads: list[HeadsAcrossSeeds] | None = later(None)
    factors: Factors | None = later(None)

    def variant(self, name: str) -> VariantResult:
        return next(variant for variant in self.variants if variant.name == name)

    def words(self, measure: str) -> MeasureWords:
        return next(words for words in self.measures if words.name == measure)

    def records(self) -> list[Row]:
        """A row for each run, with its measures; None where it has not finished or never got there."""
        return [
            {
                "variant": variant.name,
                "seed": seed,
                "run": variant.runs[place],
                **{measure.name: variant.measures[measure.name].values[place] for measure in self.measures},
                "seconds": self.timings[variant.name][place],
            }
            for variant in self.variants
            for place, seed in enumerate(self.seeds)
        ]


def result_folder(study: str, out: str | Path | None) -> Path:
    """Where the result of a study is kept: in ``out``, by default results/NAME."""
    return Path(out) if out else RESULTS / study


def read_results(folder: Path) -> StudyResult | None:
    """The result that lies in ``folder``, or None if there is none."""
    path = folder / FILE
    try:
        result = read_json(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is not the result of a study ({error})") from error
    version = result.get("format") if isinstance(result, dict) else None
    if version != FORMAT:
        raise RunError(
            f"{path} has format {brief(version)}, but this version of attnlab reads format {FORMAT}; "
            "run the study again to write a new one"
        )
    try:
        found = from_json(StudyResult, result, "it", extra=True)
        _check_whole(found)
    except SpecError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    return found


def _check_whole(found: StudyResult) -> None:
    """Refuse a result whose parts do not fit together."""
    names = [variant.name for variant in found.variants]
    measures = [measure.name for measure in found.measures]
    curves = {curve.name for curve in found.curves or []}
    _check_same("it.timings", found.timings, names)
    if found.baseline is not None:
        require(found.baseline in names, "it.baseline", found.baseline, "the name of a variant")
    for variant in found.variants:
        path = f"it.variants[{names.index(variant.name)}]"
        _check_same(f"{path}.measures", variant.measures, measures)
        _check_same(f"{path}.curves", variant.curves or {}, curves)
        lists: dict[str, Sized] = {name: each.values for name, each in variant.measures.items()}
        lists |= {"runs": variant.runs, "seconds": found.timings[variant.name]}
        for name, several in lists.items():
            rule = f"a list of {len(found.seeds)}, one a seed"
            require(len(several) == len(found.seeds), f"{path}.{name}", several, rule)
    for place, row in enumerate(found.differences):
        path = f"it.differences[{place}]"
        require(row.variant in names, f"{path}.variant", row.variant, "the name of a variant")
        require(row.measure in measures, f"{path}.measure", row.measure, "the name of a measure")


def _check_same(path: str, given: Mapping[str, object], wanted: Collection[str]) -> None:
    require(given.keys() == set(wanted), path, list(given), f"of {', '.join(sorted(wanted)) or 'nothing'}")


def collect(study: Study, pool: Path) -> StudyResult:
    """The result of ``study`` from what ``pool`` holds."""
    found = {(name, seed): pool_run(pool, spec) for name, seed, spec in study.specs()}
    begun = {key: run for key, run in found.items() if run is not None}
    runs = {key: run for key, run in begun.items() if is_done(run, study.analyses)}
    failures = {key: failure(run) for key, run in begun.items() if key not in runs}
    errors = {key: failed.error for key, failed in failures.items() if failed is not None}
    seeds = study.seed_list
    variants = [
        _variant(
            study,
            name,
            [runs.get((name, seed)) for seed in seeds],
            [Failed(seed, errors[name, seed]) for seed in seeds if (name, seed) in errors],
        )
        for name in study.variants
    ]
    finished = {
        name: {seed: runs[name, seed] for seed in seeds if (name, seed) in runs} for name in study.variants
    }
    return StudyResult(
        format=FORMAT,
        study=study.name,
        question=study.question,
        command=study.command,
        environment=describe_environment(),
        commits=sorted({run.environment().commit or "unknown" for run in runs.values()}),
        seeds=seeds,
        baseline=study.baseline,
        complete=len(runs) + len(errors) == len(found),
        runs=RunCount(len(runs), len(found)),
        measures=[MeasureWords(m.name, m.title, m.unit, m.better) for m in study.measures],
        curves=[CurveWords(c.name, c.title, c.over, c.unit) for c in study.curves] or None,
        variants=variants,
        differences=_differences(study, variants),
        timings={name: [seconds_of(runs.get((name, seed))) for seed in seeds] for name in study.variants},
        heads=compare_heads(finished) if study.matches_heads else None,
        factors=part_variance(study, variants) if study.factors and study.seeds > 1 else None,
    )


def _variant(study: Study, name: str, runs: list[RunFolder | None], failed: list[Failed]) -> VariantResult:
    """``runs``: of every seed, None where there is none that has finished."""
    return VariantResult(
        name=name,
        spec={key: value for key, value in to_json(study.spec(name, 0)).items() if key != "seed"},
        runs=[run_name(study.spec(name, seed)) for seed in study.seed_list],
        measures={
            measure.name: describe_seeds([None if run is None else measure.read(run) for run in runs])
            for measure in study.measures
        },
        curves={curve.name: _curve(curve, runs) for curve in study.curves} or None,
        failed=failed,
    )


def _curve(curve: Curve, runs: list[RunFolder | None]) -> list[CurvePoint]:
    """A row for each place: every seed's value, their mean and its interval."""
    lines = [{} if run is None else curve.read(run) for run in runs]
    places = sorted({place for line in lines for place in line})
    return [
        CurvePoint(at=place, **vars(describe_seeds([line.get(place) for line in lines])))
        for place in places
    ]


def _differences(study: Study, variants: list[VariantResult]) -> list[Difference]:
    """Every variant against the baseline, paired by seed; p-values adjusted over all of a measure."""
    rows: list[Difference] = []
    if study.baseline is None:
        return rows
    base = next(variant.measures for variant in variants if variant.name == study.baseline)
    for name in (measure.name for measure in study.measures):
        compared = [
            Difference(
                measure=name,
                variant=variant.name,
                **vars(compare_seeds(variant.measures[name].values, base[name].values)),
            )
            for variant in variants
            if variant.measures is not base
        ]
        adjusted = iter(holm([row.p for row in compared if row.p is not None]))
        rows += [row if row.p is None else replace(row, p_holm=next(adjusted)) for row in compared]
    return rows


def compare_heads(variants: Mapping[str, Mapping[int, RunFolder]]) -> list[HeadsAcrossSeeds]:
    """Roles and matched heads of each variant with at least two runs; ``variants`` hold runs by seed."""
    from attnlab.analysis.matching import Behaviour, count_roles, match_heads  # here: it needs torch

    found = []
    for variant, runs in variants.items():
        if len(runs) > 1:
            behaviours = {
                seed: Behaviour.from_json(read_analysis(run, "behaviour")) for seed, run in runs.items()
            }
            roles, kinds = count_roles(behaviours), match_heads(behaviours)
            found.append(HeadsAcrossSeeds(variant, list(runs), roles, kinds))
    return found


def part_variance(study: Study, variants: list[VariantResult]) -> Factors | None:
    """Shares of the variance of every measure; None as long as a cell lacks a seed."""
    import numpy as np  # here: who only reads results needs none

    from attnlab.analysis.variance import explained

    assert study.factors is not None
    rows, columns = study.crossed()
    found = {variant.name: variant.measures for variant in variants}
    parted = []
    for measure in study.measures:
        cells = [[found[crossing(row, column)][measure.name].values for column in columns] for row in rows]
        if any(value is None for line in cells for values in line for value in values):
            return None
        parts = explained(np.array(cells, dtype=np.float64))
        parted.append(MeasureVariance(measure=measure.name, **vars(parts)))
    return Factors(list(study.factors), rows, columns, parted)
