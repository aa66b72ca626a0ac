"""A scene of the engine is the scene of the bench: one contract, whoever answers."""

from functools import cache
from typing import Any

import pytest
import torch

from attnlab.explorer.bench import Bench
from attnlab.explorer.description import describe_engine
from attnlab.explorer.edits import read_edit
from attnlab.explorer.scene import Question, Scene, TextInput, Want
from attnlab.runs import open_run
from js_engine import EngineModel, engine, tensor

INPUTS = {"adder": ("999+1", "12+380"), "sorter": ("3 5 5 8 13 21 34 55", "9 8 1 2 3 4")}
EDITS: dict[str, list[list[dict[str, Any]]]] = {
    "adder": [
        [],
        [{"op": "off", "at": "decoder.0.cross.1", "to": "mean"}],
        [
            {"op": "off", "at": "encoder.1", "to": "resample"},
            {"op": "scale", "at": "encoder.0.self", "by": 3},
        ],
        [{"op": "swap", "at": "encoder.0.self"}, {"op": "off", "at": "decoder.1.feed", "to": "zero"}],
        [
            {
                "op": "pattern",
                "at": "decoder.1.self.2",
                "rows": {"1": [0.5, 0.5, 0, 0, 0], "3": [0, 0, 1, 0, 0]},
            }
        ],
    ],
    "sorter": [
        [],
        [{"op": "off", "at": "encoder.0.self.1", "to": "mean"}],
        [{"op": "off", "at": "encoder.1.feed", "to": "resample"}],
        [{"op": "swap", "at": "encoder.0"}],
    ],
}


@cache
def both(name: str) -> tuple[Bench, EngineModel]:
    """A shipped run on the bench and in the engine, with what the bench puts in the place of outputs."""
    run = open_run(f"zoo:{name}")
    bench, task = Bench.of_run(run), run.spec().task
    stand_ins = bench.answerer.stand_ins
    means = {tap: value[0] for tap, value in stand_ins.get("mean", 0).items()}
    example = stand_ins.other(len(_given(bench, INPUTS[name][0])["tokens"]))
    other = {"tokens": example.inputs[0][0].tolist(), "answer": example.targets.flatten().tolist()}
    words = {"symbols": bench.describe().task.labels, "places": task.places(), "text": ""}
    made = engine().make(
        f"bench {name}",
        describe_engine(run),
        run.model.state_dict(),
        means=means,
        examples=[other],
        words=words,
    )
    return bench, made


def _given(bench: Bench, text: str) -> dict[str, Any]:
    given = bench.inputs.read(TextInput(text))
    shown = given.shown
    targets = None if given.targets is None else given.targets.flatten().tolist()
    tokens = given.inputs[0][0].tolist()
    return {
        "tokens": tokens,
        "labels": shown.labels,
        "name": shown.name,
        "truth": shown.truth,
        "target": targets,
    }


@pytest.mark.parametrize(
    ("name", "edits"), [(name, each) for name, every in EDITS.items() for each in every]
)
def test_the_same_scene(name: str, edits: list[dict[str, Any]]) -> None:
    bench, made = both(name)
    text, other = INPUTS[name]
    feed = "encoder.0.feed"
    question = Question(
        TextInput(text), TextInput(other), tuple(map(read_edit, edits)), want=Want(neurons=feed)
    )
    wanted = bench.look(question)
    found = made.scene(_given(bench, text), other=_given(bench, other), edits=edits, want={"neurons": feed})
    _same(found, wanted)


def _same(found: Any, wanted: Scene) -> None:
    assert found["input"] == {
        "name": wanted.input.name,
        "labels": wanted.input.labels,
        "truth": wanted.input.truth,
        "pixels": None,
    }
    assert found["labels"] == vars(wanted.labels)
    answer = wanted.answer
    assert found["answer"]["correct"] == answer.correct
    assert found["answer"]["probability"] == pytest.approx(answer.probability, rel=1e-3)
    for token, other in zip(found["answer"]["tokens"], answer.tokens, strict=True):
        assert (token["label"], token["place"]) == (other.label, other.place)
        assert token["probability"] == pytest.approx(other.probability, abs=1e-4)
        assert [chance for _, chance in token["top"]] == pytest.approx([c for _, c in other.top], abs=1e-4)
    assert found["patterns"].keys() == wanted.patterns.keys()
    values = [(found["patterns"][path], each) for path, each in wanted.patterns.items()]
    assert [each["path"] for each in found["guesses"]] == [each.path for each in wanted.guesses]
    values += [
        (one["values"], two.values) for one, two in zip(found["guesses"], wanted.guesses, strict=True)
    ]
    assert wanted.neurons is not None
    values.append((found["neurons"]["values"], wanted.neurons.values))
    for one, two in values:
        torch.testing.assert_close(tensor(one), torch.from_numpy(two.array), atol=1e-4, rtol=1e-4)
