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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attnlab.errors import SpecError, nearest
from attnlab.studies.sweeps.goal import (
    by_spec_key,
    early_terminate_notes,
    goal_notes,
    read_early_terminate,
    read_goal,
    read_method,
    read_metric,
    read_prune,
)
from attnlab.studies.sweeps.parts import Method, Metric, SweepFile
from attnlab.studies.sweeps.space import (
    EXPONENT,
    Choice,
    Distribution,
    Fixed,
    Integers,
    LogNormal,
    LogUniform,
    Normal,
    Stepped,
    Uniform,
    WeightedChoice,
)
from attnlab.studies.sweeps.values import (
    brief,
    check_keys,
    expect,
    mapping,
    number,
    option,
    plain,
    read_yaml,
    text,
    whole,
)

_RANGE = ("min", "max")
_KEYS = {
    "constant": ("value",),
    "categorical": ("values",),
    "categorical_w_probabilities": ("values", "probabilities"),
    "int_uniform": _RANGE,
    "uniform": _RANGE,
    "q_uniform": (*_RANGE, "q"),
    "log_uniform": _RANGE,
    "log_uniform_values": _RANGE,
    "q_log_uniform_values": (*_RANGE, "q"),
    "normal": ("mu", "sigma"),
    "log_normal": ("mu", "sigma"),
}
_FOREIGN = (
    *("inv_log_uniform", "inv_log_uniform_values", "q_log_uniform"),
    *("q_normal", "q_log_normal", "beta", "q_beta"),
)
_OPTIONAL = ("q", "mu", "sigma")
Scale = TypeVar("Scale", Uniform, LogUniform)
_ALL_KEYS = {"distribution", *(key for keys in _KEYS.values() for key in keys)}


def flat_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name; those inside others get dotted names, as at W&B."""
    flat: dict[str, Any] = {}
    for name, parameter in _flat(parameters, ""):
        if name in flat:
            raise SpecError(f"parameters.{name} is given twice, once inside another")
        flat[name] = parameter
    return flat


def read_parameter(name: str, data: Any) -> Distribution:
    """One parameter; what is not given follows from what is, by W&B's rules."""
    try:
        expect(isinstance(data, dict), "it", data, "an object with 'value', 'values', or 'min' and 'max'")
        distribution = _distribution(data)
        _check_keys(distribution, data)
        return _build(distribution, data)
    except SpecError as error:
        raise SpecError(f"parameters.{name}: {error}") from error


