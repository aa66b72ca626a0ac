"""What is said about sweep files that are none: one sentence with the thing, its value and the rule."""

from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import SpecError
from attnlab.studies.sweeps.file import read_sweep, read_sweep_file
from attnlab.studies.sweeps.parts import Hyperband


def wandb(**changes: Any) -> dict[str, Any]:
    """A file in W&B's form; a change to None takes a key away."""
    parameters = {"lr": {"min": 0.001, "max": 0.1}}
    whole = {"method": "random", "metric": {"name": "val_loss"}, "parameters": parameters, **changes}
    return {key: value for key, value in whole.items() if value is not None}


def refused(data: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        read_sweep(data, "trial")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refused_text(folder: Path, text: str) -> str:
    path = folder / "trial.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_sweep_file(path)
    prefix = f"{path}: "
    assert str(caught.value).startswith(prefix)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(prefix)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"methd": "grid"}, "'methd' is not a key of a sweep file; did you mean 'method'?"),
        ({"serach": {}}, "'serach' is not a key of a sweep file; did you mean 'search'?"),
        ({"job": "x"}, "W&B's key 'job' is not supported"),
        ({"controller": {"type": "local"}}, "W&B's key 'controller' is not supported"),
        ({"set": {}}, "'set' is a key of the short form, which needs 'search'"),
        ({"method": None}, "the file has no 'method'; W&B's form needs 'method' and 'parameters'"),
        ({"parameters": None}, "the file has no 'parameters'; W&B's form needs 'method' and 'parameters'"),
        ({"method": "custom"}, "method is 'custom', but it must be 'bayes' or 'random' or 'grid'"),
        ({"name": "a\nb"}, "name is 'a\\nb', but it must be text on one line"),
        ({"description": 3}, "description is 3, but it must be text"),
        ({"name": 3}, "name is 3, but it must be text on one line"),
        ({"program": ["a"]}, "program is ['a'], but it must be text on one line"),
        ({"command": "python x.py"}, "command is 'python x.py', but it must be a list of words"),
        ({"command": [3]}, "a word of command is 3, but it must be text"),
        (
            {"command": ["${env}", "python", "--big"]},
            "the command holds '--big', which attnlab cannot follow; set a parameter instead",
        ),
        ({"run_cap": 0}, "run_cap is 0, but it must be a whole number, at least 1"),
        ({"run_cap": 1.5}, "run_cap is 1.5, but it must be a whole number, at least 1"),
        ({"run_cap": True}, "run_cap is True, but it must be a whole number, at least 1"),
        ({"method": "bayes", "metric": None}, "the file has no 'metric', but method 'bayes' needs one"),
        (
            {"metric": None, "early_terminate": {}},
            "the file has no 'metric', but early_terminate needs one",
        ),
        ({"metric": "loss"}, "metric is 'loss', but it must be an object of keys and values"),
        (
            {"metric": {"goal": "minimize"}},
            "metric has no 'name', but it must name a measurement such as valid_exact_match",
        ),
        ({"metric": {"name": ""}}, "metric.name is '', but it must be text on one line"),
        ({"metric": {"name": "bleu"}}, "unknown metric 'bleu'; known: loss, valid_exact_match, "),
        ({"metric": {"name": "vald_loss"}}, "unknown metric 'vald_loss'; did you mean 'valid_loss'?"),
        (
            {"metric": {"name": "test_accuracy"}},
            "the metric is 'test_accuracy', but choices are made on validation data",
        ),
        (
            {"metric": {"name": "loss", "goal": "min"}},
            "metric.goal is 'min', but it must be 'maximize' or 'minimize'",
        ),
        ({"metric": {"name": "loss", "target": "x"}}, "metric.target is 'x', but it must be a number"),
        ({"metric": {"name": "loss", "impute": "best"}}, "W&B's key 'metric.impute' is not supported"),
        (
            {"metric": {"name": "loss", "gaol": "x"}},
            "'metric.gaol' is not a key of a sweep file; did you mean 'goal'?",
        ),
        ({"parameters": []}, "parameters is [], but it must be an object of keys and values"),
        ({"parameters": {}}, "the sweep has no parameters, but it must vary at least one"),
        (
            {"parameters": {"lr": {"value": 1}, "learning_rate": {"value": 1}}},
            "'lr' and 'learning_rate' both mean training.lr, but a key must be named once",
        ),
        (
            {"parameters": {"learnin_rate": {"value": 1}}},
            "unknown setting 'learnin_rate'; did you mean 'learning_rate'?",
        ),
        (
            {"parameters": {"zzz": {"value": 1}}},
            "unknown setting 'zzz'; write it as a key of the spec, such as training.lr",
        ),
        (
            {"parameters": {"a": {"parameters": {}, "value": 1}}},
            "parameters.a has both 'parameters' and 'value'",
        ),
        (
            {"parameters": {"a": {"parameters": {"b": {"value": 1}}}, "a.b": {"value": 1}}},
            "parameters.a.b is given twice, once inside another",
        ),
        (
            {"parameters": {"a": {"parameters": {"b": {"parameters": 3}}}}},
            "parameters.a.b.parameters is 3, but it must be an object of keys and values",
        ),
        (
            {"method": "grid"},
            "training.lr is 0.001 .. 0.1, but it must be a list of at most 10000 values to be searched by",
        ),
    ],
)
def test_refused_in_wandb_form(changes: dict[str, Any], text: str) -> None:
    assert refused(wandb(**changes)).startswith(text)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "it is 3, but it must be an object with 'value', 'values', or 'min' and 'max'"),
        ({}, "it needs 'value', 'values', 'min' and 'max', or a 'distribution'"),
        ({"min": 1}, "it needs 'value', 'values', 'min' and 'max', or a 'distribution'"),
        ({"mu": 1}, "it needs 'value', 'values', 'min' and 'max', or a 'distribution'"),
        ({"vales": [1]}, "'vales' is not a key of a parameter; did you mean 'values'?"),
        (
            {"distribution": "beta"},
            "W&B's distribution 'beta' is not supported; supported: constant, categorical, ",
        ),
        ({"distribution": "q_normal"}, "W&B's distribution 'q_normal' is not supported; "),
        ({"distribution": "inv_log_uniform"}, "W&B's distribution 'inv_log_uniform' is not supported; "),
        ({"distribution": "unifrom"}, "unknown distribution 'unifrom'; did you mean 'uniform'?"),
        ({"distribution": ["beta"]}, "distribution is ['beta'], but it must be text"),
        (
            {"distribution": "uniform", "min": 0, "max": 1, "mu": 0},
            "'mu' does not go with 'uniform', which takes min, max",
        ),
        ({"value": 1, "values": [1]}, "'values' does not go with 'constant', which takes value"),
        ({"distribution": "uniform", "min": 0}, "'uniform' needs 'max'"),
        ({"distribution": "constant"}, "'constant' needs 'value'"),
        ({"value": None}, "value is None, but it must be a number, a word, or an object with a 'kind'"),
        (
            {"value": {"a": 1}},
            "value is {'a': 1}, but it must be a number, a word, or an object with a 'kind'",
        ),
        ({"value": "1e999"}, "value is inf, but it must be a number below 2^53 in size"),
        ({"values": 3}, "values is 3, but it must be a list"),
        ({"values": []}, "the number of values is 0, but it must be 1 to 10000"),
        (
            {"values": [1, [2]]},
            "values[1] is [2], but it must be a number, a word, or an object with a 'kind'",
        ),
        ({"values": [1, "1"]}, "values names 1 twice, but each value must be named once"),
        ({"values": [1], "probabilities": 1}, "probabilities is 1, but it must be a list of numbers"),
        ({"values": [1], "probabilities": ["x"]}, "probabilities[0] is 'x', but it must be a number"),
        (
            {"values": [1, 2], "probabilities": [1]},
            "the number of probabilities is 1, but it must be 2, one for each value",
        ),
        (
            {"values": [1, 2], "probabilities": [0.5, 0.4]},
            "the sum of probabilities is 0.9, but it must be 1",
        ),
        ({"min": 2, "max": 1}, "min is 2, but it must be at most max, 1"),
        ({"min": "a", "max": 1}, "min is 'a', but it must be a number"),
        ({"min": True, "max": 1}, "min is True, but it must be a number"),
        (
            {"min": 0.5, "max": 1, "distribution": "int_uniform"},
            "min is 0.5, but it must be a whole number",
        ),
        (
            {"min": 0, "max": 1, "distribution": "log_uniform_values"},
            "min is 0.0, but it must be above 0 on a log scale",
        ),
        (
            {"min": 0, "max": 99, "distribution": "log_uniform"},
            "max is 99.0, but it must be from -700 to 36 as a power of e; "
            "log_uniform_values takes the values themselves",
        ),
        (
            {"min": 0, "max": 1, "q": 0, "distribution": "q_uniform"},
            "q is 0.0, but it must be above 0 and below 2^53",
        ),
        (
            {"distribution": "normal", "sigma": -1},
            "sigma is -1.0, but it must be at least 0 and below 2^53",
        ),
    ],
)
def test_refused_parameters(data: Any, text: str) -> None:
    assert refused(wandb(parameters={"lr": data})).startswith(f"parameters.lr: {text}")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "early_terminate is 3, but it must be an object of keys and values"),
        ({"min_iter": 3}, "early_terminate.type is None, but it must be 'hyperband'"),
        ({"type": "envelope"}, "early_terminate.type is 'envelope', but it must be 'hyperband'"),
        (
            {"type": "hyperband", "strict": True},
            "early_terminate.strict is True, but it must be false, since strict stopping is not supported",
        ),
        ({"type": "hyperband"}, "early_terminate needs 'min_iter', or 'max_iter' and 's'"),
        ({"type": "hyperband", "max_iter": 3}, "early_terminate needs 'min_iter', or 'max_iter' and 's'"),
        (
            {"type": "hyperband", "min_iter": 0},
            "early_terminate.min_iter is 0, but it must be a whole number, at least 1",
        ),
        (
            {"type": "hyperband", "min_iter": 3, "eta": 1.5},
            "early_terminate.eta is 1.5, but it must be a whole number, at least 2",
        ),
        (
            {"type": "hyperband", "min_iter": 3, "max_iter": 3},
            "early_terminate.max_iter is 3, but it must be above min_iter, 3",
        ),
        (
            {"type": "hyperband", "max_iter": 2, "s": 1},
            "early_terminate.max_iter is 2, but it must be at least eta, 3",
        ),
        (
            {"type": "hyperband", "min_itr": 3},
            "'early_terminate.min_itr' is not a key of a sweep file; did you mean 'min_iter'?",
        ),
    ],
)
def test_refused_hyperband(data: Any, text: str) -> None:
    assert refused(wandb(early_terminate=data)) == text


