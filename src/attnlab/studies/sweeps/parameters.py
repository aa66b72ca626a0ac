"""Parameters of W&B's sweep files: ``{min: 0, max: 0.3}`` and the like, as distributions."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import SpecError, nearest
from attnlab.studies.sweeps.ranges import EXPONENT
from attnlab.studies.sweeps.space import (
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
from attnlab.studies.sweeps.values import expect, mapping, number, option, plain, whole

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
            return _uniform(data)
        case "q_uniform":
            return Stepped(of=_uniform(data), step=number("q", data.get("q", 1.0)))
        case "log_uniform":
            return _log_uniform_of_exponents(_uniform(data))
        case "log_uniform_values":
            return _log_uniform(data)
        case "q_log_uniform_values":
            return Stepped(of=_log_uniform(data), step=number("q", data.get("q", 1.0)))
        case "normal":
            return Normal(
                mu=number("mu", data.get("mu", 0.0)), sigma=number("sigma", data.get("sigma", 1.0))
            )
        case _:
            return LogNormal(
                mu=number("mu", data.get("mu", 0.0)), sigma=number("sigma", data.get("sigma", 1.0))
            )


def read_options(values: Any) -> tuple[Any, ...]:
    """A list of values for a key of the spec."""
    expect(isinstance(values, list), "values", values, "a list")
    return tuple(option(f"values[{place}]", value) for place, value in enumerate(values))


def _probabilities(data: Mapping[str, Any]) -> tuple[float, ...]:
    given = data["probabilities"]
    expect(isinstance(given, list), "probabilities", given, "a list of numbers")
    return tuple(number(f"probabilities[{place}]", value) for place, value in enumerate(given))


def _uniform(data: Mapping[str, Any]) -> Uniform:
    return Uniform(low=number("min", data["min"]), high=number("max", data["max"]))


def _log_uniform(data: Mapping[str, Any]) -> LogUniform:
    return LogUniform(low=number("min", data["min"]), high=number("max", data["max"]))


def _log_uniform_of_exponents(exponents: Uniform) -> LogUniform:
    for key, exponent in (("min", exponents.low), ("max", exponents.high)):
        rule = f"from -{EXPONENT} to 36 as a power of e; log_uniform_values takes the values themselves"
        expect(-EXPONENT <= exponent <= 36, key, exponent, rule)
    return LogUniform(low=math.exp(exponents.low), high=math.exp(exponents.high))
