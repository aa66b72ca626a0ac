"""A run in a few lines: task, model, size, accuracy, and how it was trained."""

from dataclasses import dataclass

from attnlab.analysis.statistics import percent
from attnlab.display import duration
from attnlab.results import Part, Table
from attnlab.runs import RunFolder
from attnlab.specs import Spec, to_json, write_variant


@dataclass(frozen=True)
class Right:
    """The share of examples that are wholly right."""

    exact_match: float


@dataclass(frozen=True)
class Tested:
    """Of an evaluation."""

    exact_match: float
    examples: int


@dataclass(frozen=True)
class Cutting:
    """An evaluation before heads were taken out, and one after."""

    before: Right
    after: Right


@dataclass(frozen=True)
class Cut:
    """Of a pruned run."""

    kept: list[str]
    heads: int
    parent: str
    test: Cutting


def run_card(run: RunFolder) -> list[Part]:
    spec, summary = run.spec(), run.summary()
    used = {} if summary is None else summary.get("examples") or {}  # a small task has fewer than asked for
    rows = [("task", _words(spec, "task", used)), ("model", _words(spec, "model", {}))]
    if summary is None:
        done = len(run.metrics().epochs)
        rows.append(("training", f"stopped after {done} of {spec.training.epochs} epochs; see resume()"))
    else:
        rows += [
            ("parameters", f"{summary['parameters']:,}"),
            ("validation", f"{percent(summary['valid']['exact_match'])} correct"),
            *_tested(run),
            *_pruned(run),
            (
                "trained",
                f"{summary['epochs']} epochs, {summary['steps']:,} steps in "
                f"{duration(summary['seconds'])}, seed {spec.seed}",
            ),
        ]
    rows.append(("recipe", _recipe(spec)))
    return [Table(run.called, ("", ""), tuple(rows))]


def _tested(run: RunFolder) -> list[tuple[str, str]]:
    """What a kept evaluation says of the test examples."""
    kept = run.kept_part("evaluate-test", Tested)
    return [] if kept is None else [("test", f"{percent(kept.exact_match)} of {kept.examples:,} correct")]


def _pruned(run: RunFolder) -> list[tuple[str, str]]:
    """What was cut away from the run that it was pruned from."""
    kept = run.kept_part("prune", Cut)
    if kept is None:
        return []
    right = " and ".join(percent(each.exact_match) for each in (kept.test.before, kept.test.after))
    return [
        (
            "pruned",
            f"{len(kept.kept)} of {kept.heads} heads of {kept.parent} kept; {right} of test "
            "examples correct before and after",
        )
    ]


def _words(spec: Spec, group: str, known: dict[str, int]) -> str:
    """The kind, and the settings that are plain values; what is ``known`` takes the place of what was asked
    for.
    """
    data = to_json(getattr(spec, group)) | known
    plain = ", ".join(
        f"{key} {value}" for key, value in data.items() if key != "kind" and isinstance(value, int | str)
    )
    return f"{data['kind']}: {plain}"


def _recipe(spec: Spec) -> str:
    training = spec.training
    return (
        f"{write_variant(training.optimiser)}, rate {training.lr:g}, {write_variant(training.schedule)}, "
        f"batch {training.batch}"
    )