RANGE = "a list of values or a range such as 'log 1e-4 .. 1e-2'; what stays the same belongs to 'set'"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"parameters": {}}, "'parameters' is a key of W&B's form, which has no 'search'"),
        ({"cuont": 3}, "'cuont' is not a key of a sweep file; did you mean 'count'?"),
        ({"job": 3}, "W&B's key 'job' is not supported"),
        ({"task": 3}, "task is 3, but it must be text on one line"),
        ({"method": "tpe"}, "method is 'tpe', but it must be 'bayes' or 'random' or 'grid'"),
        (
            {"goal": "maximize"},
            "goal is 'maximize', but it must be two words such as 'maximize valid_exact_match'",
        ),
        ({"goal": "maximise loss"}, "goal is 'maximise', but it must be 'maximize' or 'minimize'"),
        ({"goal": "maximize tset_loss"}, "unknown metric 'tset_loss'; "),
        ({"set": 3}, "set is 3, but it must be an object of keys and values"),
        (
            {"set": {"training.lr": [1]}},
            "set.training.lr is [1], but it must be a number, a word, or an object with a 'kind'",
        ),
        ({"set": {"seed": 3}}, "seed is both set and searched"),
        ({"set": {"lr": 3, "training.lr": 3}}, "'lr' and 'training.lr' both mean training.lr"),
        ({"search": []}, "search is [], but it must be an object of keys and values"),
        ({"search": {}}, "the sweep has no parameters, but it must vary at least one"),
        ({"search": {"lr": "1 - 2"}}, f"search.lr is '1 - 2', but it must be {RANGE}"),
        ({"search": {"lr": 0.5}}, f"search.lr is 0.5, but it must be {RANGE}"),
        ({"search": {"lr": {"min": 1}}}, f"search.lr is {{'min': 1}}, but it must be {RANGE}"),
        ({"search": {"lr": "2.0 .. 1.0"}}, "search.lr: min is 2.0, but it must be at most max, 1.0"),
        ({"search": {"lr": "4 .. 2"}}, "search.lr: min is 4, but it must be at most max, 2"),
        (
            {"search": {"lr": "log 0.0 .. 1.0"}},
            "search.lr: min is 0.0, but it must be above 0 on a log scale",
        ),
        (
            {"search": {"lr": "0.0 .. 1e999"}},
            "search.lr: max is '1e999', but it must be a number below 2^53",
        ),
        ({"search": {"lr": []}}, "search.lr: the number of values is 0, but it must be 1 to 10000"),
        ({"search": {"lr": [[]]}}, "search.lr: values[0] is [], but it must be a number, a word, or"),
        (
            {"method": "grid", "search": {"lr": "0.0 .. 1.0"}},
            "training.lr is 0 .. 1, but it must be a list",
        ),
        (
            {"method": "grid", "search": {"model.width": "1 .. 1000000"}},
            "model.width is 1 .. 1000000, whole numbers, but it must be a list of at most 10000 values",
        ),
        ({"prune": 3}, "prune is 3, but it must be an object of keys and values"),
        (
            {"prune": {"min_epoch": 3}},
            "'prune.min_epoch' is not a key of a sweep file; did you mean 'min_epochs'?",
        ),
        ({"prune": {"factor": 1}}, "prune.factor is 1, but it must be a whole number, at least 2"),
        ({"prune": {"max_epochs": 2, "min_epochs": 2}}, "prune: max_epochs is 2, but it must be above 2"),
        ({"count": "many"}, "count is 'many', but it must be a whole number, at least 1"),
    ],
)
def test_refused_in_short_form(changes: dict[str, Any], text: str) -> None:
    assert refused({"search": {"seed": [1, 2]}, **changes}).startswith(text)


