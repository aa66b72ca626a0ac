"""Schemas are those of the code, every file that is kept here fits its own, and a damaged one does not."""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest

from attnlab import registry
from attnlab.analysis.evaluate import Evaluation
from attnlab.errors import SpecError
from attnlab.runs import open_run
from attnlab.specs import Spec, from_json, to_json
from attnlab.specs.codec import later, unwritten
from attnlab.specs.schema import schema

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/schemas"
RUNS = [*(ROOT / "src/attnlab/zoo").glob("*/"), *(ROOT / "tests/forms").glob("run-*/*/")]
OLDER = [ROOT / f"src/attnlab/zoo/{name}/analysis/evaluate-test.json" for name in ("adder", "sorter")]


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text()))


def schema_of(path: Path) -> str:
    """Which schema a file is of, by its name."""
    if path.parent.name == "analysis":
        return f"analysis-{path.stem.partition('-')[0]}"
    return {"best.json": "spec"}.get(path.name, path.stem)


def kept() -> list[Path]:
    """Files of runs, studies, sweeps and ensembles that are shipped, recorded or of an older version."""
    folders = [path for each in RUNS for path in (each, each / "analysis") if path.is_dir()]
    forms = (ROOT / "tests/forms").glob("[es]*-1/*.json")
    return [
        *sorted(path for folder in folders for path in folder.glob("*.json")),
        *sorted((ROOT / "results").glob("*/study.json")),
        *sorted(forms),
    ]


def values(data: Any) -> Iterator[tuple[Any, str | int]]:
    """Each place in the JSON as what holds it and its key."""
    if isinstance(data, dict | list):
        for key, inner in list(data.items() if isinstance(data, dict) else enumerate(data)):
            yield data, key
            yield from values(inner)


def test_the_kept_schemas_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setattr(registry, "_tasks", {})  # without what other tests have registered
    made = importlib.import_module("schemas")
    assert {path.stem for path in FOLDER.glob("*.json")} == set(made.FORMATS)
    for name, each in made.FORMATS.items():
        text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
        assert text == made.text(each.schema()), f"{name}.json is out of date: python docs/schemas.py"
        jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", ["adder", "sorter"])
def test_what_an_older_version_found_is_measured_again(name: str) -> None:
    """Evaluations that lack what is measured now do not fit, and no command takes them for one."""
    run = open_run(f"zoo:{name}")
    assert not validator("analysis-evaluate").is_valid(run.analysis("evaluate-test"))
    assert run.kept("evaluate-test", Evaluation) is None


@pytest.mark.parametrize(
    "path",
    [path for path in kept() if path not in OLDER],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_what_is_kept_fits_its_schema(path: Path) -> None:
    validator(schema_of(path)).validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_line_of_metrics_fits_the_schema_of_a_line(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    check = validator("metrics-line")
    for line in lines:
        check.validate(json.loads(line))
    assert len(lines) > 3
    assert not check.is_valid({**json.loads(lines[0]), "event": []})
    assert not check.is_valid({"event": "step"})


PRINTED = {
    "data-status": "data-status", "gradcheck": "gradcheck", "grid-mean": "maps", "grid-show": "show",
    "positions-alibi": "positions", "adder-predict": "predict", "sorter-predict": "predict",
    "sorting-default-compare": "compare",
    "sorting-default-explain": "explain", "sorting-default-patterns": "patterns",
    "sorting-default-runs": "runs",
}  # fmt: skip
"""Recorded output of commands, and the command whose schema it fits."""


@pytest.mark.parametrize("name", PRINTED)
def test_what_commands_print_fits_its_schema(name: str) -> None:
    recorded = json.loads((ROOT / f"tests/golden/{name}.json").read_text(encoding="utf-8"))["stdout"]
    check = validator(f"json-{PRINTED[name]}")
    entries = recorded if isinstance(recorded, list) else [recorded]
    assert entries
    for entry in entries:
        check.validate(entry)
        first = next(iter(entry))
        assert not check.is_valid({**entry, first: [{"no": "such"}, [[None]]]})


WRONG: list[Any] = [[], {}, "x", True, None, 1.5]
LEAST = {
    "spec": 0.9,
    "manifest": 0.9,
    "summary": 0.7,
    "environment": 0.3,
    "study": 0.3,
    "analysis-evaluate": 0.5,
}
"""Of the places with a value of another kind, how many are noticed at least; some keys hold anything."""


@pytest.mark.parametrize("name", LEAST)
def test_a_value_of_another_kind_is_noticed(name: str) -> None:
    """As many places as there are get a value that fits no schema there; a few keys may hold anything."""
    path = next(path for path in kept() if schema_of(path) == name and path not in OLDER)
    data, check = json.loads(path.read_text(encoding="utf-8")), validator(name)
    noticed = []
    for place, key in list(values(data))[:200]:
        before, place[key] = place[key], [{"no": "such"}, [[None]]]
        noticed.append(not check.is_valid(data))
        place[key] = before
    assert check.is_valid(data)
    assert sum(noticed) / len(noticed) > LEAST[name]


def test_a_key_that_is_missing_or_unknown_is_noticed() -> None:
    spec = json.loads((ROOT / "src/attnlab/zoo/adder/spec.json").read_text())
    check = validator("spec")
    assert not check.is_valid({**spec, "sead": 1})
    assert not check.is_valid({name: each for name, each in spec.items() if name != "task"})
    assert not check.is_valid({**spec, "model": {**spec["model"], "kind": "none"}})
    assert check.is_valid({**spec, "task": {"kind": "of-somebody-else", "anything": [1]}})


@dataclass(frozen=True)
class _Leaf:
    kind = "leaf"
    name: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class _Tree:
    count: int
    pair: tuple[int, float]
    many: dict[str, list[str | None]]
    leaf: _Leaf | None
    hidden: int = unwritten(0)
    class_: float | int = later(0)


def test_a_schema_says_what_the_codec_writes() -> None:
    found = schema(_Tree, title="t", extra=False)
    written = to_json(_Tree(3, (1, 2.5), {"x": ["y", None]}, _Leaf("b")))
    check = jsonschema.Draft202012Validator(found)
    assert check.is_valid(written)
    assert found["$defs"]["Tree"]["required"] == ["count", "pair", "many", "leaf"]
    assert list(found["$defs"]["Tree"]["properties"]) == ["count", "pair", "many", "leaf", "class"]
    for change in (
        {"count": 1.5},
        {"pair": [1]},
        {"pair": [1, 2, 3]},
        {"many": {"x": [1]}},
        {"leaf": {"name": "a"}},
        {"leaf": {"kind": "leaf", "name": "c"}},
        {"class": "x"},
        {"hidden": 1},
    ):
        assert not check.is_valid({**written, **change}), change
    assert check.is_valid({**written, "leaf": None, "class": 2})
    assert jsonschema.Draft202012Validator(schema(_Tree, title="t", extra=True)).is_valid(
        {**written, "more": 1}
    )


def test_what_fits_the_schema_of_specs_is_what_the_codec_reads() -> None:
    """Up to rules on values, both refuse the same."""
    spec, check = json.loads((ROOT / "src/attnlab/zoo/adder/spec.json").read_text()), validator("spec")
    assert to_json(from_json(Spec, spec)) == spec
    for place, key in list(values(spec)):
        for wrong in WRONG:
            before, place[key] = place[key], wrong
            if not check.is_valid(spec):
                with pytest.raises(SpecError, match="spec"):
                    from_json(Spec, spec)
            place[key] = before
