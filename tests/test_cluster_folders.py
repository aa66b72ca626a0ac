"""Run folders on their way to a node and back, and what is refused of what came back."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import RunError
from attnlab.runs import RunFolder, create_run, find_damage
from attnlab.runs.files import LOCK
from attnlab.runs.folder import TRAINING_LOCK
from attnlab.runs.manifest import MANIFEST
from attnlab.specs import to_json
from attnlab.storage import as_json
from attnlab.studies import cluster, travelling
from attnlab.studies.travelling import Archive, check_archive, pack, take_back, unpack
from attnlab.training import train_run
from tiny import tiny

SPEC = tiny(threads=1)
FILES: Archive = {
    "spec.json": b"{}",
    "analysis/verify.json": b"[]",
    "wandb/a/b/c.log": b"",
    "last": bytes(256),
}


def make(path: Path, steps: int = 100, analysis: str = "some") -> Archive:
    """A run that was trained so many steps of fifteen."""
    run, left = create_run(path, SPEC), iter(range(steps))
    train_run(run, stopping=lambda: next(left, None) is None)
    run.keep_analysis(analysis, {"correct": 3})
    return pack(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Archive]:
    folder = tmp_path_factory.mktemp("runs")
    begun, more, done = make(folder / "begun", 4), make(folder / "more", 9), make(folder / "done")
    return {"begun": begun, "more": more, "done": done, "analysed": make(folder / "analysed", 100, "other")}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file there is, but locks."""
    locks = (LOCK, TRAINING_LOCK)
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in locks)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    unpack(FILES, tmp_path / "a/b")
    assert pack(tmp_path / "a/b") == FILES
    assert pack(tmp_path / "none") == {}


def test_locks_and_halves_do_not_travel(tmp_path: Path) -> None:
    unpack(FILES, tmp_path)
    for name in (".lock", ".summary.json.part", "analysis/.verify.json.part"):
        (tmp_path / name).write_text("here")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("mine")
    assert pack(tmp_path) == FILES


@pytest.mark.parametrize("place", ["best.safetensors", "analysis/verify.json", "figures"])
def test_no_link_is_followed_to_a_cluster(tmp_path: Path, place: str) -> None:
    secret = tmp_path / "secret"
    (secret / "more").mkdir(parents=True)
    (secret / "key").write_text("secret")
    (tmp_path / "run/analysis").mkdir(parents=True)
    (tmp_path / "run" / place).symlink_to(secret if place == "figures" else secret / "key")
    with pytest.raises(
        RunError, match=rf"{place} is a symbolic link, which no run on its way to a cluster"
    ):
        pack(tmp_path / "run")


def test_damage_does_not_travel(runs: dict[str, Archive], tmp_path: Path) -> None:
    unpack({**runs["begun"], "state.safetensors": b"damaged"}, tmp_path)
    with pytest.raises(RunError, match=r"state\.safetensors is not as it was written"):
        pack(tmp_path)