def test_refused_hyperbands() -> None:
    with pytest.raises(SpecError, match="min_epochs is 0, but it must be at least 1"):
        Hyperband(min_epochs=0)
    with pytest.raises(SpecError, match="factor is 1, but it must be at least 2"):
        Hyperband(factor=1)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{there}'] * 10)}]\n"
    for there, here in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "the file is empty"),
        ("# nothing", "the file is empty"),
        ("- a\n- b", "the file holds a list at its top, but it must hold keys and values"),
        ("just words", "the file holds a text at its top, but it must hold keys and values"),
        ("3", "the file holds a number at its top, but it must hold keys and values"),
        ("method: bayes\nmetric: [", "the file is not YAML: line 2: "),
        ("a: b: c", "the file is not YAML: line 1: mapping values are not allowed here"),
        ("a: 1\n---\nb: 2", "the file is not YAML: line 2: but found another document"),
        (
            "a: !!python/object:os.system x",
            "the file is not YAML: line 1: could not determine a constructor",
        ),
        ("a: \x07", "the file is not YAML: unacceptable character #x0007"),
        pytest.param(
            "a: " + "9" * 5000,
            "line 1 holds a number of 5,000 characters; at most 64 are read",
            id="digits",
        ),
        pytest.param(
            "a: 1" + ":1" * 400_000, "line 1 holds a number of 800,001 characters; at", id="sixties"
        ),
        pytest.param(
            "a: 1" + "0" * 399, "line 1 holds a number of 400 characters; at most 64 are read", id="huge"
        ),
        pytest.param("a: 1" + "0" * 60, "a is 1000", id="beyond floats"),
        pytest.param(
            "a: [" + "1," * 400_000 + "]", "the file stands for more than 20,000 values", id="items"
        ),
        pytest.param("a: " + "[" * 400_000, "the file nests more than 40 levels deep", id="open"),
        ("a: 2001-99-99", "the file is not YAML: month must be in 1..12"),
        ("a: !!int ''", "the file is not YAML: "),
        ("method: grid\nmethod: bayes", "line 2 gives 'method' again"),
        ("a: {b: 1, b: 2}", "line 1 gives 'b' again"),
        ("on: 1", "a key is True, but it must be text of"),
        ("a: {1: 2}", "a key of a is 1, but it must be text of"),
        ("k" * 101 + ": 1", "a key is 'kkk"),
        ("a: 2001-01-01", "a is a date; put it in quotes if it is meant as text"),
        ("a: [.nan]", "a[0] is nan, but it must be a finite number below 2^53 in size"),
        ("a: {b: -.inf}", "a.b is -inf, but it must be a finite number below 2^53 in size"),
        ("a: 9007199254740992", "a is 9007199254740992, but it must be a finite number below 2^53 in size"),
        ("a: &a [*a]", "line 1 holds a value that contains itself"),
        pytest.param("a: " + "[" * 40 + "]" * 40, "the file nests more than 40 levels deep", id="deep"),
        pytest.param(
            "a: " + "[" * 5000 + "]" * 5000, "the file nests more than 40 levels deep", id="deeper"
        ),
        pytest.param(BOMB, "the file stands for more than 20,000 values", id="bomb"),
        pytest.param(
            "a" * 1_000_001, "the file cannot be read as text: it has 1,000,001 bytes", id="large"
        ),
    ],
)
def test_refused_texts(tmp_path: Path, text: str, wanted: str) -> None:
    assert refused_text(tmp_path, text).startswith(wanted)


def test_refused_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: there is no such file"):
        read_sweep_file(tmp_path / "nowhere.yaml")
    with pytest.raises(SpecError, match="the file cannot be read as text: Is a directory"):
        read_sweep_file(tmp_path)
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: \xe9".encode("latin-1"))
    with pytest.raises(SpecError, match=r"latin\.yaml: the file cannot be read as text: 'utf-8' codec"):
        read_sweep_file(path)


def test_a_refusal_stays_a_sentence(tmp_path: Path) -> None:
    assert len(refused_text(tmp_path, f"method: {'x' * 100_000}\nparameters: {{}}")) < 300
    assert len(refused_text(tmp_path, f"method: {[list(range(99))] * 99}\nparameters: {{}}")) < 300
