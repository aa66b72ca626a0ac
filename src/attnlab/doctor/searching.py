"""Faults of many runs together, a study or a sweep: one seed decides, a test set chooses, an edge is best.

Of a single run the second is looked for too: its validation examples may be its test examples.
"""

import math
from collections.abc import Mapping
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, final

from attnlab.doctor.fault import Fault
from attnlab.doctor.findings import Curve, Finding, Remedy
from attnlab.doctor.limits import BEST_AGAIN, SAME_SPLITS
from attnlab.doctor.patient import InapplicableError, Patient
from attnlab.doctor.rows import rows_of

if TYPE_CHECKING:
    from attnlab.studies.outcome import StudyResult, VariantResult

LEAST = 3
"""Values of a setting that have a middle."""


def ranked_variants(study: "StudyResult") -> "list[VariantResult]":
    """Variants by the mean of the first measure, the best first; those without one are left out."""
    measure = study.measures[0]
    sign = -1 if measure.better == "higher" else 1
    known = [each for each in study.variants if each.measures[measure.name].mean is not None]
    return sorted(known, key=lambda each: sign * (each.measures[measure.name].mean or 0.0))


def values_of(study: "StudyResult", variant: "VariantResult") -> list[float | None]:
    """The first measure of each seed."""
    return variant.measures[study.measures[0].name].values


@final
class SeedDecides(Fault):
    """Which variant is best depends on the seed, or is known from a single seed."""

    kind = "seed-decides"
    family = "evaluation"
    source = "log"
    looks_at = (
        "the first measure of every variant of a study, seed by seed; the seeds of a sweep's best trial"
    )
    limits = (BEST_AGAIN,)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.sweep is not None:
            return None if patient.sweep.retrained or len(patient.sweep.ranking) < 2 else self._one_trial()
        study = _study(patient)
        ranked = ranked_variants(study)
        if len(ranked) < 2:
            raise InapplicableError("there are no two variants to compare")
        best, second = (values_of(study, each) for each in ranked[:2])
        pairs = [(a, b) for a, b in zip(best, second, strict=True) if a is not None and b is not None]
        if len(pairs) < 2:
            text = f"{ranked[0].name} is better than {ranked[1].name} with one seed"
            return self.finding("warning", 0.9, text, {"seeds": float(len(pairs))}, _more_seeds(study))
        gap = abs(fmean(a - b for a, b in pairs))
        sign = 1 if study.measures[0].better == "higher" else -1
        again = fmean(float(sign * (a - b) > 0) for a, b in pairs)
        spread = stdev([a - b for a, b in pairs])
        if again >= BEST_AGAIN.value or gap > spread:
            return None
        text = f"{ranked[0].name} is better than {ranked[1].name} with {again:.0%} of the seeds only"
        evidence = {
            "share of seeds": again,
            "difference": gap,
            "spread of the difference over seeds": spread,
            "seeds": float(len(pairs)),
        }
        seeds = [float(n) for n in range(len(pairs))]
        lines = {ranked[0].name: [a for a, _ in pairs], ranked[1].name: [b for _, b in pairs]}
        curve = Curve("pair of runs", study.measures[0].title, seeds, lines)
        return self.finding("warning", 0.8, text, evidence, _more_seeds(study), curve)

    def _one_trial(self) -> Finding:
        text = "the best trial was trained with one seed, and was chosen for being the best"
        remedy = Remedy(
            "train the best specs again with fresh seeds before reporting them",
            command="attnlab sweep FILE --retrain 3 --retrain-seeds 5",
        )
        return self.finding("note", 0.7, text, {"seeds": 1.0}, remedy)


def _more_seeds(study: "StudyResult") -> Remedy:
    count = max(5, 2 * len(study.seeds))
    return Remedy(
        "train with more seeds, and report the difference with its interval",
        command=f"attnlab study run {study.study} --seeds {count}",
    )


