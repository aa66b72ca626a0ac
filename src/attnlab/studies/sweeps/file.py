"""Sweep files: W&B's form as it stands, or the short form, recognised by its key ``search``:

    task: addition
    search:
      training.lr: log 1e-4 .. 1e-2
      model.encoder_layers: 1 .. 4
      model.positions: [learned, "rotary:base=500", none]

Two whole numbers stand for whole numbers, on a log scale too; 1.0 .. 4.0 are real ones.

Of W&B's form, what steers its service (program, project, entity) is noted and passed over; what would
change the search and is not to be had here is refused by name, never ignored.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attnlab.errors import SpecError, brief, nearest
from attnlab.specs import require
from attnlab.studies.sweeps import space
from attnlab.studies.sweeps.parts import (
    GOALS,
    METHODS,
    Hyperband,
    Method,
    Metric,
    SweepFile,
    by_spec_key,
    metric_name,
)
from attnlab.studies.sweeps.values import (
    check_keys,
    mapping,
    number,
    one_of,
    option,
    plain,
    read_yaml,
    several,
    text,
    whole,
)


def read_sweep_file(path: Path) -> SweepFile:
    """The sweep that a YAML or JSON file describes; what is wrong with it is one sentence."""
    try:
        return read_sweep(read_yaml(path), path.stem)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


SHORT_KEYS = (
    *("name", "description", "task", "preset", "method", "goal"),
    *("set", "search", "prune", "count"),
)
WANDB_KEYS = (
    *("program", "project", "entity", "name", "description", "command"),
    *("method", "metric", "parameters", "early_terminate", "run_cap"),
)
FOREIGN_KEYS = ("apiVersion", "controller", "image_uri", "job", "kind", "launch", "metrics", "scheduler")


def read_sweep(data: Mapping[str, Any], name: str) -> SweepFile:
    """The same from plain values, called ``name`` unless they say otherwise."""
    short = "search" in data
    mine, other = (SHORT_KEYS, WANDB_KEYS) if short else (WANDB_KEYS, SHORT_KEYS)
    which = "of W&B's form, which has no 'search'" if short else "of the short form, which needs 'search'"
    for key in data:
        if key in other and key not in mine:
            raise SpecError(f"{brief(key)} is a key {which}")
    check_keys(data, (*mine, "search"), foreign=FOREIGN_KEYS)
    require(isinstance(data.get("description", ""), str), "description", data.get("description"), "text")
    return read_short(data, name) if short else read_wandb(data, name)


_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_WRITTEN = re.compile(rf"(log\s+)?({_NUMBER})\s*\.\.\s*({_NUMBER})", re.ASCII)


def read_short(data: Mapping[str, Any], name: str) -> SweepFile:
    """A file in the short form; ``name`` is what it is called if it does not say."""
    words = {"name": name, "task": "addition", "preset": "default"}
    said = {key: text(key, data.get(key, default)) for key, default in words.items()}
    metric = _read_goal(data.get("goal", "maximize valid_exact_match"))
    search = mapping("search", data["search"])
    settings = mapping("set", data.get("set", {}))
    return SweepFile(
        method=one_of("method", data.get("method", "bayes"), METHODS),
        metric=metric,
        parameters=by_spec_key(
            {key: read_parameter(f"search.{key}", _written(key, value)) for key, value in search.items()}
        ),
        hyperband=_read_prune(data["prune"]) if "prune" in data else None,
        count=whole("count", data["count"], 1) if "count" in data else None,
        settings=by_spec_key({key: option(f"set.{key}", value) for key, value in settings.items()}),
        notes=_goal_notes(metric),
        **said,
    )


def _written(name: str, value: Any) -> dict[str, Any]:
    """What W&B's form has for a list of values, or for a range such as ``log 1e-4 .. 1e-2``."""
    if isinstance(value, list):
        return {"values": value}
    found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        rule = (
            "a list of values or a range such as 'log 1e-4 .. 1e-2'; what stays the same belongs to 'set'"
        )
        raise SpecError(f"search.{name} is {brief(value)}, but it must be {rule}")
    log, low, high = found.groups()
    ends = {"min": low, "max": high}
    if not log:
        return ends
    return {**ends, "distribution": f"{'q_' if _are_whole(ends) else ''}log_uniform_values"}


