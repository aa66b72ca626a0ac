import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from attnlab.cli.drawing import figures_folder
from attnlab.errors import LabError, RunError, StorageError
from attnlab.presets import preset
from attnlab.problems.addition import Addition
from attnlab.reading import MOST_SPEC
from attnlab.runs import (
    RunFolder,
    create_run,
    keep_snapshot,
    load_model,
    numbered,
    open_run,
    run_folders,
    save_if_larger,
    save_weights,
    weights_bytes,
    why_kept_stays,
)
from attnlab.runs.folder import NotKeptWarning
from attnlab.specs import Seq2SeqModel, Spec, Training, spec_hash, to_json
from attnlab.storage import as_json
from attnlab.training import train_run

SUMMARY = '{"steps": 3, "epochs": 1, "seconds": 2.5, "parameters": 7, "valid": {}}'
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
    names = {path.name for path in trained.iterdir() if not path.name.endswith("lock")}
    assert names == {
        "manifest.json", "spec.json", "environment.json", "metrics.jsonl", "observed.json", "summary.json",
        "best.safetensors", "last.safetensors",
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
    assert weights_bytes(model.state_dict()) == (trained / "last.safetensors").read_bytes()


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


def test_nothing_is_written_through_links_in_a_run(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("analysis", "snapshots", "figures"):
        (copy / name).symlink_to(outside)
    run, text = RunFolder(copy), "it is a symbolic link, which leads to .*outside; remove the link"
    with pytest.warns(NotKeptWarning, match=f"not kept: cannot write .*analysis: {text}"):
        assert run.keep_analysis("verify", {}) is None
    with pytest.raises(StorageError, match=f"cannot write .*snapshots: {text}"):
        keep_snapshot(run, 3, {})
    with pytest.raises(StorageError, match=f"cannot write .*figures: {text}"):
        figures_folder(run, "")
    for name, write in ((".lock", run.lock().__enter__), (".manifest.lock", lambda: run.write({}))):
        (copy / name).unlink()
        (copy / name).symlink_to(outside / "file")
        with pytest.raises(StorageError, match=rf"cannot write .*\{name}: it is a symbolic link"):
            write()
    assert list(outside.iterdir()) == []


def test_an_analysis_of_other_weights_is_not_shown(copy: Path) -> None:
    RunFolder(copy).keep_analysis("verify", {"correct": 3})
    RunFolder(copy).write({"best.safetensors": (copy / "last.safetensors").read_bytes()})
    model = load_model(RunFolder(copy))
    assert RunFolder(copy).analysis("verify") == {"correct": 3, "weights": RunFolder(copy)._fingerprint()}
    with torch.no_grad():
        model.get_parameter("readout.bias").add_(1)
    save_weights(RunFolder(copy), "best", model.state_dict())
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
        ("metrics.jsonl", "{}\n", "it.event is None, but it must be 'step' or 'epoch' or 'probe'"),
        ("metrics.jsonl", '{"event": []}\n', r"it.event is \[\], but it must be 'step' or"),
        ("metrics.jsonl", '{"event": "step"}\n3\n', "metrics.jsonl cannot be read .3 is not a JSON object"),
        ("metrics.jsonl", "[" * 100_000 + "\n", "it nests more than 100 levels deep"),
        ("summary.json", "[" * 100_000, "it nests more than 100 levels deep"),
        ("summary.json", "[" * 101 + "]" * 101, "it nests more than 100 levels deep"),
        ("summary.json", SUMMARY.replace('"steps": 3', '"steps": "3"'), "Summary.steps is '3', but"),
        ("summary.json", SUMMARY.replace("{}", "[]"), r"Summary.valid is \[\], but it must be an object"),
        (
            "summary.json",
            SUMMARY.replace("{}", '{"loss": "0"}'),
            "Summary.valid.loss is '0', but it must be",
        ),
        ("environment.json", '{"cores": 1' + 400 * "0" + "}", "Environment.cores is 10.*below 2.63"),
        ("environment.json", '{"threads": []}', r"Environment.threads is \[\], but it must be of type int"),
        ("environment.json", " " * (MOST_SPEC + 1), "it has 4,194,305 bytes; at most 4,194,304 are read"),
        ("metrics.jsonl", '{"event": "step", "step": 1}\n', "a line of metrics.jsonl lacks a value"),
        ("summary.json", "{}", "summary.json cannot be read .Summary has no 'steps', which it needs"),
        ("summary.json", "[]", "summary.json cannot be read .Summary is \\[\\], but it must be an object"),
        ("environment.json", "3", "environment.json cannot be read .3 is not a JSON object"),
    ],
)
def test_damaged_records(file: str, content: str, text: str, copy: Path) -> None:
    run = RunFolder(copy)
    run.write({file: content.encode()})
    with pytest.raises(RunError, match=text):
        {"metrics.jsonl": run.metrics, "summary.json": run.summary, "environment.json": run.environment}[
            file
        ]()