@final
class TestUsedToChoose(Fault):
    """The examples that a result is reported on are those that it was chosen by."""

    kind = "test-used-to-choose"
    family = "evaluation"
    source = "log"
    looks_at = (
        "test examples among the validation examples of a run; what the variants of a study are ranked by"
    )
    limits = (SAME_SPLITS,)

    def examine(self, patient: Patient) -> Finding | None:
        if patient.sweep is not None:
            return None  # metrics of a sweep are those of validation examples
        return self._splits(patient) if patient.study is None else self._ranking(patient.study)

    def _splits(self, patient: Patient) -> Finding | None:
        valid, test = (set(rows_of(each)) for each in (patient.splits.valid, patient.splits.test))
        share = len(valid & test) / max(1, len(test))
        if share < SAME_SPLITS.value:
            return None
        text = f"{share:.0%} of the test examples are validation examples, by which weights are chosen"
        remedy = Remedy(
            "draw test examples apart from those that weights and settings are chosen by",
            code="train, valid, test = torch.utils.data.random_split(data, [0.8, 0.1, 0.1])",
        )
        return self.finding("serious", 0.9, text, {"share of test examples": share}, remedy)

    def _ranking(self, study: "StudyResult") -> Finding | None:
        measure, ranked = study.measures[0], ranked_variants(study)
        if study.baseline is not None or len(ranked) < LEAST or "test" not in measure.name:
            return None
        spreads = [stdev(known) for each in ranked if len(known := each.measures[measure.name].known) > 1]
        evidence = {"variants": float(len(ranked))}
        if spreads:
            gain = fmean(spreads) * math.sqrt(2 * math.log(len(ranked)))
            evidence |= {"spread over seeds": fmean(spreads), "gain of choosing, at most": gain}
        text = f"the best of {len(ranked)} variants by {measure.title} looks better than it is"
        remedy = Remedy("choose by validation examples, and report test examples of the chosen one alone")
        return self.finding("note", 0.5, text, evidence, remedy)


@final
class OptimumAtEdge(Fault):
    """The best value of a setting is the first or the last of those that were tried."""

    kind = "optimum-at-edge"
    family = "evaluation"
    source = "log"
    looks_at = "the best trial of a sweep or variant of a study, beside the range of each setting"

    def examine(self, patient: Patient) -> Finding | None:
        if patient.sweep is not None:
            return self._of_sweep(patient)
        study = _study(patient)
        tried, ranked = settings_tried(study), ranked_variants(study)
        at_edge = [key for key, known in tried.items() if ranked and _is_edge(known, ranked[0].name)]
        if not tried:
            raise InapplicableError("no setting has three values or more, all others being equal")
        if not at_edge:
            return None
        key, known = at_edge[0], tried[at_edge[0]]
        best, side = (
            known[ranked[0].name],
            "highest" if known[ranked[0].name] == max(known.values()) else "lowest",
        )
        order = sorted(known, key=lambda name: known[name])
        means = [study.variant(name).measures[study.measures[0].name].mean or 0.0 for name in order]
        curve = Curve(key, study.measures[0].title, [known[name] for name in order], {"mean": means})
        text = f"{key} is best at {best:g}, the {side} value that was tried"
        return self.finding("warning", 0.8, text, {key: best}, _wider(key), curve)

    def _of_sweep(self, patient: Patient) -> Finding | None:
        sweep = patient.sweep
        assert sweep is not None
        if not sweep.edges:
            return None
        key = sweep.edges[0].split(" ", 1)[0]
        rows = sorted((each.parameters[key], each.value) for each in sweep.trials if _is_number(each, key))
        places, values = [float(x) for x, _ in rows], [float(y or 0) for _, y in rows]
        curve = Curve(key, sweep.metric.name, places, {"trials": values}) if rows else None
        evidence = {f"best {key}": float(sweep.best.parameters[key])} if sweep.best and rows else {}
        return self.finding("warning", 0.8, "; ".join(sweep.edges), evidence, _wider(key), curve)


def _wider(key: str) -> Remedy:
    return Remedy(
        f"search {key} further in that direction, until the best value has neighbours on both sides"
    )


def _is_number(trial: Any, key: str) -> bool:
    value = trial.parameters.get(key)
    return trial.value is not None and isinstance(value, int | float) and not isinstance(value, bool)


def _is_edge(known: Mapping[str, float], best: str) -> bool:
    return best in known and known[best] in (min(known.values()), max(known.values()))


def settings_tried(study: "StudyResult") -> dict[str, dict[str, float]]:
    """Numbers of the spec that alone differ among three variants or more: their values by variant."""
    flat = {each.name: dict(_leaves(each.spec)) for each in study.variants}
    found = {}
    for key in sorted({key for each in flat.values() for key, value in each.items() if _is_plain(value)}):
        groups: dict[str, dict[str, float]] = {}
        for name, leaves in flat.items():
            if _is_plain(leaves.get(key)):
                rest = repr(sorted((k, repr(v)) for k, v in leaves.items() if k != key))
                groups.setdefault(rest, {})[name] = float(leaves[key])
        largest = max(groups.values(), key=len)
        if len(set(largest.values())) >= LEAST:
            found[key] = largest
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leaves(spec: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    rows = list[tuple[str, Any]]()
    for key, value in spec.items():
        rows += _leaves(value, f"{path}{key}.") if isinstance(value, dict) else [(f"{path}{key}", value)]
    return rows


def _study(patient: Patient) -> "StudyResult":
    if patient.study is None:
        raise InapplicableError("it is not a study or a sweep")
    return patient.study


FAULTS = (SeedDecides, TestUsedToChoose, OptimumAtEdge)
"""Of a run they are looked for with all other kinds."""
