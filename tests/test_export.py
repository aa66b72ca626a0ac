"""Models as ONNX graphs: every kind of model, any batch and length, refused when they differ from torch.

Their instructions are what the task says, and enough to use a graph with onnxruntime alone.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import jaxtyping
import onnx
import pytest
import torch
from torch import Tensor

from attnlab.errors import LabError
from attnlab.export import (
    Trial,
    compare,
    export_run,
    make_graph,
    make_instructions,
    require_onnx,
    run_trial,
)
from attnlab.export.graph import BATCHES, TOLERANCE
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.problems.addition import Addition
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.runs import RunFolder, create_run, open_run, save_weights
from attnlab.specs import (
    Alibi,
    CNNModel,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Randomised,
    Seq2SeqModel,
    Spec,
    Task,
    TokensModel,
    VitModel,
)
from commands import complaint
from tiny_digits import write_squares

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a graph is made, sizes are symbols and not whole numbers, which no annotation allows."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


SMALL: dict[str, Any] = {"width": 8, "heads": 2, "hidden": 5}
STACKS: dict[str, Any] = {**SMALL, "encoder_layers": 1, "decoder_layers": 1}

KINDS: dict[str, tuple[Task, ModelSpec]] = {
    "adder": (Addition(digits=2, train=7, valid=5, test=5), Seq2SeqModel(**STACKS)),
    "lists": (
        Sorting(train=7, valid=11, test=5),
        TokensModel(**SMALL, layers=2, positions=Alibi(), window=3, log_scale=16),
    ),
    "random places": (
        Sorting(train=7, valid=11, test=5),
        TokensModel(**SMALL, layers=1, positions=Randomised()),
    ),
    "patches": (Digits(), PatchAttentionModel(width=8, heads=2, projection=True, residual=True)),
    "filters": (Digits(), CNNModel(filters=3)),
    "vit": (Digits(), VitModel(**SMALL, layers=1, patch=7)),
    "grids": (Grids(rows=1, columns=3, test=5), PatchSeq2SeqModel(rows=1, columns=3, **STACKS)),
}


def made(folder: Path, task: Task, model: ModelSpec) -> RunFolder:
    """A run with its first weights."""
    if isinstance(task, Digits | Grids):
        task = replace(task, directory=str(write_squares(folder / "squares")))
    spec = Spec(task=task, model=model)
    run = create_run(folder / "run", spec)
    torch.manual_seed(3)
    built = build_model(model, vocabulary=task.vocabulary, tokens=task.tokens)
    save_weights(run, "best", built.state_dict())
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_is_the_same_graph_at_all_sizes(kind: str, tmp_path: Path) -> None:
    run = made(tmp_path, *KINDS[kind])
    path = tmp_path / "model.onnx"
    found = export_run(run, path)
    trial = run_trial(run)
    assert len(found.checks) == len(BATCHES) * len(trial.lengths)
    assert 0 <= found.difference <= TOLERANCE
    assert len(path.read_bytes()) == found.bytes
    for part, name, axes in zip(found.inputs, trial.names, trial.free, strict=True):
        sizes = {0: "batch", 1: f"{name}_length"}
        assert [part.shape[axis] for axis in axes] == [sizes[axis] for axis in axes]
    notes = {note.key: note.value for note in onnx.load(path).metadata_props}
    assert notes["run"] == "run"
    assert notes["task"] == run.spec().task.kind
    assert ("start" in notes) == (kind in ("adder", "grids"))
    beside = json.loads(Path(found.instructions).read_text())
    assert found.instructions == f"{path}.json"
    assert json.loads(notes["instructions"]) == beside == make_instructions(run, trial).to_json()


@pytest.mark.parametrize(
    ("kind", "lengths"),
    [
        ("adder", ((5, 4), (5, 1), (3, 2), (20, 16))),
        ("lists", ((16,), (5,), (2,), (64,))),
        ("few places", ((16,), (5,), (2,))),
        ("long lists", ((200,), (5,), (2,))),
        ("vit", ((),)),
        ("grids", ((3,), (2,), (1,))),
    ],
)
def test_source_and_target_are_tried_at_other_lengths(
    kind: str, lengths: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    """Also well beyond training, where the model has places for it and memory is not the limit."""
    kinds = {
        **KINDS,
        "few places": (
            Sorting(train=7, valid=11, test=5),
            TokensModel(**SMALL, layers=1, positions=Randomised(limit=63)),
        ),
        "long lists": (Sorting(high=200, train=7, valid=11, test=5), TokensModel(**SMALL, layers=1)),
    }
    trial = run_trial(made(tmp_path, *kinds[kind]))
    assert trial.lengths == lengths
    for each in lengths:
        tokens = [part for part in trial.inputs(7, each) if not part.is_floating_point()]
        assert [tuple(part.shape) for part in tokens] == [(7, length) for length in each]


class Doubling(Model):
    """Not what its graph will be."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x


