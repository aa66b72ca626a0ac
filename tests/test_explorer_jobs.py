"""Jobs of the explorer find what the same methods of a run find, with edits too, and can be stopped."""

import re
from typing import Any

import pytest
import torch
from torch import nn

import attnlab
from attnlab.errors import InputError, LabError
from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Off, Swap
from attnlab.explorer.jobs import StoppedError
from attnlab.explorer.scene import ExampleInput, Job, JobResult, PixelsInput, Question, TextInput
from attnlab.front.loading import load
from attnlab.front.run import Run
from attnlab.results import Part, Result, Table
from tiny_digits import VIT, untrained_digits

UNSORTED = TextInput("3 5 5 9 8")
EDIT = Off("encoder.0.self.1", "mean")


@pytest.fixture(scope="module")
def run() -> Run:
    return load("zoo:sorter")


@pytest.fixture(scope="module")
def bench(run: Run) -> Bench:
    return Bench.of_run(run)


def cells(parts: list[Part]) -> list[list[list[str]]]:
    return [[[c.strip() for c in row] for row in part.rows] for part in parts if isinstance(part, Table)]


def same(found: JobResult, wanted: Result) -> None:
    """The same tables, sentences and number of figures."""
    assert [table.rows for table in found.tables] == cells(wanted.tables())
    assert found.sentences == [part for part in wanted.tables() if isinstance(part, str)]
    assert len(found.figures) == len(wanted.figures())
    assert all(figure.startswith("<svg") for figure in found.figures)


def test_heads_on_examples_are_those_of_the_run(run: Run, bench: Bench) -> None:
    found = bench.work(Job("heads", examples=31, split="test"))
    assert found.title == "heads of 31 test examples, zoo:sorter"
    same(found, run.heads(split="test", examples=31))
    with run.changed(EDIT):
        same(bench.work(Job("heads", examples=31, edits=(EDIT,))), run.heads(examples=31))


def test_ablation_of_examples_is_that_of_the_run(run: Run, bench: Bench) -> None:
    told = list[tuple[int, int]]()
    found = bench.work(Job("ablate", examples=29), lambda done, total: told.append((done, total)))
    same(found, run.ablate(baselines=("mean", "zero", "resample"), examples=29))
    assert told[0] == (0, 1)
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert (bench.inputs.model.training, run.edited) == (False, False)


def test_one_input_is_asked_with_edits(bench: Bench) -> None:
    edits = (Swap("encoder.1"), EDIT)
    found = bench.work(Job("ablate", input=UNSORTED, edits=edits, other=TextInput("1 2 3 4 5")))
    assert found.title == "ablate of 3 5 5 9 8, zoo:sorter, with 2 edits"
    assert found.tables[0].columns == ["head", "mean", "zero", "rise of loss"]
    lost = {row[0]: row[1:] for row in found.tables[0].rows}
    assert len(lost) == 8
    assert [float(lost["encoder.0.self.1"][0].split()[0]), float(lost["encoder.0.self.1"][2])] == [0, 0]


def test_an_explanation_is_that_of_the_run(run: Run, bench: Bench) -> None:
    same(bench.work(Job("explain", input=ExampleInput("test", 3))), run.explain("test:3"))
    with run.changed(EDIT):
        same(bench.work(Job("explain", input=UNSORTED, edits=(EDIT,))), run.explain("3 5 5 9 8"))


def test_a_judgement_is_that_of_the_run(run: Run, bench: Bench) -> None:
    same(bench.work(Job("explain", examples=3, split="test")), run.explain(many=3))


def test_a_job_is_stopped_by_whoever_hears_of_its_progress(bench: Bench) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise StoppedError("enough")

    before = bench.look(Question(UNSORTED)).answer
    for analysis in ("ablate", "heads", "explain"):
        with pytest.raises(StoppedError, match="enough"):
            bench.work(Job(analysis, examples=17, edits=(EDIT,)), stop)
    assert bench.look(Question(UNSORTED)).answer == before


def test_images_are_worked_on_as_they_are_drawn(tmp_path: Any) -> None:
    run = untrained_digits(tmp_path, VIT)
    bench = Bench.of_run(run)
    scene = bench.look(Question(ExampleInput("test", 3)))
    assert scene.input.pixels is not None
    drawn = PixelsInput(scene.input.pixels)
    for given, truth in ((drawn, None), (ExampleInput("test", 3), scene.input.truth)):
        found = bench.work(Job("explain", input=given))
        assert f"→ {scene.answer.text}" in found.tables[0].title
        wrong = truth is not None and truth != scene.answer.text
        assert ("wrong, it is" in found.tables[0].title) is wrong
    heads = bench.work(Job("heads", input=drawn))
    assert sum(len(table.rows) - 1 for table in heads.tables[:-1]) == 6
    with pytest.raises(InputError, match=re.escape("must be (1, 28, 28)")):
        bench.work(Job("heads", input=PixelsInput(type(drawn.pixels)(drawn.pixels.array[:, :27]))))


def test_a_wrapped_model_is_worked_on() -> None:
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(10, 5, 7, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    module = nn.Sequential(nn.Embedding(13, 10), encoder, nn.Flatten(), nn.Linear(70, 3)).eval()
    data = attnlab.examples(torch.randint(13, (11, 7)), torch.randint(3, (11,)))
    model = attnlab.wrap(module, inputs=data.inputs)
    bench = Bench.of_model(model, data, name="mine")
    found = bench.work(Job("ablate", examples=11))
    wanted = model.ablate(data, baselines=("mean", "zero", "resample"))
    assert [table.rows for table in found.tables] == cells(wanted.tables())
    assert found.tables[0].title.startswith("mine, ")
    one = bench.work(Job("explain", input=ExampleInput("valid", 2)))
    explained = model.explain(data[2:3], data=data)
    assert [table.rows for table in one.tables] == cells(explained.tables())
    with pytest.raises(LabError, match="no valid example 11"):
        bench.work(Job("heads", input=ExampleInput("valid", 11)))