def _flat(parameters: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, inner in parameters.items():
        path = prefix + name
        if not isinstance(inner, dict) or "parameters" not in inner:
            yield path, inner
            continue
        for key in inner:
            if key != "parameters":
                raise SpecError(f"parameters.{path} has both 'parameters' and {key!r}")
        yield from _flat(mapping(f"parameters.{path}.parameters", inner["parameters"]), f"{path}.")


def _distribution(data: Mapping[str, Any]) -> str:
    """Its name; without one: values are categorical, two integers int_uniform, other bounds uniform."""
    for key in data:
        if key not in _ALL_KEYS:
            raise SpecError(f"{key!r} is no key of a parameter{nearest(key, _ALL_KEYS)}")
    if "distribution" in data:
        return _known(data["distribution"])
    if "value" in data:
        return "constant"
    if "values" in data:
        return "categorical_w_probabilities" if "probabilities" in data else "categorical"
    if "min" in data and "max" in data:
        return "int_uniform" if all(type(plain(data[key])) is int for key in _RANGE) else "uniform"
    raise SpecError("it needs 'value', 'values', 'min' and 'max', or a 'distribution'")


def _known(name: Any) -> str:
    if isinstance(name, str) and name in _FOREIGN:
        raise SpecError(f"W&B's distribution {name!r} is not supported; supported: {', '.join(_KEYS)}")
    expect(isinstance(name, str), "distribution", name, "text")
    if name not in _KEYS:
        raise SpecError(f"{name!r} is no distribution{nearest(name, _KEYS)}")
    return str(name)


def _check_keys(distribution: str, data: Mapping[str, Any]) -> None:
    taken = _KEYS[distribution]
    for key in data:
        if key not in (*taken, "distribution"):
            raise SpecError(f"{key!r} does not go with {distribution!r}, which takes {', '.join(taken)}")
    for key in taken:
        if key not in data and key not in _OPTIONAL:
            raise SpecError(f"{distribution!r} needs {key!r}")


def _build(distribution: str, data: Mapping[str, Any]) -> Distribution:
    match distribution:
        case "constant":
            return Fixed(value=option("value", data["value"]))
        case "categorical":
            return Choice(options=read_options(data["values"]))
        case "categorical_w_probabilities":
            return WeightedChoice(options=read_options(data["values"]), probabilities=_probabilities(data))
        case "int_uniform":
            return Integers(low=whole("min", data["min"]), high=whole("max", data["max"]))
        case "uniform":
            return _between(Uniform, data)
        case "q_uniform":
            return Stepped(of=_between(Uniform, data), step=number("q", data.get("q", 1.0)))
        case "log_uniform":
            return _log_uniform_of_exponents(_between(Uniform, data))
        case "log_uniform_values":
            return _between(LogUniform, data)
        case "q_log_uniform_values":
            return Stepped(of=_between(LogUniform, data), step=number("q", data.get("q", 1.0)))
        case _:
            kind = Normal if distribution == "normal" else LogNormal
            mu, sigma = number("mu", data.get("mu", 0.0)), number("sigma", data.get("sigma", 1.0))
            return kind(mu=mu, sigma=sigma)


def read_options(values: Any) -> tuple[Any, ...]:
    expect(isinstance(values, list), "values", values, "a list")
    return tuple(option(f"values[{place}]", value) for place, value in enumerate(values))


def _probabilities(data: Mapping[str, Any]) -> tuple[float, ...]:
    given = data["probabilities"]
    expect(isinstance(given, list), "probabilities", given, "a list of numbers")
    return tuple(number(f"probabilities[{place}]", value) for place, value in enumerate(given))


def _between(kind: type[Scale], data: Mapping[str, Any]) -> Scale:
    return kind(low=number("min", data["min"]), high=number("max", data["max"]))


def _log_uniform_of_exponents(exponents: Uniform) -> LogUniform:
    for key, exponent in (("min", exponents.low), ("max", exponents.high)):
        rule = f"from -{EXPONENT} to 36 as a power of e; log_uniform_values takes the values themselves"
        expect(-EXPONENT <= exponent <= 36, key, exponent, rule)
    return LogUniform(low=math.exp(exponents.low), high=math.exp(exponents.high))


WANDB_KEYS = (
    *("program", "project", "entity", "name", "description", "command"),
    *("method", "metric", "parameters", "early_terminate", "run_cap"),
)
FOREIGN_KEYS = ("apiVersion", "controller", "image_uri", "job", "kind", "launch", "metrics", "scheduler")
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
            raise SpecError(f"the file has no {key!r}; W&B's form needs 'method' and 'parameters'")
    for key in ("name", *_OFFLINE):
        if key in data:
            text(key, data[key])
    _check_command(data)
    raw = flat_parameters(mapping("parameters", data["parameters"]))
    method = read_method(data["method"])
    metric = _metric(data, method)
    return SweepFile(
        name=data.get("name", name),
        method=method,
        metric=metric,
        parameters=by_spec_key({key: read_parameter(key, value) for key, value in raw.items()}),
        hyperband=read_early_terminate(data["early_terminate"]) if "early_terminate" in data else None,
        count=whole("run_cap", data["run_cap"], 1) if "run_cap" in data else None,
        settings={},
        notes=(*_notes(data, raw), *goal_notes(metric)),
    )


def _metric(data: Mapping[str, Any], method: Method) -> Metric:
    """W&B needs a metric for bayes and for early_terminate; else it only says which run is best."""
    if "metric" in data:
        return read_metric(data["metric"])
    needs = {"method 'bayes'": method == "bayes", "early_terminate": "early_terminate" in data}
    for what, does in needs.items():
        if does:
            raise SpecError(f"the file has no 'metric', but {what} needs one")
    return Metric()


def _check_command(data: Mapping[str, Any]) -> None:
    """A command that only starts the program says nothing; any other word may change what is trained."""
    command = data.get("command", [])
    expect(isinstance(command, list), "command", command, "a list of words")
    for word in command:
        expect(isinstance(word, str), "a word of command", word, "text")
        if word not in _MACROS and word != data.get("program") and not _PYTHON.fullmatch(word):
            raise SpecError(
                f"the command holds {brief(word)}, which attnlab cannot follow; set a parameter instead"
            )


def _notes(data: Mapping[str, Any], raw: Mapping[str, Any]) -> list[str]:
    notes = [f"{key} {data[key]} {fate}" for key, fate in _OFFLINE.items() if key in data]
    if "metric" not in data:
        notes.append("no metric is given: the best run is that of the largest valid_exact_match")
    notes += early_terminate_notes(data.get("early_terminate", {}))
    for name, parameter in raw.items():
        # The usual slip: min 0.0001 and max 0.1 are meant as values, but as powers of e they are about 1.
        if parameter.get("distribution") == "log_uniform" and plain(parameter["min"]) > 0:
            notes.append(
                f"parameters.{name}: log_uniform takes powers of e, so that min and max are "
                f"e^{parameter['min']} and e^{parameter['max']}; log_uniform_values takes values"
            )
    return notes


def read_sweep_file(path: Path) -> SweepFile:
    """The sweep that a YAML or JSON file describes; what is wrong with it is one sentence."""
    try:
        return read_sweep(read_yaml(path), path.stem)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def read_sweep(data: Mapping[str, Any], name: str) -> SweepFile:
    """The same from plain values, called ``name`` unless they say otherwise."""
    short = "search" in data
    mine, other = (SHORT_KEYS, WANDB_KEYS) if short else (WANDB_KEYS, SHORT_KEYS)
    for key in data:
        if key in other and key not in mine:
            which = (
                "of W&B's form, which has no 'search'"
                if short
                else "of the short form, which needs 'search'"
            )
            raise SpecError(f"{key!r} is a key {which}")
    check_keys(data, (*mine, "search"), foreign=FOREIGN_KEYS)
    expect(isinstance(data.get("description", ""), str), "description", data.get("description"), "text")
    return read_short(data, name) if short else read_wandb(data, name)


SHORT_KEYS = (
    *("name", "description", "task", "preset", "method", "goal"),
    *("set", "search", "prune", "count"),
)
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_WRITTEN = re.compile(rf"(log\s+)?({_NUMBER})\s*\.\.\s*({_NUMBER})", re.ASCII)


def read_short(data: Mapping[str, Any], name: str) -> SweepFile:
    """A file in the short form; ``name`` is what it is called if it does not say."""
    words = {"name": name, "task": "addition", "preset": "default"}
    said = {key: text(key, data.get(key, default)) for key, default in words.items()}
    metric = read_goal(data.get("goal", "maximize valid_exact_match"))
    search = mapping("search", data["search"])
    settings = mapping("set", data.get("set", {}))
    return SweepFile(
        name=said["name"],
        method=read_method(data.get("method", "bayes")),
        metric=metric,
        parameters=by_spec_key({key: _read_range(key, value) for key, value in search.items()}),
        hyperband=read_prune(data["prune"]) if "prune" in data else None,
        count=whole("count", data["count"], 1) if "count" in data else None,
        task=said["task"],
        preset=said["preset"],
        settings=by_spec_key({key: option(f"set.{key}", value) for key, value in settings.items()}),
        notes=goal_notes(metric),
    )


def _read_range(name: str, value: Any) -> Distribution:
    try:
        if isinstance(value, list):
            return Choice(options=read_options(value))
        found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
        if found:
            return _range(*found.groups())
    except SpecError as error:
        raise SpecError(f"search.{name}: {error}") from error
    rule = "a list of values or a range such as 'log 1e-4 .. 1e-2'; what stays the same belongs to 'set'"
    raise SpecError(f"search.{name} is {brief(value)}, but it must be {rule}")


def _range(log: str | None, low: str, high: str) -> Distribution:
    integers = all(type(plain(bound)) is int for bound in (low, high))
    if integers and not log:
        return Integers(low=whole("min", low), high=whole("max", high))
    scale = LogUniform if log else Uniform
    reals = scale(low=number("min", low), high=number("max", high))
    return Stepped(of=reals) if integers else reals
