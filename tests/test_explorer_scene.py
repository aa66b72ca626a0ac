"""Scenes are what recording and predicting give, and a subject says what its run and its model are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import InputError
from attnlab.explorer.answering import ended
from attnlab.explorer.bench import Bench
from attnlab.explorer.messages import pack
from attnlab.explorer.scene import (
    ExampleInput,
    ImageForm,
    Input,
    PatchForm,
    PixelsInput,
    Question,
    Scene,
    Stratum,
    TextInput,
    Values,
    Want,
)
from attnlab.front.loading import load
from attnlab.front.run import Run

EXAMPLES = Path(__file__).parents[1] / "examples"
GIVEN: dict[str, tuple[Input, str]] = {
    "adder": (TextInput("999+1"), "999+1"),
    "sorter": (TextInput("3 5 5 9 8"), "3 5 5 9 8"),
    "digit": (ExampleInput("test", 7), "test:7"),
    "grid": (ExampleInput("test", 7), "test:7"),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {name: load(f"zoo:{name}") for name in GIVEN}


@pytest.fixture(scope="module")
def benches(runs: dict[str, Run]) -> dict[str, Bench]:
    return {name: Bench.of_run(run) for name, run in runs.items()}


@pytest.mark.parametrize("name", GIVEN)
def test_a_scene_is_what_predict_and_record_give(
    name: str, runs: dict[str, Run], benches: dict[str, Bench]
) -> None:
    given, text = GIVEN[name]
    scene, predicted = benches[name].look(Question(given)), runs[name].predict([text])[0]
    assert (scene.input.name, scene.answer.text) == (text, predicted.output)
    assert scene.answer.correct is predicted.correct
    assert scene.answer.probability == pytest.approx(predicted.probability, abs=1e-5)
    recorded = runs[name].record(text, "*.pattern")
    assert [f"{path}.pattern" for path in scene.patterns] == list(recorded)
    for path, values in scene.patterns.items():
        tap = recorded[f"{path}.pattern"]
        torch.testing.assert_close(torch.from_numpy(values.array), tap[0].as_subclass(torch.Tensor))
        site = next(site for site in benches[name].describe().model.sites if site.path == path)
        sides = {"input": scene.labels.input, "answer": scene.labels.answer, "places": scene.labels.places}
        assert (sides[site.queries], sides[site.keys]) == (tap.queries[0], tap.keys[0])


@pytest.mark.parametrize("name", GIVEN)
def test_tokens_and_guesses_belong_together(name: str, benches: dict[str, Bench]) -> None:
    bench = benches[name]
    subject, scene = bench.describe(), bench.look(Question(GIVEN[name][0]))
    labels = subject.task.labels
    assert [each.path for each in scene.guesses] == [each.path for each in subject.model.streams]
    assert [token.place for token in scene.answer.tokens] == subject.task.places
    last = scene.guesses[-1].values.array
    assert last.shape == (len(scene.answer.tokens), len(labels))
    for row, token in zip(last, scene.answer.tokens, strict=True):
        assert labels[row.argmax()] == token.label == token.top[0][0]
        assert row.max() == pytest.approx(token.probability, abs=1e-5)
        assert [chance for _, chance in token.top] == sorted((c for _, c in token.top), reverse=True)
        assert row.sum() == pytest.approx(1, abs=1e-5)
    product = np.prod([token.probability for token in scene.answer.tokens])
    assert scene.answer.probability == pytest.approx(product, rel=1e-5)


def test_the_adder_says_the_ones_first(benches: dict[str, Bench]) -> None:
    subject, scene = benches["adder"].describe(), benches["adder"].look(Question(TextInput("999+1")))
    assert (subject.task.input, subject.task.answer, subject.task.note) == (
        "text",
        "sequence",
        "The ones are said first.",
    )
    assert [token.label for token in scene.answer.tokens] == ["0", "0", "0", "1", "⊣"]
    assert scene.labels.answer == ["⊢", "0", "0", "0", "1"]
    assert subject.task.suggestions == ["1+999", "999+999"]
    assert scene.input.truth == "1000"
    assert [layer.path for layer in subject.model.layers] == [
        *("encoder.0", "encoder.1", "decoder.0", "decoder.1")
    ]
    assert subject.model.layers[2].parts == ["decoder.0.self", "decoder.0.cross", "decoder.0.feed"]
    assert next((feed.path, feed.hidden) for feed in subject.model.feeds) == ("encoder.0.feed", 512)
    assert [stream.name for stream in subject.model.streams] == ["after layer 1", "after layer 2"]
    assert subject.title == "Adding two numbers, digit by digit"
    assert dict(subject.facts)["parameters"] == f"{subject.model.parameters:,}" == "939,790"


def test_what_is_wanted_is_all_that_comes(benches: dict[str, Bench]) -> None:
    want = Want(("decoder.1.cross",), guesses=False, neurons="decoder.0.feed")
    scene = benches["adder"].look(Question(TextInput("12+34"), want=want))
    assert list(scene.patterns) == ["decoder.1.cross"]
    assert scene.guesses == []
    assert scene.neurons is not None
    assert scene.neurons.values.shape == (5, 512)
    nothing = benches["adder"].look(Question(TextInput("12+34"), want=Want(False, False)))
    assert (nothing.patterns, nothing.neurons) == ({}, None)
    assert nothing.answer.text == scene.answer.text == "46"


def test_images_are_described_and_drawn(benches: dict[str, Bench]) -> None:
    digit, grid = benches["digit"].describe(), benches["grid"].describe()
    assert digit.task.image == ImageForm(1, 28, 28, 1, 1, ink=True)
    assert grid.task.image == ImageForm(1, 56, 56, 2, 2, ink=True)
    assert (digit.model.patches, grid.model.patches) == (PatchForm(7, 7, 0), PatchForm(4, 4, 0))
    assert (grid.task.input, grid.task.answer, digit.task.answer) == ("image", "sequence", "class")
    assert grid.task.labels == digit.task.labels == list("0123456789")
    bench = benches["grid"]
    of_split = bench.look(Question(ExampleInput("test", 3)))
    assert of_split.input.pixels is not None
    drawn = bench.look(Question(PixelsInput(of_split.input.pixels)))
    assert drawn.answer.text == of_split.answer.text
    assert (drawn.input.name, drawn.input.truth, drawn.answer.correct) == ("the drawing", None, None)
    assert drawn.patterns == of_split.patterns


def test_examples_go_by_stratum(benches: dict[str, Bench]) -> None:
    bench = benches["adder"]
    known = {each.name: each.count for each in bench.describe().task.splits["test"]}
    assert known["all"] == 2000
    assert known["wrong"] is None
    page = bench.examples("test", "carry chain 3", start=5, count=7)
    assert page.total == known["carry chain 3"]
    assert len(page.items) == 7
    task = bench.inputs.task
    for item in page.items:
        a, b = map(int, item.name.split("+"))
        assert item.truth == str(a + b)
        assert task.chains(torch.tensor([[a, b]])).item() == 3  # type: ignore[attr-defined]
        assert bench.look(Question(ExampleInput("test", item.index))).input.name == item.name
    assert bench.examples("test", "wrong").total == 0
    assert Stratum("wrong", 0) in bench.describe().task.splits["test"]
    with pytest.raises(InputError, match="no stratum 'carry chain 9'; did you mean 'carry chain"):
        bench.examples("test", "carry chain 9")
    assert bench.examples("test", "all", start=1999, count=5).items[0].index == 1999
    assert bench.examples("test", "all", start=2000, count=5).items == []


def test_wrong_examples_are_found_by_class(benches: dict[str, Bench]) -> None:
    bench = benches["sorter"]
    wrong = bench.examples("valid", "wrong", count=200)
    kinds = [bench.examples("valid", f"wrong: {name}", count=200) for name in bench.describe().task.labels]
    assert wrong.total == sum(kind.total for kind in kinds)
    for item in wrong.items[:3]:
        assert bench.look(Question(ExampleInput("valid", item.index))).answer.correct is False


REFUSED: list[tuple[str, Question, str]] = [
    ("adder", Question(TextInput("374*814")), "not a sum of two numbers"),
    ("adder", Question(ExampleInput("test", 2000)), "no test example 2000; they go from 0 to 1,999"),
    ("adder", Question(PixelsInput(Values(np.zeros((1, 2, 2), np.uint8)))), "are no images"),
    ("digit", Question(PixelsInput(Values(np.zeros((1, 29, 28), np.uint8)))), r"must be \(1, 28, 28\)"),
    ("digit", Question(TextInput("/etc/passwd")), "names no image; write test:7"),
    ("sorter", Question(TextInput("1 " * 513)), "has 513 tokens; at most 512 can be explored"),
    ("adder", Question(TextInput("1+1"), snapshot=3), "no snapshot 3; known: none"),
    ("adder", Question(TextInput("1+1"), want=Want(("encoder.9.self",))), "no site 'encoder.9.self'"),
    ("adder", Question(TextInput("1+1"), want=Want(neurons="encoder.9.feed")), "no feed-forward part"),
]


@pytest.mark.parametrize(("name", "question", "message"), REFUSED)
def test_a_wrong_question_is_one_sentence(
    name: str, question: Question, message: str, benches: dict[str, Bench]
) -> None:
    with pytest.raises(InputError, match=message):
        benches[name].look(question)


def test_pictures_are_read_where_inputs_are_images(benches: dict[str, Bench]) -> None:
    with pytest.raises(InputError, match="addition has no pictures"):
        benches["adder"].read(b"")
    with pytest.raises(InputError):
        benches["digit"].read(b"no picture")


def test_a_bench_leaves_the_model_of_its_run_alone(runs: dict[str, Run], benches: dict[str, Bench]) -> None:
    assert benches["adder"].inputs.model is not runs["adder"].model
    assert not runs["adder"].edited


def plain(scene: Scene) -> Scene:
    """Without the time it took."""
    return replace(scene, seconds=0.0)


def test_a_wrapped_model_is_explored_by_examples() -> None:
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(10, 5, 7, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    module = nn.Sequential(nn.Embedding(13, 10), encoder, nn.Linear(10, 3))
    data = attnlab.examples(torch.randint(13, (11, 7)), torch.randint(3, (11, 7)))
    model = attnlab.wrap(module, inputs=data.inputs)
    bench = Bench.of_model(model, data, labels=["a", "b", "c"])
    subject, scene = bench.describe(), bench.look(Question(ExampleInput("valid", 4)))
    with torch.inference_mode():
        logits = model(data.inputs[0][4:5])[0]
    assert scene.answer.text == " ".join("abc"[each] for each in logits.argmax(dim=-1).tolist())
    assert scene.labels.input == [str(token) for token in data.inputs[0][4].tolist()]
    assert (subject.task.input, subject.abilities.ablate, subject.model.streams) == ("examples", True, [])
    assert [site.heads for site in subject.model.sites] == [5, 5]
    assert bench.examples("valid", count=3).total == 11
    assert scene.answer.correct is (scene.answer.text == scene.input.truth)
    assert plain(scene) == plain(bench.look(Question(ExampleInput("valid", 4))))


def test_a_scene_is_small(benches: dict[str, Bench]) -> None:
    json, numbers = pack(benches["adder"].look(Question(TextInput("999+1"))))
    assert len(numbers) == 4 * (2 * 4 * 49 + 2 * 4 * 25 + 2 * 4 * 35 + 2 * 5 * 14)
    assert json["input"] == {
        "name": "999+1",
        "labels": ["9", "9", "9", "+", "1", "0", "0"],
        "truth": "1000",
        "pixels": None,
    }


def test_of_several_ends_the_first_ends_an_answer() -> None:
    said = torch.tensor([[1, 9, 9, 9], [9, 9, 9, 9], [1, 9, 2, 9], [1, 2, 3, 4]])
    assert ended(said, 9).tolist() == [2, 1, 4, 4]
    assert ended(said, None).tolist() == [4] * 4
