"""Sweep files: both forms, every distribution, the shipped files, and whatever else may be in a file."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import LabError
from attnlab.presets import preset
from attnlab.specs import Seq2SeqModel, with_settings
from attnlab.studies.sweeps.file import read_sweep, read_sweep_file
from attnlab.studies.sweeps.parts import Hyperband, Metric, SweepFile
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

SWEEPS = Path(__file__).parents[1] / "sweeps"
LR = {"lr": {"min": 0.001, "max": 0.1}}


def wandb(**changes: Any) -> dict[str, Any]:
    """A file in W&B's form; a change to None takes a key away."""
    whole = {"method": "random", "metric": {"name": "val_loss"}, "parameters": LR, **changes}
    return {key: value for key, value in whole.items() if value is not None}


def written(folder: Path, text: str) -> SweepFile:
    path = folder / "trial.yaml"
    path.write_text(text)
    return read_sweep_file(path)


WANDB_TEXT = """
program: train.py
name: widths
description: which width
project: adders
entity: us
command: ["${env}", python3, "${interpreter}", "${program}", "${args_no_hyphens}", train.py]
method: bayes
metric: {name: val_accuracy, goal: maximize, target: 0.99}
run_cap: 30
early_terminate: {type: hyperband, min_iter: 3, strict: false}
parameters:
  learning_rate: {distribution: log_uniform_values, min: 1e-4, max: 1e-2}
  epochs: {value: 5}
  optimizer:
    values: [sgd, "adamw:beta1=0.5", {kind: muon, weight_decay: 1e-2}]
  model:
    parameters:
      width: {values: [64, 128]}
      positions.base: {min: 100, max: 1000.0}
"""


def test_wandb_form(tmp_path: Path) -> None:
    muon = {"kind": "muon", "weight_decay": 0.01}
    assert written(tmp_path, WANDB_TEXT) == SweepFile(
        name="widths",
        method="bayes",
        metric=Metric(name="valid_exact_match", goal="maximize", target=0.99),
        parameters={
            "training.lr": LogUniform(low=1e-4, high=1e-2),
            "training.epochs": Fixed(value=5),
            "training.optimiser": Choice(options=("sgd", "adamw:beta1=0.5", muon)),
            "model.width": Choice(options=(64, 128)),
            "model.positions.base": Uniform(low=100.0, high=1000.0),
        },
        hyperband=Hyperband(min_epochs=3, max_epochs=None, factor=3),
        count=30,
        task="addition",
        preset="default",
        settings={},
        notes=(
            "program train.py is not run: attnlab trains",
            "project adders is not used: runs stay on this machine",
            "entity us is not used: runs stay on this machine",
        ),
    )


SHORT_TEXT = """
task: sorting
preset: small
method: random
goal: minimize val_loss
set: {epochs: 2, model.norm: post, training.clip: 1e-1}
search:
  training.lr: log 1e-4 .. 1e-2
  model.dropout: 0.0..0.3
  model.encoder_layers: 1 .. 4
  model.hidden: log 16 .. 512
  heads: [2, 4, 8]
  model.positions: [learned, "rotary:base=500", none]
prune: {min_epochs: 2, max_epochs: 9, factor: 4}
count: 20
"""


def test_short_form(tmp_path: Path) -> None:
    assert written(tmp_path, SHORT_TEXT) == SweepFile(
        name="trial",
        method="random",
        metric=Metric(name="valid_loss", goal="minimize"),
        parameters={
            "training.lr": LogUniform(low=1e-4, high=1e-2),
            "model.dropout": Uniform(low=0.0, high=0.3),
            "model.encoder_layers": Integers(low=1, high=4),
            "model.hidden": Stepped(of=LogUniform(low=16.0, high=512.0)),
            "model.heads": Choice(options=(2, 4, 8)),
            "model.positions": Choice(options=("learned", "rotary:base=500", "none")),
        },
        hyperband=Hyperband(min_epochs=2, max_epochs=9, factor=4),
        count=20,
        task="sorting",
        preset="small",
        settings={"training.epochs": 2, "model.norm": "post", "training.clip": 0.1},
    )


def test_defaults_of_both_forms() -> None:
    short = read_sweep({"search": {"seed": [1, 2]}}, "trial")
    assert (short.name, short.method, short.metric) == ("trial", "bayes", Metric())
    assert (short.hyperband, short.count, short.task, short.preset) == (None, None, "addition", "default")
    assert (short.settings, short.notes) == ({}, ())
    assert read_sweep({"search": {"seed": [1, 2]}, "prune": {}}, "trial").hyperband == Hyperband()
    long = read_sweep(wandb(), "trial")
    assert (long.name, long.metric, long.notes) == ("trial", Metric(name="valid_loss", goal="minimize"), ())
    assert (long.hyperband, long.count, long.task, long.preset) == (None, None, "addition", "default")
    assert Metric() == Metric(name="valid_exact_match", goal="maximize", target=None)
    assert Hyperband() == Hyperband(min_epochs=1, max_epochs=None, factor=3)