def _read_goal(value: Any) -> Metric:
    """``goal: maximize valid_exact_match``."""
    words = text("goal", value).split()
    require(len(words) == 2, "goal", value, "two words such as 'maximize valid_exact_match'")
    return Metric(name=metric_name(words[1]), goal=one_of("goal", words[0], GOALS))


def _read_prune(value: Any) -> Hyperband:
    """``prune: {min_epochs: 1, factor: 3}``."""
    keys = {"min_epochs": 1, "max_epochs": 2, "factor": 2}
    data = mapping("prune", value)
    check_keys(data, keys, where="prune.")
    read = {key: whole(f"prune.{key}", data[key], keys[key]) for key in data}
    try:
        return Hyperband(**read)
    except SpecError as error:
        raise SpecError(f"prune: {error}") from error


def _goal_notes(metric: Metric) -> tuple[str, ...]:
    """A search for the worst is taken at its word, but not in silence: W&B minimizes by default."""
    sense = "minimize" if metric.name.endswith("loss") else "maximize"
    if metric.goal == sense:
        return ()
    return (f"the goal is to {metric.goal} {metric.name}; the best would be to {sense} it",)


_OFFLINE = {
    "program": "is not run: attnlab trains",
    "project": "is not used: runs stay on this machine",
    "entity": "is not used: runs stay on this machine",
}
_MACROS = (
    *("${env}", "${interpreter}", "${program}", "${args}", "${args_no_hyphens}", "${args_no_equals}"),
    *("${args_no_boolean_flags}", "${args_json}", "${args_json_file}", "/usr/bin/env"),
)
_PYTHON = re.compile(r"(\S*/)?python[\d.]*")


def read_wandb(data: Mapping[str, Any], name: str) -> SweepFile:
    """A file in W&B's form; ``name`` is what it is called if it does not say."""
    for key in ("method", "parameters"):
        if key not in data:
            raise SpecError(f"the file has no {brief(key)}; W&B's form needs 'method' and 'parameters'")
    for key in ("name", *_OFFLINE):
        if key in data:
            text(key, data[key])
    _check_command(data)
    raw = _flat(mapping("parameters", data["parameters"]))
    method = one_of("method", data["method"], METHODS)
    metric = _read_metric(data, method)
    return SweepFile(
        name=data.get("name", name),
        method=method,
        metric=metric,
        parameters=by_spec_key(
            {key: read_parameter(f"parameters.{key}", value) for key, value in raw.items()}
        ),
        hyperband=_read_early_terminate(data["early_terminate"]) if "early_terminate" in data else None,
        count=whole("run_cap", data["run_cap"], 1) if "run_cap" in data else None,
        settings={},
        notes=(*_notes(data, raw), *_goal_notes(metric)),
    )