@pytest.mark.parametrize(
    "name", ["../x", "analysis/../../x", "/x", "", ".", "a//b", ".lock", "a\\b", "c:x", 3]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(RunError, match="is not a file of a run folder"):
        unpack({"spec.json": b"{}", name: b"evil"}, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_put_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/wandb").symlink_to(tmp_path / "mine")
    with pytest.raises(Exception, match="wandb: it is a symbolic link, which leads to"):
        unpack({"wandb/a/b": b"evil"}, tmp_path / "run")
    assert list((tmp_path / "mine").iterdir()) == []


def test_what_travels_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travelling, "MOST_FILES", 3)
    monkeypatch.setattr(travelling, "MOST_BYTES", 5)
    assert check_archive({"a": b"12", "b": b"345", "c": b""})
    for archive in ({"a": b"123", "b": b"345"}, dict.fromkeys("abcd", b"")):
        with pytest.raises(RunError, match="at most 3 files and 5 bytes travel to a cluster and back"):
            check_archive(archive)
    others: list[object] = [None, [], {"a": "text"}, {"a": torch.zeros(3)}]
    for other in others:
        with pytest.raises(RunError, match="is not a folder of files"):
            check_archive(other)


@pytest.mark.parametrize("here", ["", "begun", "more"])
@pytest.mark.parametrize("came", ["more", "done"])
def test_a_run_that_is_as_far_or_further_is_taken(
    here: str, came: str, runs: dict[str, Archive], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    if here:
        unpack(runs[here], path)
    take_back(runs[came], path, SPEC)
    assert find_damage(path) is None
    assert without(snapshot(path), MANIFEST) == without(runs[came], MANIFEST)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    assert train_run(RunFolder(path)) is not None


def test_a_finished_run_gets_nothing_but_analyses_that_it_lacks(
    runs: dict[str, Archive], tmp_path: Path
) -> None:
    unpack(runs["done"], tmp_path)
    before = snapshot(tmp_path)
    take_back(runs["analysed"], tmp_path, SPEC)
    after = snapshot(tmp_path)
    assert after.keys() - before.keys() == {"analysis/other.json"}
    assert {name for name in before if after[name] != before[name]} == {MANIFEST}
    assert RunFolder(tmp_path).analysis("other") is not None


def altered(archive: Archive, place: Path, files: Archive) -> Archive:
    """The same run with other files, and a manifest that fits them."""
    unpack(archive, place).write(files)
    found = pack(place)
    shutil.rmtree(place)
    return found


def without(archive: Archive, *names: str) -> Archive:
    return {name: content for name, content in archive.items() if name not in names}


REFUSED: dict[str, tuple[str, Callable[[dict[str, Archive]], Archive], str]] = {
    "another spec": ("begun", lambda runs: runs["other"], "its spec is not that of the job"),
    "no manifest": ("begun", lambda runs: without(runs["done"], MANIFEST), "its manifest.json is missing"),
    "a file less": (
        "begun",
        lambda runs: without(runs["done"], "best.safetensors"),
        r"its best\.safetensors is missing or damaged",
    ),
    "a file more": (
        "begun",
        lambda runs: {**runs["done"], "run.sh": b"rm"},
        r"its manifest\.json does not name run\.sh",
    ),
    "a step back": ("more", lambda runs: runs["begun"], "it stands at step 4, but .* at step 9"),
    "unfinished": (
        "done",
        lambda runs: runs["more"],
        r"its best\.safetensors is not that of the finished run",
    ),
    "other weights": (
        "done",
        lambda runs: runs["others"],
        r"its best\.safetensors is not that of the finished run",
    ),
}


@pytest.fixture(scope="module")
def bad(runs: dict[str, Archive], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Archive]:
    folder = tmp_path_factory.mktemp("bad")
    spec = as_json(to_json(replace(SPEC, seed=5)))
    other = altered(runs["done"], folder / "run", {"spec.json": spec})
    others = altered(runs["done"], folder / "run", {"best.safetensors": b"other weights"})
    return {**runs, "other": other, "others": others}


@pytest.mark.parametrize("case", REFUSED)
def test_what_came_back_is_refused_and_what_is_here_stays(
    case: str, bad: dict[str, Archive], tmp_path: Path
) -> None:
    here, came, text = REFUSED[case]
    unpack(bad[here], tmp_path / "run")
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match=text):
        take_back(came(bad), tmp_path / "run", SPEC)
    assert snapshot(tmp_path) == before
    if case not in ("a step back", "unfinished", "other weights"):
        with pytest.raises(RunError, match=text):
            take_back(came(bad), tmp_path / "new", SPEC)
        assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_no_damage_comes_back(runs: dict[str, Archive], tmp_path: Path) -> None:
    chance = random.Random(1)
    unpack(runs["begun"], tmp_path / "run")
    before = snapshot(tmp_path)
    for name in runs["done"]:
        content = bytearray(runs["done"][name])
        content[chance.randrange(len(content))] ^= 1
        with pytest.raises(RunError):
            take_back({**runs["done"], name: bytes(content)}, tmp_path / "run", SPEC)
    assert snapshot(tmp_path) == before


def test_a_spec_that_names_code_is_not_run(runs: dict[str, Archive], tmp_path: Path) -> None:
    spec = json.loads(runs["done"]["spec.json"])
    code = as_json(spec | {"source": "0" * 64, "task": {"kind": "evil"}})
    files = {"spec.json": code, "task.py": b"raise SystemExit"}
    came = altered(runs["done"], tmp_path / "evil", files)
    with pytest.raises(RunError, match="its spec is not that of the job"):
        take_back(came, tmp_path / "run", SPEC)


def test_a_node_with_other_versions_sends_the_run_back_untouched() -> None:
    """Before it reads the job, which it may not understand."""
    mine = cluster._versions()
    theirs = {**mine, "torch": "1.0"}
    event, folder = cluster._do_remotely("run", {"spec": "unknown"}, theirs, FILES, None)
    error = f"a node of the cluster has {mine}, but the driver has {theirs}; install the same"
    assert event == {"job": "run", "kind": "failed", "data": {"error": error, "final": False}}
    assert folder == FILES
    assert set(mine) == {"attnlab", "torch"}