def test_json_is_read_as_well(tmp_path: Path) -> None:
    data = wandb(method="grid", parameters={"seed": {"values": [1, 2, 3]}})
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data, indent=2))
    assert read_sweep_file(path) == read_sweep(data, "x")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"value": "post"}, Fixed(value="post")),
        ({"value": 0.5, "distribution": "constant"}, Fixed(value=0.5)),
        ({"values": [1, 2.5, "a", True, "1e-3"]}, Choice(options=(1, 2.5, "a", True, 0.001))),
        ({"values": [8, 4], "distribution": "categorical"}, Choice(options=(8, 4))),
        (
            {"values": [1, 2], "probabilities": [0.25, 0.75]},
            WeightedChoice(options=(1, 2), probabilities=(0.25, 0.75)),
        ),
        (
            {"values": [1, 2], "probabilities": [1, 0], "distribution": "categorical_w_probabilities"},
            WeightedChoice(options=(1, 2), probabilities=(1.0, 0.0)),
        ),
        ({"min": 1, "max": 4}, Integers(low=1, high=4)),
        ({"min": 1.0, "max": 4, "distribution": "int_uniform"}, Integers(low=1, high=4)),
        ({"min": 1.0, "max": 4}, Uniform(low=1.0, high=4.0)),
        ({"min": 1, "max": 4.5}, Uniform(low=1.0, high=4.5)),
        ({"min": 1, "max": 4, "distribution": "uniform"}, Uniform(low=1.0, high=4.0)),
        ({"min": "1e-4", "max": "1e-2"}, Uniform(low=1e-4, high=1e-2)),
        (
            {"min": 0, "max": 9, "distribution": "q_uniform"},
            Stepped(of=Uniform(low=0.0, high=9.0), step=1.0),
        ),
        (
            {"min": 0, "max": 1, "q": 0.25, "distribution": "q_uniform"},
            Stepped(of=Uniform(low=0.0, high=1.0), step=0.25),
        ),
        ({"min": -2, "max": 0, "distribution": "log_uniform"}, LogUniform(low=math.exp(-2), high=1.0)),
        ({"min": 1, "max": 64, "distribution": "log_uniform_values"}, LogUniform(low=1.0, high=64.0)),
        (
            {"min": 1, "max": 64, "distribution": "q_log_uniform_values"},
            Stepped(of=LogUniform(low=1.0, high=64.0), step=1.0),
        ),
        (
            {"min": 8, "max": 64, "q": 8, "distribution": "q_log_uniform_values"},
            Stepped(of=LogUniform(low=8.0, high=64.0), step=8.0),
        ),
        ({"distribution": "normal"}, Normal(mu=0.0, sigma=1.0)),
        ({"distribution": "normal", "mu": 3, "sigma": 2}, Normal(mu=3.0, sigma=2.0)),
        ({"distribution": "log_normal"}, LogNormal(mu=0.0, sigma=1.0)),
        ({"distribution": "log_normal", "mu": "-1e1", "sigma": 0.5}, LogNormal(mu=-10.0, sigma=0.5)),
    ],
)
def test_every_distribution(data: dict[str, Any], wanted: Distribution) -> None:
    assert read_sweep(wandb(parameters={"lr": data}), "trial").parameters == {"training.lr": wanted}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"min_iter": 3}, Hyperband(min_epochs=3)),
        ({"min_iter": 3, "eta": 2}, Hyperband(min_epochs=3, factor=2)),
        ({"min_iter": 3, "max_iter": 20, "eta": 2.0}, Hyperband(min_epochs=3, max_epochs=20, factor=2)),
        ({"max_iter": 27, "s": 2}, Hyperband(min_epochs=3, max_epochs=27)),
        ({"max_iter": 27, "s": 2, "eta": 2}, Hyperband(min_epochs=6, max_epochs=27, factor=2)),
        ({"max_iter": 27, "s": 10**9}, Hyperband(min_epochs=1, max_epochs=27)),
        ({"max_iter": 26, "s": 9}, Hyperband(min_epochs=2, max_epochs=26)),
    ],
)
def test_hyperband_of_wandb(given: dict[str, Any], wanted: Hyperband) -> None:
    sweep = read_sweep(wandb(early_terminate={"type": "hyperband", **given}), "trial")
    assert sweep.hyperband == wanted
    assert sweep.notes == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("learning_rate", "training.lr"),
        ("Learning-Rate", "training.lr"),
        ("batch_size", "training.batch"),
        ("d_model", "model.width"),
        ("nhead", "model.heads"),
        ("dim_feedforward", "model.hidden"),
        ("enc_depth", "model.encoder_layers"),
        ("num_decoder_layers", "model.decoder_layers"),
        ("depth", "model.layers"),
        ("patch_size", "model.patch"),
        ("weight_decay", "training.optimiser.weight_decay"),
        ("optimizer", "training.optimiser"),
        ("label_smoothing", "training.smoothing"),
        ("grad_clip", "training.clip"),
        ("positional_encoding", "model.positions"),
        ("seed", "seed"),
        ("any.key", "any.key"),
    ],
)
def test_usual_names(name: str, key: str) -> None:
    assert list(read_sweep(wandb(parameters={name: {"value": 1}}), "trial").parameters) == [key]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("val_accuracy", "valid_exact_match"),
        ("validation/acc", "valid_exact_match"),
        ("accuracy", "valid_exact_match"),
        ("exact_match", "valid_exact_match"),
        ("valid_exact_match", "valid_exact_match"),
        ("val.token_accuracy", "valid_token_accuracy"),
        ("Val Loss", "valid_loss"),
        ("valid_loss", "valid_loss"),
        ("loss", "loss"),
        ("train-loss", "loss"),
    ],
)
def test_usual_names_of_metrics(name: str, wanted: str) -> None:
    assert read_sweep(wandb(metric={"name": name}), "trial").metric.name == wanted


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (
            wandb(metric={"name": "val_accuracy"}),
            "the goal is to minimize valid_exact_match; the best would be to maximize it",
        ),
        (
            wandb(metric={"name": "loss", "goal": "maximize"}),
            "the goal is to maximize loss; the best would be to minimize it",
        ),
        (
            {"goal": "minimize accuracy", "search": {"seed": [1, 2]}},
            "the goal is to minimize valid_exact_match; the best would be to maximize it",
        ),
        (wandb(metric=None), "no metric is given: the best run is that of the largest valid_exact_match"),
        (
            wandb(early_terminate={"type": "hyperband", "min_iter": 1, "max_iter": 9, "s": 1}),
            "early_terminate.min_iter is not used: max_iter and s decide",
        ),
        (
            wandb(early_terminate={"type": "hyperband", "min_iter": 1, "s": 1}),
            "early_terminate.s is not used: it counts down from max_iter",
        ),
        (
            wandb(parameters={"lr": {"distribution": "log_uniform", "min": "1e-4", "max": 0.1}}),
            "parameters.lr: log_uniform takes powers of e, so that min and max are e^1e-4 and e^0.1; "
            "log_uniform_values takes values",
        ),
    ],
)
def test_notes(data: dict[str, Any], note: str) -> None:
    assert read_sweep(data, "trial").notes == (note,)