def _check_command(data: Mapping[str, Any]) -> None:
    """A command that only starts the program says nothing; any other word may change what is trained."""
    command = data.get("command", [])
    require(isinstance(command, list), "command", command, "a list of words")
    for word in command:
        require(isinstance(word, str), "a word of command", word, "text")
        if word not in _MACROS and word != data.get("program") and not _PYTHON.fullmatch(word):
            raise SpecError(
                f"the command holds {brief(word)}, which attnlab cannot follow; set a parameter instead"
            )


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Parameters by name; those inside others get dotted names, as at W&B."""
    flat: dict[str, Any] = {}
    for name, inner in parameters.items():
        path = prefix + name
        found = {path: inner}
        if isinstance(inner, dict) and "parameters" in inner:
            for key in inner:
                if key != "parameters":
                    raise SpecError(f"parameters.{path} has both 'parameters' and {brief(key)}")
            found = _flat(mapping(f"parameters.{path}.parameters", inner["parameters"]), f"{path}.")
        if twice := found.keys() & flat.keys():
            raise SpecError(f"parameters.{min(twice)} is given twice, once inside another")
        flat |= found
    return flat


def _read_metric(file: Mapping[str, Any], method: Method) -> Metric:
    """W&B needs a metric for bayes and for early_terminate; else it only says which run is best. Without
    a goal it is minimized, as at W&B.
    """
    if "metric" not in file:
        needs = {"method 'bayes'": method == "bayes", "early_terminate": "early_terminate" in file}
        for what, does in needs.items():
            if does:
                raise SpecError(f"the file has no 'metric', but {what} needs one")
        return Metric()
    data = mapping("metric", file["metric"])
    foreign = ("impute", "impute_while_running")
    check_keys(data, ("name", "goal", "target"), where="metric.", foreign=foreign)
    if "name" not in data:
        raise SpecError("metric has no 'name', but it must name a measurement such as valid_exact_match")
    return Metric(
        name=metric_name(text("metric.name", data["name"])),
        goal=one_of("metric.goal", data.get("goal", "minimize"), GOALS),
        target=number("metric.target", data["target"]) if "target" in data else None,
    )


def _read_early_terminate(value: Any) -> Hyperband:
    """From ``min_iter`` upwards, or ``s`` times down from ``max_iter``: W&B's brackets are then
    max_iter/eta, max_iter/eta^2, ..., as far as they are whole epochs.
    """
    data = mapping("early_terminate", value)
    check_keys(data, ("type", "min_iter", "max_iter", "s", "eta", "strict"), where="early_terminate.")

    def read(key: str, least: int = 1) -> int | None:
        return whole(f"early_terminate.{key}", data[key], least) if key in data else None

    kind, strict = data.get("type"), data.get("strict", False)
    require(kind == "hyperband", "early_terminate.type", kind, "'hyperband'")
    rule = "false, since strict stopping is not supported"
    require(strict is False, "early_terminate.strict", strict, rule)
    factor, last = read("eta", 2) or 3, read("max_iter")
    if last is not None and (times := read("s")) is not None:
        require(last >= factor, "early_terminate.max_iter", last, f"at least eta, {factor}")
        first = last
        while times > 0 and first >= factor:
            first, times = first // factor, times - 1
    elif (least := read("min_iter")) is not None:
        first = least
        require(last is None or last > first, "early_terminate.max_iter", last, f"above min_iter, {first}")
    else:
        raise SpecError("early_terminate needs 'min_iter', or 'max_iter' and 's'")
    return Hyperband(min_epochs=first, max_epochs=last, factor=factor)


def _notes(data: Mapping[str, Any], raw: Mapping[str, Any]) -> list[str]:
    notes = [f"{key} {data[key]} {fate}" for key, fate in _OFFLINE.items() if key in data]
    if "metric" not in data:
        notes.append("no metric is given: the best run is that of the largest valid_exact_match")
    bounds = data.get("early_terminate", {}).keys()  # W&B passes over some of them, too
    if bounds >= {"max_iter", "s", "min_iter"}:
        notes.append("early_terminate.min_iter is not used: max_iter and s decide")
    if "s" in bounds and "max_iter" not in bounds:
        notes.append("early_terminate.s is not used: it counts down from max_iter")
    for name, parameter in raw.items():
        # The usual slip: min 0.0001 and max 0.1 are meant as values, but as powers of e they are about 1.
        if parameter.get("distribution") == "log_uniform" and plain(parameter["min"]) > 0:
            notes.append(
                f"parameters.{name}: log_uniform takes powers of e, so that min and max are "
                f"e^{parameter['min']} and e^{parameter['max']}; log_uniform_values takes values"
            )
    return notes


def _powers_of_e(*, low: float, high: float) -> space.LogUniform:
    space.Uniform(low=low, high=high)  # refuses what is no range
    rule = f"from -{space.EXPONENT} to 36 as a power of e; log_uniform_values takes the values themselves"
    for key, exponent in (("min", low), ("max", high)):
        require(-space.EXPONENT <= exponent <= 36, key, exponent, rule)
    return space.LogUniform(low=math.exp(low), high=math.exp(high))


def _stepped(scale: type[space.Uniform | space.LogUniform]) -> Callable[..., space.Stepped]:
    return lambda *, low, high, step=1.0: space.Stepped(of=scale(low=low, high=high), step=step)


_Readers = dict[str, Callable[[str, Any], Any]]
_ENDS: _Readers = {"min": number, "max": number}
_NORMAL: _Readers = {"mu": number, "sigma": number}
_options = partial(several, option, "a list")
_numbers = partial(several, number, "a list of numbers")
_OPTIONAL = ("q", "mu", "sigma")
_FIELDS = {"min": "low", "max": "high", "q": "step", "values": "options"}
"""What our distributions call W&B's keys."""
_DISTRIBUTIONS: dict[str, tuple[Callable[..., space.Distribution], _Readers]] = {
    "constant": (space.Fixed, {"value": option}),
    "categorical": (space.Choice, {"values": _options}),
    "categorical_w_probabilities": (space.WeightedChoice, {"values": _options, "probabilities": _numbers}),
    "int_uniform": (space.Integers, {"min": whole, "max": whole}),
    "uniform": (space.Uniform, _ENDS),
    "q_uniform": (_stepped(space.Uniform), {**_ENDS, "q": number}),
    "log_uniform": (_powers_of_e, _ENDS),
    "log_uniform_values": (space.LogUniform, _ENDS),
    "q_log_uniform_values": (_stepped(space.LogUniform), {**_ENDS, "q": number}),
    "normal": (space.Normal, _NORMAL),
    "log_normal": (space.LogNormal, _NORMAL),
}
_FOREIGN = (
    *("inv_log_uniform", "inv_log_uniform_values", "q_log_uniform"),
    *("q_normal", "q_log_normal", "beta", "q_beta"),
)
_KEYS = {"distribution", *(key for _, readers in _DISTRIBUTIONS.values() for key in readers)}


