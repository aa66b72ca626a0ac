"""Analyses of models on a device that is not the CPU: the same numbers, and all of them on the CPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from warnings import catch_warnings

import pytest
import torch

import attnlab
from attnlab.analysis.ablate.ablation import Ablation, ablate_run
from attnlab.analysis.ablate.baselines import Baseline, mask_without, masked, optimal_baseline
from attnlab.analysis.analyses import evaluate_any, examples_of
from attnlab.analysis.evaluate import find_mistakes
from attnlab.analysis.explain.runs import explain_run, explain_split
from attnlab.analysis.heads import heads_run
from attnlab.analysis.maps import maps_reader, watch
from attnlab.analysis.patch.contrasts import (
    Chosen,
    TaskNames,
    draw_contrasts,
    measure_carriers,
    measure_contrast,
)
from attnlab.analysis.patch.runs import SmallDifferenceWarning
from attnlab.analysis.patterns import run_patterns
from attnlab.analysis.positions import run_places
from attnlab.analysis.project.points import collect_points
from attnlab.analysis.prune.elimination import load_material
from attnlab.analysis.record import record_answers
from attnlab.analysis.samples import first_samples
from attnlab.devices import device_of
from attnlab.errors import LabError
from attnlab.export.trial import run_trial
from attnlab.problems.addition.evaluate import verify_run
from attnlab.problems.sorting.exchanges import Exchanges, measure_falls, measure_margins
from attnlab.problems.sorting.lengths import lengths_run
from attnlab.runs import RunFolder, load_model
from attnlab.sets import Examples
from pretend import PRETENDED, MisplacedError, There, pretending
from results_alike import alike
from tiny_runs import train_four

INPUTS = {"adder": "3+4", "sorter": "3 1 2", "digit": "test:3", "grid": "test:2"}
LISTS = Exchanges(lengths=(5, 9), lists=4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    return train_four(tmp_path_factory.mktemp("runs"))


def task_of(run: RunFolder) -> Any:
    return run.spec().task


def examples(run: RunFolder, count: int = 20) -> Examples:
    return run.spec().task.splits(0).valid[slice(0, count)]


def ablated(run: RunFolder) -> Any:
    plan = Ablation(baselines=("mean", "zero", "resample"), pairs=True, orders=2)
    return ablate_run(run, plan, count=20, keep=False)


def fitted(run: RunFolder) -> Any:
    found = optimal_baseline(run.model, examples(run), steps=2).values
    assert {value.device for value in found.values()} == {device_of(run.model)}
    return {path: value.cpu() for path, value in found.items()}


def patched(run: RunFolder) -> Any:
    """Whether the model is right or not."""
    task = run.spec().task
    (drawn,) = draw_contrasts(task, 8, 0)
    chosen = Chosen(8, drawn[:4], drawn[4:])
    with catch_warnings(action="ignore", category=SmallDifferenceWarning):
        contrast = measure_contrast(run.model, chosen, TaskNames(task, run.model))
        return [contrast, measure_carriers(run.model, [chosen])]


def recorded(run: RunFolder) -> Any:
    names, examples = examples_of(run, [INPUTS[run.name]])
    return dict(record_answers(run.spec().task, run.model, examples, names=names))


def opened(run: RunFolder) -> attnlab.Run:
    made = attnlab.Run(run.path, device=run.device)
    vars(made)["model"] = run.model
    return made


def without(run: RunFolder) -> Any:
    with opened(run).without(run.model.sites()[-1].head_names[0], to="mean") as masked:
        return masked.predict(INPUTS[run.name])


def mapped(run: RunFolder) -> Any:
    reader = maps_reader(run)
    seen = watch(reader, *first_samples(reader, split="test", count=1))
    return [seen.image, seen.patterns, seen.said]


def points(run: RunFolder) -> Any:
    found = collect_points(run, run.model, "read", samples=10)
    return [found.vectors, found.labels]


ANALYSES: dict[str, Callable[[RunFolder], Any]] = {
    "predict": lambda run: opened(run).predict([INPUTS[run.name]]),
    "evaluate": lambda run: evaluate_any(run, "test"),
    "record": recorded,
    "without": without,
    "heads": lambda run: heads_run(run, count=20),
    "ablate": ablated,
    "optimal constants": fitted,
    "patterns": lambda run: run_patterns(run).looked,
    "explain": lambda run: explain_run(run, INPUTS[run.name]),
    "explain many": lambda run: explain_split(run, 2),
    "points": points,
}
OWN: dict[str, dict[str, Callable[[RunFolder], Any]]] = {
    "adder": {
        "patch": patched,
        "verify": lambda run: replace(verify_run(task_of(run), run), seconds=0.0),
        "mistakes": lambda run: find_mistakes(run.spec().task, run.model, run.spec().task.splits(0).test),
    },
    "sorter": {
        "lengths": lambda run: lengths_run(run, lengths="5,9", examples=20),
        "margins": lambda run: measure_margins(task_of(run), run.model, LISTS),
        "falls": lambda run: measure_falls(task_of(run), run.model, LISTS),
    },
    "digit": {"maps": mapped},
    "grid": {"maps": mapped},
}
CASES = [(name, what) for name in INPUTS for what in (*ANALYSES, *OWN[name])]


@contextmanager
def there(run: RunFolder) -> Iterator[RunFolder]:
    with pretending():
        yield replace(run, device=PRETENDED.type)


@pytest.mark.parametrize(("name", "what"), CASES)
def test_the_same_is_found(runs: dict[str, RunFolder], name: str, what: str) -> None:
    find = {**ANALYSES, **OWN[name]}[what]
    expected = find(runs[name])
    with there(runs[name]) as run:
        assert device_of(run.model) == PRETENDED
        alike(expected, find(run))


def test_a_fault_in_an_analysis_is_found(runs: dict[str, RunFolder]) -> None:
    """A baseline that was left on the CPU."""
    with there(runs["adder"]) as run:
        model, path = run.model, run.model.sites()[0].path
        part = examples(run).to(PRETENDED)
        for where, fails in ((torch.device("cpu"), True), (PRETENDED, False)):
            baseline = Baseline("planted", {path: torch.zeros(1, 2, 1, 4, device=where)})
            found = pytest.raises(MisplacedError, match="mixes") if fails else nullcontext()
            with masked(model, mask_without(model, [f"{path}.1"]), baseline), found:
                assert isinstance(model(*part.inputs), There)


def test_what_needs_weights_alone_is_done_on_the_cpu(runs: dict[str, RunFolder]) -> None:
    """Positions, pruning and exported graphs compute in float64, or outside of torch."""
    with there(runs["adder"]) as run:
        assert device_of(load_material(run, examples=5).model).type == "cpu"
        assert [place.positions.add is not None for place in run_places(run)] == [True, True]
        assert device_of(run_trial(run).model).type == "cpu"
    with pytest.raises(LabError, match=r"^device is 'meta', but torch cannot use it here; use 'cpu'"):
        load_model(replace(runs["adder"], device="meta"))


def test_a_run_is_loaded_on_a_device(runs: dict[str, RunFolder]) -> None:
    with pretending():
        run = attnlab.load(runs["sorter"].path, device="meta")
        assert device_of(run.model) == PRETENDED
        assert run.predict("3 1 2").text in ("sorted", "unsorted")
    assert attnlab.load(runs["sorter"].path).device == "cpu"
    with pytest.raises(LabError, match=r"^device is 'abacus', but torch knows no such device; use 'cpu'"):
        attnlab.load(runs["sorter"].path, device="abacus")