def test_aliases_are_fine(tmp_path: Path) -> None:
    text = "method: grid\nparameters: {heads: &a {values: [2, 4]}, model.hidden: *a}\n"
    assert written(tmp_path, text).parameters["model.hidden"] == Choice(options=(2, 4))


# The shipped files.


def shipped() -> list[Path]:
    return sorted(SWEEPS.glob("*.yaml"))


def test_the_shipped_files() -> None:
    names = [path.stem for path in shipped()]
    assert names == ["addition-short", "addition", "encoder-decoder", "encoder-only"]


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.stem)
def test_shipped_files_seek_the_best_by_bayes_and_stop_early(path: Path) -> None:
    sweep = read_sweep_file(path)
    assert (sweep.name, sweep.method, sweep.metric) == (path.stem, "bayes", Metric())
    assert sweep.hyperband == Hyperband(min_epochs=1, factor=3)
    assert sweep.count is not None
    assert sweep.notes == ()


@pytest.mark.parametrize(("name", "side"), [("encoder-only", 28), ("encoder-decoder", 56)])
def test_every_combination_of_the_image_sweeps_can_be_built(name: str, side: int) -> None:
    parameters = read_sweep_file(SWEEPS / f"{name}.yaml").parameters
    widths, heads = parameters["model.width"].values(), parameters["model.heads"].values()
    assert widths is not None
    assert heads is not None
    assert [(w, h) for w, h in product(widths, heads) if w % h] == []
    patches = parameters["model.patch"].values()
    assert patches is not None
    assert [
        patch for patch in patches if side % patch or 28 % patch
    ] == []  # no patch lies across two digits


def test_the_image_sweeps_search_what_they_are_said_to() -> None:
    only = read_sweep_file(SWEEPS / "encoder-only.yaml").parameters
    assert only["training.lr"] == LogUniform(low=1e-5, high=1e-2)
    assert only["model.layers"] == Choice(options=(4, 6, 8))
    both = read_sweep_file(SWEEPS / "encoder-decoder.yaml").parameters
    assert both["training.lr"] == LogUniform(low=5e-5, high=5e-3)
    assert both["model.encoder_layers"] == both["model.decoder_layers"] == Choice(options=(6, 8, 10))
    for parameters in (only, both):
        assert parameters["model.dropout"] == Uniform(low=0.1, high=0.3)


