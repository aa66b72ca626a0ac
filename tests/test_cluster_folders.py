"""Run folders on their way to a node and back."""

from pathlib import Path

import pytest

from attnlab.errors import LabError
from attnlab.studies import cluster
from attnlab.studies.cluster import Archive, pack, unpack

FILES: Archive = {
    "spec.json": b"{}",
    "summary.json": b"{ }",
    "last.safetensors": bytes(range(256)),
    "metrics.jsonl": b"",
    "analysis/verify.json": b"[]",
}


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    unpack(FILES, tmp_path / "a/b")
    assert pack(tmp_path / "a/b") == FILES
    assert (tmp_path / "a/b/last.safetensors").read_bytes() == bytes(range(256))
    assert pack(tmp_path / "none") == {}


def test_locks_and_halves_stay_where_they_are(tmp_path: Path) -> None:
    unpack(FILES, tmp_path)
    for name in (".lock", ".summary.json.part", "analysis/.verify.json.part"):
        (tmp_path / name).write_text("here")
    assert pack(tmp_path) == FILES
    unpack({"spec.json": b"other"}, tmp_path)
    assert (tmp_path / ".lock").read_text() == "here"


def test_files_that_did_not_come_back_are_gone(tmp_path: Path) -> None:
    unpack(
        {**FILES, "state.safetensors": b"old", "analysis/old.json": b"old", "spec.json": b"old"}, tmp_path
    )
    unpack(FILES, tmp_path)
    assert pack(tmp_path) == FILES


@pytest.mark.parametrize("name", ["../x", "analysis/../../x", "/x"])
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match=rf"^a run came back with a file '{name}' outside its folder$"):
        unpack({name: b"evil"}, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_summary_comes_after_the_weights_and_analyses_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(cluster, "write_bytes", lambda path, _: written.append(path.name))
    unpack(FILES, tmp_path)
    assert written == ["last.safetensors", "metrics.jsonl", "spec.json", "summary.json", "verify.json"]


def test_a_node_with_other_versions_sends_the_run_back_untouched() -> None:
    """Before it reads the job, which it may not understand."""
    mine = cluster._versions()
    theirs = {**mine, "torch": "1.0"}
    event, folder = cluster._do_remotely("run", {"spec": "unknown"}, theirs, FILES, None)
    error = f"a node of the cluster has {mine}, but the driver has {theirs}; install the same"
    assert event == {"job": "run", "kind": "failed", "data": {"error": error, "final": False}}
    assert folder == FILES
    assert set(mine) == {"attnlab", "torch"}
