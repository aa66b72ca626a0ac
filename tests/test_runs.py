import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from attnlab.errors import LabError, RunError, StorageError
from attnlab.presets import preset
from attnlab.problems.addition import Addition
from attnlab.runs import (
    RunFolder,
    create_run,
    load_model,
    open_run,
    run_folders,
    save_if_larger,
    save_weights,
    unused_path,
    why_kept_stays,
)
from attnlab.specs import Seq2SeqModel, Spec, Training, spec_hash, to_json
from attnlab.storage import write_json
from attnlab.training import train_run

SPEC = Spec(
    task=Addition(digits=1, train=20, valid=5, test=7),
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
    names = {path.name for path in trained.iterdir() if path.name != ".lock"}
    assert names == {
        "spec.json", "environment.json", "metrics.jsonl", "summary.json", "best.safetensors",
        "last.safetensors",
    }  # fmt: skip
    assert run.spec() == SPEC
    summary = run.summary()
    assert summary is not None
    assert (summary["steps"], summary["epochs"]) == (6, 2)
    epochs = run.metrics().epochs
    assert [each.epoch for each in epochs] == [1, 2]
    assert summary["lowest_valid_loss"] == min(each.valid_loss for each in epochs)
    assert run.environment().chosen_threads == 1


def test_weights_come_back_bit_for_bit(trained: Path, tmp_path: Path) -> None:
    model = load_model(RunFolder(trained), "last")
    save_weights(tmp_path / "again", model.state_dict())
    assert (tmp_path / "again").read_bytes() == (trained / "last.safetensors").read_bytes()


def test_loading_leaves_the_global_generator_alone(trained: Path) -> None:
    torch.manual_seed(17)
    expected = torch.rand(3)
    torch.manual_seed(17)
    load_model(RunFolder(trained))
    assert torch.equal(torch.rand(3), expected)


def test_an_existing_folder_is_not_written_into(trained: Path) -> None:
    before = (trained / "spec.json").read_bytes()
    with pytest.raises(RunError, match="exists already and is not empty; choose another folder for out"):
        create_run(trained, preset("addition", "default"))
    assert (trained / "spec.json").read_bytes() == before


def test_analyses_are_kept_but_not_in_shipped_runs(copy: Path) -> None:
    assert RunFolder(copy).analysis("verify") is None
    assert RunFolder(copy, shipped=True).keep_analysis("verify", {"correct": 3}) is None
    assert RunFolder(copy).analysis("verify") is None
    assert RunFolder(copy).keep_analysis("verify", {"correct": 3}) == copy / "analysis" / "verify.json"
    found = RunFolder(copy).analysis("verify")
    assert found is not None
    assert found["correct"] == 3


def test_an_analysis_of_other_weights_is_not_shown(copy: Path) -> None:
    RunFolder(copy).keep_analysis("verify", {"correct": 3})
    shutil.copy(copy / "last.safetensors", copy / "best.safetensors")
    model = load_model(RunFolder(copy))
    assert RunFolder(copy).analysis("verify") == {"correct": 3, "weights": RunFolder(copy)._fingerprint()}
    with torch.no_grad():
        model.get_parameter("readout.bias").add_(1)
    save_weights(copy / "best.safetensors", model.state_dict())
    assert RunFolder(copy).analysis("verify") is None


def test_a_run_is_trained_by_one_process_at_a_time(copy: Path) -> None:
    with RunFolder(copy).lock(), pytest.raises(RunError, match="is being trained by another process"):
        train_run(RunFolder(copy))
    assert train_run(RunFolder(copy)) == RunFolder(copy).summary()


def test_a_run_knows_its_name_wherever_one_stands(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy)
    assert open_run(".").name == "copy"


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("metrics.jsonl", "{\n{}\n", "metrics.jsonl cannot be read"),
        ("metrics.jsonl", "{}\n", "metrics.jsonl cannot be read .'event'"),
        ("metrics.jsonl", '{"event": "step", "step": 1}\n', "a line of metrics.jsonl lacks a value"),
        ("summary.json", "{}", "summary.json lacks a value"),
        ("summary.json", "[]", "summary.json cannot be read .\\[\\] is no object"),
        ("environment.json", "3", "environment.json cannot be read .3 is no object"),
    ],
)
def test_damaged_records(file: str, content: str, text: str, copy: Path) -> None:
    (copy / file).write_text(content)
    run = RunFolder(copy)
    with pytest.raises(RunError, match=text):
        {"metrics.jsonl": run.metrics, "summary.json": run.summary, "environment.json": run.environment}[
            file
        ]()