@pytest.mark.parametrize("name", ["addition", "addition-short"])
def test_every_corner_of_the_addition_sweeps_is_a_spec(name: str) -> None:
    sweep = read_sweep_file(SWEEPS / f"{name}.yaml")
    start = with_settings(preset(sweep.task, sweep.preset), sweep.settings)
    choices = [d.values() or (d.quantile(0.0), d.quantile(0.9999)) for d in sweep.parameters.values()]
    for values in product(*choices):
        settings = dict(zip(sweep.parameters, values, strict=True))
        changed = with_settings(start, settings)
        assert changed.training.lr == settings["training.lr"]
        assert isinstance(changed.model, Seq2SeqModel)
        assert changed.model.width % changed.model.heads == 0


# Whatever stands in a file, it is a sweep or a sentence.

WORDS = """
method bayes grid random metric name goal maximize parameters lr seed model.width value values min max q mu
sigma distribution uniform log_uniform q_log_uniform_values normal log_normal int_uniform probabilities
early_terminate type hyperband min_iter max_iter s eta run_cap search set prune count command task kind
val_loss minimize 1e-4 1..4 log
"""
words = st.sampled_from(WORDS.split())
scalars = st.one_of(
    words,
    st.text(max_size=5),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.integers(-3, 9),
    st.dates(),
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
numbers = st.one_of(st.integers(-3, 9), st.floats(), st.sampled_from(["1e-4", "5", "-.5", "1e999", "x"]))
parameters = st.fixed_dictionaries(
    {},
    optional={
        "distribution": words | st.just("q_uniform") | st.just("beta"),
        "min": numbers,
        "max": numbers,
        "q": numbers,
        "mu": numbers,
        "sigma": numbers,
        "values": st.lists(scalars, max_size=3),
        "probabilities": st.lists(numbers, max_size=3),
        "value": anything,
    },
)
plausible = st.one_of(
    st.fixed_dictionaries(
        {
            "distribution": st.sampled_from(
                [
                    "uniform",
                    "int_uniform",
                    "log_uniform",
                    "log_uniform_values",
                    "q_uniform",
                    "q_log_uniform_values",
                ]
            ),
            "min": numbers,
            "max": st.integers(1, 9) | st.floats(1e-9, 1e9),
        }
    ),
    st.fixed_dictionaries(
        {
            "distribution": st.sampled_from(["normal", "log_normal"]),
            "mu": numbers,
            "sigma": st.floats(0, 80),
        }
    ),
    st.fixed_dictionaries({"values": st.lists(st.integers(0, 99) | st.text(max_size=3), max_size=4)}),
)
stops = st.fixed_dictionaries(
    {"type": st.just("hyperband")},
    optional=dict.fromkeys(("min_iter", "max_iter", "s", "eta"), numbers),
)
files = st.fixed_dictionaries(
    {"method": st.sampled_from(["bayes", "grid", "random"]), "metric": st.just({"name": "val_loss"})},
    optional={
        "parameters": st.dictionaries(
            st.sampled_from(["lr", "a.b", "seed"]), parameters | plausible, max_size=3
        ),
        "early_terminate": stops,
        "run_cap": numbers,
        "command": anything,
    },
)
plausible_files = st.fixed_dictionaries(
    {"method": st.just("random"), "parameters": st.dictionaries(st.just("lr"), plausible, min_size=1)}
)
short_files = st.fixed_dictionaries(
    {"search": st.dictionaries(st.sampled_from(["lr", "a.b", "seed"]), anything, max_size=3)},
    optional={"prune": anything, "count": numbers, "set": anything, "goal": anything, "task": anything},
)


def check_sweep(sweep: SweepFile) -> None:
    """A sweep that is read can be drawn from."""
    for distribution in sweep.parameters.values():
        for u in (0.0, 0.3, math.nextafter(1, 0)):
            value = distribution.quantile(u)
            assert not isinstance(value, float) or math.isfinite(value)
            assert distribution.edge(value) in (None, "lower", "upper")
        assert distribution.describe()


def refusal(path: Path) -> str:
    """What is said about a file, or nothing if it is a sweep."""
    try:
        check_sweep(read_sweep_file(path))
    except LabError as error:
        return str(error)
    return ""


@given(data=anything | files | short_files | plausible_files)
def test_any_structure_is_a_sweep_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    assert len(refusal(path).splitlines()) <= 1


@given(text=st.text(alphabet="ab:[]{}&*!-<>|#'\"? \n,1e.0~", max_size=40))
def test_any_text_is_a_sweep_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(refusal(path).splitlines()) <= 1