def test_a_graph_that_differs_is_refused_with_the_difference(tmp_path: Path) -> None:
    model = Doubling()
    trial = Trial(model, ("x",), ((0,),), lambda batch, _: (torch.ones(batch, 5),), ((),))
    graph = make_graph(trial, {})
    assert [check.difference for check in compare(trial, graph)] == [0.0] * len(BATCHES)
    model.factor = 1.01
    with pytest.raises(LabError, match=r"by 0.0099 of the largest logit at batch 1, and 0.0001"):
        compare(trial, graph)
    model.factor = float("nan")
    with pytest.raises(LabError, match="differs from torch by nan"):
        compare(trial, graph)


class Branching(Model):
    """What it does depends on values that no graph knows."""

    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.sum()) > 0 else -x


def test_a_model_that_is_no_graph_is_refused() -> None:
    trial = Trial(Branching(), ("x",), ((0,),), lambda batch, _: (torch.ones(batch, 5),), ((),))
    with pytest.raises(LabError, match="torch can make no graph of this model"):
        make_graph(trial, {})


def test_a_refused_graph_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(tmp_path, *KINDS["filters"])
    path = tmp_path / "model.onnx"
    path.write_text("old")
    monkeypatch.setattr("attnlab.export.graph.TOLERANCE", -1.0)
    with pytest.raises(LabError, match="nothing was written"):
        export_run(run, path)
    assert path.read_text() == "old"


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(LabError, match=r"export needs the package onnx; pip install 'attnlab\[onnx\]'"):
        require_onnx()


@pytest.mark.parametrize("order", ["least", "most"])
def test_instructions_of_a_sequence(order: Literal["least", "most"], tmp_path: Path) -> None:
    task, model = KINDS["adder"]
    run = made(tmp_path, replace(cast(Addition, task), order=order), model)
    told = make_instructions(run, run_trial(run))
    assert told.input_symbols == told.output_symbols == list("0123456789+·⊢⊣")
    assert (told.start, told.end, told.steps, told.padding, told.scaling) == (12, 13, 4, None, None)
    assert told.places[0] == {"least": "10^0", "most": "10^2"}[order]
    assert told.to_json()["task"]["order"] == order
    assert {"least": "the ones", "most": "the most significant digit"}[order] in told.about
    assert "begin with target = [[start]]" in told.decoding
    assert told.example is not None
    first, second = told.example.text.split("+")
    written = [each.zfill(2)[:: -1 if order == "least" else 1] for each in (first, second)]
    assert [told.input_symbols[token] for token in told.example.input] == list("+".join(written))
    assert run.spec().task.answer(torch.tensor(told.example.output)) == told.example.answer


def test_instructions_of_a_class(tmp_path: Path) -> None:
    run = made(tmp_path, *KINDS["lists"])
    told = make_instructions(run, run_trial(run))
    assert told.input_symbols == [*map(str, range(100)), "·", ""]  # the last is put in front by the model
    assert told.output_symbols == ["unsorted", "sorted"]
    assert (told.start, told.end, told.steps, told.padding, told.scaling) == (None, None, 0, 100, None)
    assert told.decoding == "the answer is the one of output_symbols that has the highest logit"
    assert told.example is not None
    assert told.output_symbols[told.example.output[0]] == told.example.answer


def test_instructions_of_images(tmp_path: Path) -> None:
    task, model = KINDS["grids"]
    run = made(tmp_path, replace(cast(Grids, task), scaling="signed"), model)
    told = make_instructions(run, run_trial(run))
    assert (told.input_symbols, told.example) == (None, None)
    assert told.output_symbols == [*"0123456789", "⊢"]
    assert (told.start, told.end, told.steps, told.places) == (10, None, 3, ["0,0", "0,1", "0,2"])
    assert told.scaling is not None
    assert (told.scaling.mean, told.scaling.deviation) == (0.5, 0.5)
    assert told.about.startswith(
        "images: (pixels of 0 to 1, ink 1, less 0.5) / 0.5; target: the start token"
    )


DOCUMENT = Path(__file__).parents[1] / "docs/howto/export.md"
SCRIPTS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.mark.parametrize(("name", "printed"), [("adder", "1188"), ("sorter", "unsorted")])
def test_the_scripts_of_the_document_need_onnxruntime_alone(
    name: str, printed: str, tmp_path: Path
) -> None:
    (script,) = (each for each in SCRIPTS if f"{name}.onnx" in each)
    assert set(re.findall(r"^import (.*)$", script, re.MULTILINE)) == {"json, numpy, onnxruntime"}
    assert len(script.strip().splitlines()) <= 12
    export_run(open_run(f"zoo:{name}"), tmp_path / f"{name}.onnx")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (f"{printed}\n", "")


def test_the_shipped_adder_adds_without_torch() -> None:
    """Greedy decoding by the graph alone gives the sums."""
    run = open_run("zoo:adder")
    graph = make_graph(run_trial(run), {})
    task = Addition(order="least")
    pairs = torch.tensor([[374, 814], [999, 1], [0, 0]])
    said = graph.greedy(task.source(pairs), start=task.start, length=task.target_length)
    assert [task.answer(tokens) for tokens in said] == ["1188", "1000", "0"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    words = complaint("export", "zoo:adder", "--onnx", tmp_path, cwd=tmp_path)
    assert "it must name a file, such as model.onnx" in words