def test_names_that_are_too_long(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no folder"):
        open_run("x" * 300)
    with pytest.raises(StorageError, match="file name too long"):
        create_run(tmp_path / ("x" * 300), SPEC)


def test_listing_and_naming(trained: Path, tmp_path: Path) -> None:
    assert [run.path for run in run_folders(trained.parent)] == [trained]
    assert run_folders(tmp_path / "nowhere") == []
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
        ("best.safetensors", None, "has no best.safetensors; .*stopped early, resume it$"),
        ("spec.json", None, "spec.json is missing"),
    ],
)
def test_damaged_runs(file: str, content: bytes | None, text: str, copy: Path) -> None:
    if content is None:
        (copy / file).unlink()
    else:
        (copy / file).write_bytes(content)
    with pytest.raises(RunError, match=text):
        load_model(RunFolder(copy))


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_truncated_weights_are_refused(cut: int, copy: Path) -> None:
    path = copy / "best.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(RunError, match=r"best.safetensors cannot be read"):
        load_model(RunFolder(copy))


def test_weights_of_another_shape_are_refused(copy: Path) -> None:
    data = to_json(SPEC)
    data["model"]["hidden"] = 13
    (copy / "spec.json").write_text(json.dumps(data))
    text = (
        r"do not fit the run's spec: decoder.0.feed.down.weight is \(8, 11\), but the spec needs \(8, 13\)"
    )
    with pytest.raises(RunError, match=text):
        load_model(RunFolder(copy))


def test_missing_and_surplus_weights_are_refused(copy: Path) -> None:
    save_file({"surplus": torch.zeros(2)}, copy / "best.safetensors")
    with pytest.raises(RunError, match="is absent, but the spec needs"):
        load_model(RunFolder(copy))


def test_states_that_cannot_be_taken_up(copy: Path) -> None:
    (copy / "summary.json").unlink()
    state = copy / "state.safetensors"
    save_file(
        {"model.x": torch.zeros(2)}, state, metadata={"numbers": json.dumps({"spec": spec_hash(SPEC)})}
    )
    with pytest.raises(LabError, match=r"state.safetensors does not fit the run's spec"):
        train_run(RunFolder(copy))
    state.write_bytes(b"x")
    with pytest.raises(LabError, match=r"is damaged: state.safetensors cannot be read"):
        train_run(RunFolder(copy))


def test_a_spec_changed_in_mid_training_is_refused(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    steps = iter([False, False, True])
    assert train_run(run, stopping=lambda: next(steps)) is None
    write_json(run.file("spec.json"), to_json(replace(SPEC, seed=6)))
    with pytest.raises(
        RunError, match=r"spec.json was changed after training began; start a new run with it"
    ):
        train_run(run)
    write_json(run.file("spec.json"), to_json(SPEC))
    assert train_run(run) is not None


def test_the_fuller_of_two_results_is_kept(copy: Path) -> None:
    run = RunFolder(copy)
    save_if_larger(run, "some", {"examples": 7, "points": 3}, "examples", "points")
    for poorer in ({"examples": 5, "points": 11}, {"examples": 11, "points": 2}):
        save_if_larger(run, "some", poorer, "examples", "points")
        kept = run.analysis("some")
        assert kept is not None
        assert (kept["examples"], kept["points"]) == (7, 3)
    again = {"examples": 7, "points": 3, "fresh": True}
    save_if_larger(run, "some", again, "examples", "points")
    kept = run.analysis("some")
    assert kept is not None
    assert kept["fresh"] is True
    assert why_kept_stays(run, "some", {"examples": 7, "points": 2}, "examples", "points") == (
        f"{copy}/analysis/some.json stays as it is: it is of 3 points, this is of 2"
    )
    assert why_kept_stays(RunFolder(copy, shipped=True), "some", {"examples": 1}, "examples") is None
    assert why_kept_stays(run, "other", {"examples": 1}, "examples") is None
