"""What a sweep seeks and when it gives a run up, in W&B's words and in those of the short form."""

from collections.abc import Mapping
from typing import Any, cast

from attnlab.errors import SpecError
from attnlab.studies.sweeps.names import metric_name
from attnlab.studies.sweeps.parts import GOALS, METHODS, Goal, Hyperband, Method, Metric
from attnlab.studies.sweeps.values import check_keys, expect, mapping, number, text, whole


def read_method(value: Any) -> Method:
    """How values are chosen."""
    expect(value in METHODS, "method", value, " or ".join(map(repr, METHODS)))
    return cast(Method, value)


def read_metric(value: Any) -> Metric:
    """W&B's ``metric``; without a goal it is minimized, as at W&B."""
    data = mapping("metric", value)
    foreign = ("impute", "impute_while_running")
    check_keys(data, ("name", "goal", "target"), where="metric.", foreign=foreign)
    if "name" not in data:
        raise SpecError("metric has no 'name', but it must name a measurement such as valid_exact_match")
    return Metric(
        name=metric_name(text("metric.name", data["name"])),
        goal=_goal("metric.goal", data.get("goal", "minimize")),
        target=number("metric.target", data["target"]) if "target" in data else None,
    )


def read_goal(value: Any) -> Metric:
    """The short form's ``goal: maximize valid_exact_match``."""
    words = text("goal", value).split()
    rule = "two words such as 'maximize valid_exact_match'"
    expect(len(words) == 2, "goal", value, rule)
    return Metric(name=metric_name(words[1]), goal=_goal("goal", words[0]))


def goal_notes(metric: Metric) -> tuple[str, ...]:
    """A search for the worst is taken at its word, but not in silence: W&B minimizes by default."""
    sense = "minimize" if metric.name.endswith("loss") else "maximize"
    if metric.goal == sense:
        return ()
    return (f"the goal is to {metric.goal} {metric.name}; the best would be to {sense} it",)


def read_early_terminate(value: Any) -> Hyperband:
    """W&B's ``early_terminate``: from ``min_iter`` upwards, or ``s`` times down from ``max_iter``."""
    data = mapping("early_terminate", value)
    check_keys(data, ("type", "min_iter", "max_iter", "s", "eta", "strict"), where="early_terminate.")
    kind, strict = data.get("type"), data.get("strict", False)
    expect(kind == "hyperband", "early_terminate.type", kind, "'hyperband'")
    expect(
        strict is False, "early_terminate.strict", strict, "false, since strict stopping is not supported"
    )
    factor = whole("early_terminate.eta", data.get("eta", 3), 2)
    last = whole("early_terminate.max_iter", data["max_iter"], 1) if "max_iter" in data else None
    if last is not None and "s" in data:
        return _downwards(last, whole("early_terminate.s", data["s"], 1), factor)
    if "min_iter" not in data:
        raise SpecError("early_terminate needs 'min_iter', or 'max_iter' and 's'")
    first = whole("early_terminate.min_iter", data["min_iter"], 1)
    expect(last is None or last > first, "early_terminate.max_iter", last, f"above min_iter, {first}")
    return Hyperband(min_epochs=first, max_epochs=last, factor=factor)


def early_terminate_notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    """W&B passes over ``min_iter`` where ``max_iter`` and ``s`` are given, and over ``s`` alone."""
    if "max_iter" in data and "s" in data:
        return (
            ("early_terminate.min_iter is not used: max_iter and s decide",) if "min_iter" in data else ()
        )
    return ("early_terminate.s is not used: it counts down from max_iter",) if "s" in data else ()


def read_prune(value: Any) -> Hyperband:
    """The short form's ``prune: {min_epochs: 1, factor: 3}``."""
    keys = {"min_epochs": 1, "max_epochs": 2, "factor": 2}
    data = mapping("prune", value)
    check_keys(data, keys, where="prune.")
    read = {key: whole(f"prune.{key}", data[key], keys[key]) for key in data}
    try:
        return Hyperband(**read)
    except SpecError as error:
        raise SpecError(f"prune: {error}") from error


def _goal(key: str, value: Any) -> Goal:
    expect(value in GOALS, key, value, " or ".join(map(repr, GOALS)))
    return cast(Goal, value)


def _downwards(last: int, times: int, factor: int) -> Hyperband:
    """W&B's brackets max_iter/eta, max_iter/eta^2, ...: s of them, as far as they are whole epochs."""
    expect(last >= factor, "early_terminate.max_iter", last, f"at least eta, {factor}")
    first = last
    while times > 0 and first >= factor:
        first, times = first // factor, times - 1
    return Hyperband(min_epochs=first, max_epochs=last, factor=factor)
