"""W&B's sweep files, read as they stand.

What steers W&B's service (program, project, entity) is noted and passed over; what would change
the search and is not to be had here is refused by name, never ignored.
"""

import re
from collections.abc import Mapping
from typing import Any

from attnlab.errors import SpecError
from attnlab.studies.sweeps.goal import (
    early_terminate_notes,
    goal_notes,
    read_early_terminate,
    read_method,
    read_metric,
)
from attnlab.studies.sweeps.names import by_spec_key
from attnlab.studies.sweeps.parameters import flat_parameters, read_parameter
from attnlab.studies.sweeps.parts import Method, Metric, SweepFile
from attnlab.studies.sweeps.values import brief, expect, mapping, plain, text, whole

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