def test_what_is_no_file_is_not_waited_for(copy: Path) -> None:
    (copy / "summary.json").unlink()
    os.mkfifo(copy / "summary.json")
    with pytest.raises(RunError, match=r"summary\.json cannot be read .it is not a regular file"):
        RunFolder(copy).summary()
    (copy / "summary.json").unlink()
    (copy / "summary.json").symlink_to("/dev/zero")
    with pytest.raises(RunError, match=r"summary\.json cannot be read .it is a symbolic link"):
        RunFolder(copy).summary()


def test_names_that_are_too_long(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run at"):
        open_run("x" * 300)
    with pytest.raises(StorageError, match="file name too long"):
        create_run(tmp_path / ("x" * 300), SPEC)


def test_listing_and_naming(trained: Path, tmp_path: Path) -> None:
    assert [run.path for run in run_folders(trained.parent)] == [trained]
    assert run_folders(tmp_path / "nowhere") == []
    assert numbered(trained.parent, "run", lambda path: create_run(path, SPEC)).name == "run-2"
    assert [run.name for run in run_folders(trained.parent)] == ["run", "run-2"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere", "no run at 'nowhere'; 'attnlab runs' lists your runs"),
        (".", "folder '.' holds no run: spec.json is missing"),
        ("zoo:ader", "unknown shipped run 'zoo:ader'; did you mean 'zoo:adder'\\?"),
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
        ("spec.json", b'{"sed": 1}', "unknown key spec.sed; did you mean 'seed'"),
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
        RunFolder(copy).write({file: content})
    with pytest.raises(RunError, match=text):
        load_model(RunFolder(copy))


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_truncated_weights_are_refused(cut: int, copy: Path) -> None:
    path = copy / "best.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(RunError, match=r"best.safetensors is not as it was written, says manifest.json"):
        load_model(RunFolder(copy))
    (copy / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"best.safetensors cannot be read"):
        load_model(RunFolder(copy))


def test_weights_of_another_shape_are_refused(copy: Path) -> None:
    data = to_json(SPEC)
    data["model"]["hidden"] = 13
    RunFolder(copy).write({"spec.json": as_json(data)})
    text = (
        r"do not fit the run's spec: decoder.0.feed.down.weight is \(8, 11\), but the spec needs \(8, 13\)"
    )
    with pytest.raises(RunError, match=text):
        load_model(RunFolder(copy))


def test_missing_and_surplus_weights_are_refused(copy: Path) -> None:
    save_weights(RunFolder(copy), "best", {"surplus": torch.zeros(2)})
    with pytest.raises(RunError, match="is absent, but the spec needs"):
        load_model(RunFolder(copy))


def test_states_that_cannot_be_taken_up(copy: Path) -> None:
    run = RunFolder(copy)
    run.remove("summary.json")
    numbers = json.dumps({"spec": spec_hash(SPEC)})
    run.write({"state.safetensors": save({"model.x": torch.zeros(2)}, metadata={"numbers": numbers})})
    with pytest.raises(LabError, match=r"state.safetensors does not fit the run's spec"):
        train_run(RunFolder(copy))
    run.write({"state.safetensors": b"x"})
    with pytest.raises(LabError, match=r"is damaged: state.safetensors cannot be read"):
        train_run(RunFolder(copy))


def test_a_spec_changed_in_mid_training_is_refused(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", SPEC)
    steps = iter([False, False, True])
    assert train_run(run, stopping=lambda: next(steps)) is None
    run.write({"spec.json": as_json(to_json(replace(SPEC, seed=6)))})
    with pytest.raises(
        RunError, match=r"spec.json was changed after training began; start a new run with it"
    ):
        train_run(run)
    run.write({"spec.json": as_json(to_json(SPEC))})
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
