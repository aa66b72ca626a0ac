import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from attnlab.errors import LabError, RunError
from attnlab.presets import preset
from attnlab.runs import (
    Run,
    create_run,
    list_runs,
    load_task_and_model,
    open_run,
    save_weights,
    unused_path,
)
from attnlab.spec import AdditionTask, Seq2SeqModel, Spec, Training, to_json
from attnlab.training import train_run

SPEC = Spec(
    task=AdditionTask(digits=1, train=20, valid=5, test=7),
    model=Seq2SeqModel(width=8, heads=2, hidden=11, encoder_layers=1, decoder_layers=1),
    training=Training(epochs=2, batch=7, threads=1),
    seed=5,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = create_run(tmp_path_factory.mktemp("runs") / "run", SPEC)
    train_run(run)
    return run.path


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def test_a_finished_run_holds_all_that_is_known_of_it(trained: Path) -> None:
    run = open_run(str(trained))
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "spec.json", "environment.json", "metrics.jsonl", "summary.json", "best.safetensors",
        "last.safetensors",
    }  # fmt: skip
    assert run.spec() == SPEC
    summary = run.summary()
    assert summary is not None
    assert (summary["steps"], summary["epochs"]) == (6, 2)
    epochs = [line for line in run.metrics() if line["event"] == "epoch"]
    assert [line["epoch"] for line in epochs] == [1, 2]
    assert summary["lowest_valid_loss"] == min(line["valid_loss"] for line in epochs)
    assert run.environment()["chosen_threads"] == 1


def test_weights_come_back_bit_for_bit(trained: Path, tmp_path: Path) -> None:
    _, model = load_task_and_model(Run(trained), "last")
    save_weights(tmp_path / "again", model)
    assert (tmp_path / "again").read_bytes() == (trained / "last.safetensors").read_bytes()


def test_loading_leaves_the_global_generator_alone(trained: Path) -> None:
    torch.manual_seed(17)
    expected = torch.rand(3)
    torch.manual_seed(17)
    load_task_and_model(Run(trained))
    assert torch.equal(torch.rand(3), expected)


def test_an_existing_folder_is_not_written_into(trained: Path) -> None:
    before = (trained / "spec.json").read_bytes()
    with pytest.raises(RunError, match="exists already and is not empty; choose another folder with --out"):
        create_run(trained, preset("addition", "default"))
    assert (trained / "spec.json").read_bytes() == before


def test_analyses_are_kept_but_not_in_shipped_runs(copy: Path) -> None:
    assert Run(copy).analysis("verify") is None
    assert Run(copy, shipped=True).keep_analysis("verify", {"correct": 3}) is None
    assert Run(copy).analysis("verify") is None
    assert Run(copy).keep_analysis("verify", {"correct": 3}) == copy / "analysis" / "verify.json"
    assert Run(copy).analysis("verify") == {"correct": 3}


def test_listing_and_naming(trained: Path, tmp_path: Path) -> None:
    assert [run.path for run in list_runs(trained.parent)] == [trained]
    assert list_runs(tmp_path / "nowhere") == []
    assert unused_path(trained.parent, "new").name == "new"
    assert unused_path(trained.parent, "run").name == "run-2"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", "run 'nowhere' is no folder; 'attnlab runs' lists the runs there are"),
        (".", "folder '.' holds no run: spec.json is missing"),
        ("zoo:ader", "'zoo:ader' is not shipped; did you mean 'adder'\\?"),
    ],
)
def test_opening_what_is_no_run(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=text):
        open_run(name)


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("spec.json", b"{", "spec.json cannot be read"),
        ("spec.json", b"[]", "spec.json cannot be read .spec is \\[\\], but it must be an object"),
        ("spec.json", b'{"sed": 1}', "spec.sed is no known key; did you mean 'seed'"),
        ("spec.json", b"\xff\xfe", "spec.json cannot be read"),
        ("best.safetensors", b"short", "best.safetensors cannot be read"),
        ("best.safetensors", None, "has no best.safetensors; .*go on with 'attnlab train --resume"),
        ("spec.json", None, "spec.json is missing"),
    ],
)
def test_damaged_runs(file: str, content: bytes | None, text: str, copy: Path) -> None:
    if content is None:
        (copy / file).unlink()
    else:
        (copy / file).write_bytes(content)
    with pytest.raises(RunError, match=text):
        load_task_and_model(Run(copy))


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_truncated_weights_are_refused(cut: int, copy: Path) -> None:
    path = copy / "best.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(RunError, match=r"best.safetensors cannot be read"):
        load_task_and_model(Run(copy))


def test_weights_of_another_shape_are_refused(copy: Path) -> None:
    data = to_json(SPEC)
    data["model"]["hidden"] = 13
    (copy / "spec.json").write_text(json.dumps(data))
    text = (
        r"do not fit the run's spec: decoder.0.feed.down.weight is \(8, 11\), but the spec needs \(8, 13\)"
    )
    with pytest.raises(RunError, match=text):
        load_task_and_model(Run(copy))


def test_missing_and_surplus_weights_are_refused(copy: Path) -> None:
    save_file({"surplus": torch.zeros(2)}, copy / "best.safetensors")
    with pytest.raises(RunError, match="is absent, but the spec needs"):
        load_task_and_model(Run(copy))


def test_a_state_of_another_spec_is_refused(copy: Path) -> None:
    (copy / "summary.json").unlink()
    save_file({"model.x": torch.zeros(2)}, copy / "state.safetensors", metadata={"numbers": "{}"})
    with pytest.raises(LabError, match=r"state.safetensors does not fit the run's spec"):
        train_run(Run(copy))
    (copy / "state.safetensors").write_bytes(b"x")
    with pytest.raises(LabError, match=r"is damaged: state.safetensors cannot be read"):
        train_run(Run(copy))


def test_damaged_metrics(copy: Path) -> None:
    (copy / "metrics.jsonl").write_text("{\n{}\n")
    with pytest.raises(RunError, match=r"metrics.jsonl is damaged"):
        Run(copy).metrics()