def read_parameter(where: str, data: Any) -> space.Distribution:
    """One parameter; what is not given follows from what is, by W&B's rules."""
    try:
        require(isinstance(data, dict), "it", data, "an object with 'value', 'values', or 'min' and 'max'")
        distribution = _distribution(data)
        build, readers = _DISTRIBUTIONS[distribution]
        for key in data:
            if key not in (*readers, "distribution"):
                takes = ", ".join(readers)
                raise SpecError(f"{brief(key)} does not go with {brief(distribution)}, which takes {takes}")
        for key in readers:
            if key not in (*data, *_OPTIONAL):
                raise SpecError(f"{brief(distribution)} needs {brief(key)}")
        given = {key: read(key, data[key]) for key, read in readers.items() if key in data}
        return build(**{_FIELDS.get(key, key): value for key, value in given.items()})
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from error


def _distribution(data: Mapping[str, Any]) -> str:
    """Its name; without one: values are categorical, two integers int_uniform, other bounds uniform."""
    for key in data:
        if key not in _KEYS:
            raise SpecError(f"{brief(key)} is not a key of a parameter{nearest(key, _KEYS)}")
    if "distribution" in data:
        name = data["distribution"]
        require(isinstance(name, str), "distribution", name, "text")
        if name in _FOREIGN:
            known = ", ".join(_DISTRIBUTIONS)
            raise SpecError(f"W&B's distribution {brief(name)} is not supported; supported: {known}")
        if name not in _DISTRIBUTIONS:
            raise SpecError(f"unknown distribution {brief(name)}{nearest(name, _DISTRIBUTIONS)}")
        return str(name)
    if "value" in data:
        return "constant"
    if "values" in data:
        return "categorical_w_probabilities" if "probabilities" in data else "categorical"
    if data.keys() >= _ENDS.keys():
        return "int_uniform" if _are_whole(data) else "uniform"
    raise SpecError("it needs 'value', 'values', 'min' and 'max', or a 'distribution'")


def _are_whole(ends: Mapping[str, Any]) -> bool:
    return all(type(plain(ends[key])) is int for key in _ENDS)
