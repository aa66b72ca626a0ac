"""Tours of the explorer: what they say of the shipped runs is so, and what a step does ends it."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Edit, Off, Scale, Swap
from attnlab.explorer.messages import pack
from attnlab.explorer.scene import (
    ExampleInput,
    Input,
    PixelsInput,
    Question,
    Scene,
    TextInput,
    Values,
    Want,
)
from attnlab.problems.addition import tour as addition
from attnlab.problems.digits import tour as digits
from attnlab.problems.grids import tour as grids
from attnlab.problems.sorting import tour as sorting
from attnlab.runs import open_run
from attnlab.specs.task import TourStep
from page_modules import NODE, ask, run_module

RUNS = ("zoo:adder", "zoo:long-adder", "zoo:sorter", "zoo:digit", "zoo:grid")
WALK = """
import {readFileSync} from "node:fs";
import {emptyState, newHistory, reduce} from "MODULES/store.js";
import {actionOf, met, tourOf} from "MODULES/tour.js";
const subject = JSON.parse(readFileSync(0, "utf8"));
const first = ({split}) => ({type: "input", input: {example: {split, index: 0}}});
const done = (action) => (action.type === "find" ? first(action) : actionOf(action, subject.task.image));
let history = newHistory(emptyState(subject.name));
const steps = tourOf(subject).map((step) => {
  const before = met(step.until, history);
  for (const action of step.act) history = reduce(history, done(action));
  return {...step, before, after: met(step.until, history)};
});
console.log(JSON.stringify(steps));
"""
node = pytest.mark.skipif(NODE is None, reason="there is no node here")


@cache
def bench(name: str) -> Bench:
    return Bench.of_run(open_run(name))


@cache
def subject(name: str) -> str:
    """What the page is told."""
    plain, _ = pack(bench(name).describe())
    return json.dumps(plain)


def look(name: str, given: Input | str, *edits: Edit, other: Input | str | None = None) -> Scene:
    given = TextInput(given) if isinstance(given, str) else given
    other = TextInput(other) if isinstance(other, str) else other
    return bench(name).look(Question(given, other, edits, None, Want(True, True, None)))


def say(name: str, given: Input | str, *edits: Edit, other: Input | str | None = None) -> str:
    return look(name, given, *edits, other=other).answer.text


def drawn(name: str, *cells: Any) -> PixelsInput:
    """What the page makes of strokes."""
    image = json.loads(subject(name))["task"]["image"]
    ((answer),) = ask(("tour", "actionOf", [{"type": "draw", "slot": "input", "cells": cells}, image]))
    pixels = answer["value"]["input"]["pixels"]
    return PixelsInput(Values(np.array(pixels["data"], dtype=np.uint8).reshape(pixels["shape"])))


def guesses(name: str, scene: Scene) -> list[str]:
    """What the model would say after each layer, token by token."""
    labels = bench(name).describe().task.labels
    return ["".join(labels[row.argmax()] for row in guess.values.array) for guess in scene.guesses]


@node
@pytest.mark.parametrize("name", RUNS)
def test_a_tour_has_seven_steps_and_each_can_be_done(name: str) -> None:
    steps = json.loads(run_module(WALK, subject(name)))
    titles = [each["title"] for each in steps]
    known = (addition.TOUR, addition.LONG_TOUR, sorting.TOUR, digits.TOUR, grids.TOUR)
    assert titles == [each.title for each in dict(zip(RUNS, known, strict=True))[name]]
    assert len(steps) == 7
    assert [(each["before"], each["after"]) for each in steps] == [(False, True)] * 7


@node
@pytest.mark.parametrize("name", RUNS)
def test_a_model_without_the_heads_of_a_tour_gets_the_one_for_any_model(name: str) -> None:
    other = json.loads(subject(name))
    sites = [
        {**site, "path": f"stack.{number}.self"} for number, site in enumerate(other["model"]["sites"])
    ]
    other["model"].update(sites=sites, layers=[], feeds=[])
    steps = json.loads(run_module(WALK, json.dumps(other)))
    assert len(steps) == 7
    assert [each["after"] for each in steps] == [True, False, True, True, True, True, True]
    assert not any(each["facts"] for each in steps)


@node
def test_words_in_brackets_are_in_the_glossary() -> None:
    script = """
    import {TERMS} from "MODULES/glossary.js";
    import {generalTour} from "MODULES/tour.js";
    import {readFileSync} from "node:fs";
    const general = generalTour(JSON.parse(readFileSync(0, "utf8")));
    console.log(JSON.stringify({terms: TERMS, texts: general.map(({text}) => text)}));
    """
    found = json.loads(run_module(script, subject("zoo:adder")))
    names = [term["name"] for term in found["terms"]]
    assert len(names) >= 25
    assert names == sorted(set(names))
    tours = [each for module in (addition, sorting, digits, grids) for each in module.TOUR]
    tours += addition.LONG_TOUR
    texts = [*found["texts"], *(term["text"] for term in found["terms"])]
    texts += [text for step in tours for text in (step.text, *step.facts.values())]
    linked = {link.split("]")[0].split("|")[-1] for text in texts for link in text.split("[")[1:]}
    assert linked <= set(names)


def fact(steps: tuple[TourStep, ...], number: int) -> str:
    """What is said of the shipped run at a step."""
    (text,) = steps[number - 1].facts.values()
    return text


def misread(name: str) -> tuple[str | None, str]:
    """What the first example is that the model gets wrong, and what it says."""
    (item,) = bench(name).examples("test", "wrong", 0, 1).items
    return item.truth, say(name, ExampleInput("test", item.index))


def test_what_is_said_of_the_adder() -> None:
    name, steps = addition.ADDER, addition.TOUR
    carried = look(name, addition.CARRIED)
    assert carried.answer.text == "1000"
    said = ", ".join(token.label for token in carried.answer.tokens[:4])
    assert fact(steps, 1) == f"It says {said}: the ones first. That is 1000, and right."
    pattern = look(name, addition.SUM).patterns["encoder.0.self"].array[0]
    assert pattern.argmax(axis=1)[[0, 1, 2, 4, 5, 6]].tolist() == [4, 5, 6, 0, 1, 2]
    assert say(name, addition.SUM, Off(addition.HEAD)) == "1188" in fact(steps, 4)
    assert f"says {say(name, addition.SUM, Off(addition.LAYER))} instead of 1188" in fact(steps, 5)
    mixed = say(name, addition.CARRIED, Swap(addition.CROSS), other=addition.PLAIN)
    assert f"the other sum, {mixed}:" in fact(steps, 6)
    assert mixed == say(name, addition.PLAIN)
    early, late = guesses(name, look(name, addition.SUM))
    assert f"would have said {early[3::-1]};" in fact(steps, 7)
    assert late[3::-1] == "1188"
    assert [a == b for a, b in zip(early[:4], late[:4], strict=True)] == [True, False, False, True]


def test_what_is_said_of_the_long_adder() -> None:
    name, steps = addition.LONG_ADDER, addition.LONG_TOUR
    assert [each.label for each in look(name, addition.LONG).answer.tokens] == [*"0" * 30, "1", "⊣"]
    assert say(name, addition.LONG) == f"1{'0' * 30}"
    assert open_run(name).spec().task.input_length == 2 * 10 + 1
    pattern = look(name, addition.SUM).patterns["decoder.0.cross"].array[1]
    both = pattern[:, :3] + pattern[:, 4:]  # columns of both numbers, + between them
    assert both[1:4].argmax(axis=1).tolist() == [0, 1, 2]
    assert (both[1:4].max(axis=1) > pattern[1:4, 3]).all()
    without = look(name, addition.SUM, Off(addition.LONG_HEAD)).answer
    assert [each.label for each in without.tokens] == list("88111")
    assert f"says {say(name, addition.SUM, Off(addition.LONG_LAYER))} instead of 1188" in fact(steps, 5)
    mixed = say(name, addition.CARRIED, Swap(addition.CROSS), other=addition.PLAIN)
    assert f"the other sum, {mixed}:" in fact(steps, 6)
    early, late = guesses(name, look(name, addition.SUM))
    assert f"would have said {early[3::-1]};" in fact(steps, 7)
    assert [a == b for a, b in zip(early[:4], late[:4], strict=True)] == [False, False, True, True]


def test_what_is_said_of_the_sorter() -> None:
    name, head = sorting.SORTER, sorting.HEAD
    certain = look(name, sorting.SORTED).answer
    assert (certain.text, certain.probability > 0.99) == ("sorted", True)
    assert say(name, sorting.UNSORTED) == "unsorted"
    pattern = look(name, sorting.UNSORTED).patterns["encoder.1.self"].array[0]
    assert all(pattern[query, query + 1] > 0.95 for query in range(7))
    assert say(name, sorting.LATE) == "unsorted"
    assert say(name, sorting.LATE, Off(head)) == "sorted"
    assert say(name, sorting.UNSORTED, Swap(head), other=sorting.SORTED) == "sorted"
    assert guesses(name, look(name, sorting.LATE)) == ["sorted", "unsorted"]


@node
def test_what_is_said_of_the_digit() -> None:
    name, seven, one = digits.DIGIT, *(drawn(digits.DIGIT, each) for each in (digits.SEVEN, digits.ONE))
    scene = look(name, seven)
    assert scene.answer.text == "7"
    sure = [float(guess.values.array[0, 7]) for guess in scene.guesses]
    assert sure == sorted(sure)
    heads = [
        f"{site.path}.{head}" for site in bench(name).describe().model.sites for head in range(site.heads)
    ]
    assert {say(name, seven, Off(head)) for head in heads} == {"7"}
    assert say(name, seven, Swap(digits.SITE), other=one) == "1"
    truth, said = misread(name)
    assert f"a {truth} that the model reads as a {said}." in fact(digits.TOUR, 7)


@node
def test_what_is_said_of_the_grid() -> None:
    name, site = grids.GRID, grids.SITE
    first = drawn(name, grids.ONE, grids.SEVEN, grids.FOUR, grids.ONE)
    second = drawn(name, grids.FOUR, grids.FOUR, grids.ONE, grids.SEVEN)
    scene = look(name, first)
    assert f"the model reads {scene.answer.text}." in fact(grids.TOUR, 1)
    pattern = scene.patterns[site].array[0].reshape(4, 2, 2, 2, 2).sum(axis=(2, 4)).reshape(4, 4)
    assert np.all(np.diag(pattern) > 0.9)  # (digit, cell), of 2 x 2 patches each
    for given in (first, second):
        assert f"it says {say(name, given, Off(site))}, whatever" in fact(grids.TOUR, 4)
    assert f"read as {say(name, first, Scale(grids.HEAD, 0.0))}:" in fact(grids.TOUR, 5)
    assert say(name, first, Swap(site), other=second) == say(name, second) == "4417"
    truth, said = misread(name)
    assert truth is not None
    assert [a == b for a, b in zip(truth, said, strict=True)].count(False) >= 1
