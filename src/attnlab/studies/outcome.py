"""From finished runs to one result: every seed's value, means with intervals, paired differences.

A result is a pure function of the study and of the runs in the pool. All that depends on the clock is
apart, under ``timings``, so that a study gives the same bytes for the rest, interrupted or not.
"""

from pathlib import Path
from typing import Any

from attnlab.analysis import compare_seeds, describe_seeds, holm
from attnlab.runs import Run, describe_environment
from attnlab.spec import Spec, to_json
from attnlab.studies.jobs import failure, is_done, pool_run, run_name
from attnlab.studies.study import Measure, Study

FORMAT = 1


def collect(study: Study, pool: Path, *, command: str) -> dict[str, Any]:
    """The result of ``study`` from what ``pool`` holds."""
    runs = {(name, seed): _Outcome(study, pool, spec) for name, seed, spec in study.specs()}
    variants = [_variant(study, name, runs) for name in study.variants]
    done = sum(outcome.run is not None for outcome in runs.values())
    result = {
        "format": FORMAT,
        "study": study.name,
        "question": study.question,
        "command": command,
        "environment": describe_environment(),
        "commits": sorted({outcome.commit() for outcome in runs.values() if outcome.run is not None}),
        "seeds": study.seed_list,
        "baseline": study.baseline,
        "complete": all(outcome.ended for outcome in runs.values()),
        "runs": {"finished": done, "wanted": len(runs)},
        "measures": [
            {"name": m.name, "title": m.title, "unit": m.unit, "better": m.better} for m in study.measures
        ],
        **(
            {
                "curves": [
                    {"name": c.name, "title": c.title, "over": c.over, "unit": c.unit} for c in study.curves
                ]
            }
            if study.curves
            else {}
        ),
        "variants": variants,
        "differences": _differences(study, variants),
        "timings": {
            name: [runs[name, seed].seconds() for seed in study.seed_list] for name in study.variants
        },
    }
    if study.matches_heads:
        from attnlab.studies.heads import compare_heads  # here: it needs torch

        result["heads"] = compare_heads({name: _finished(study, name, runs) for name in study.variants})
    if study.factors and study.seeds > 1:
        from attnlab.studies.factors import part_variance  # here: it needs numpy

        result["factors"] = part_variance(study, variants)
    return result


class _Outcome:
    """What became of one spec: a finished run, a failure, or nothing yet."""

    def __init__(self, study: Study, pool: Path, spec: Spec) -> None:
        found = pool_run(pool, spec)
        self.run: Run | None = found if found is not None and is_done(found, study.analyses) else None
        self.error = failure(found) if found is not None and self.run is None else None

    @property
    def ended(self) -> bool:
        return self.run is not None or self.error is not None

    def value(self, measure: Measure) -> float | None:
        return None if self.run is None else measure.read(self.run)

    def seconds(self) -> float | None:
        summary = None if self.run is None else self.run.summary()
        return None if summary is None else float(summary["seconds"])

    def commit(self) -> str:
        return "unknown" if self.run is None else str(self.run.environment().get("commit") or "unknown")


def _finished(study: Study, name: str, runs: dict[tuple[str, int], _Outcome]) -> dict[int, Run]:
    """The runs of a variant that have ended well, by seed."""
    found = {seed: runs[name, seed].run for seed in study.seed_list}
    return {seed: run for seed, run in found.items() if run is not None}


def _variant(study: Study, name: str, runs: dict[tuple[str, int], _Outcome]) -> dict[str, Any]:
    mine = {seed: runs[name, seed] for seed in study.seed_list}
    return {
        "name": name,
        "spec": {key: value for key, value in to_json(study.spec(name, 0)).items() if key != "seed"},
        "runs": [run_name(study.spec(name, seed)) for seed in study.seed_list],
        "measures": {
            measure.name: describe_seeds([outcome.value(measure) for outcome in mine.values()])
            for measure in study.measures
        },
        **({"curves": _curves(study, mine)} if study.curves else {}),
        "failed": [
            {"seed": seed, "error": outcome.error["error"]}
            for seed, outcome in mine.items()
            if outcome.error is not None
        ],
    }


def _curves(study: Study, mine: dict[int, _Outcome]) -> dict[str, Any]:
    """Of each curve a row for each place: every seed's value, their mean and its interval."""
    found = {}
    for curve in study.curves:
        lines = [None if outcome.run is None else curve.read(outcome.run) for outcome in mine.values()]
        places = sorted({place for line in lines if line is not None for place in line})
        found[curve.name] = [
            {"at": place, **describe_seeds([None if line is None else line.get(place) for line in lines])}
            for place in places
        ]
    return found


def _differences(study: Study, variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every variant against the baseline, paired by seed; p-values adjusted over all of a measure."""
    if study.baseline is None:
        return []
    base = next(variant for variant in variants if variant["name"] == study.baseline)
    rows = []
    for measure in study.measures:
        compared = [
            {
                "measure": measure.name,
                "variant": variant["name"],
                **compare_seeds(
                    variant["measures"][measure.name]["values"], base["measures"][measure.name]["values"]
                ),
            }
            for variant in variants
            if variant is not base
        ]
        tested = [row for row in compared if row["p"] is not None]
        for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
            row["p_holm"] = adjusted
        rows += compared
    return rows
