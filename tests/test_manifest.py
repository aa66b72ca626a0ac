"""What a run's manifest binds: damage is refused, and no kill makes a good run unreadable."""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

import attnlab as al
from attnlab.errors import RunError, StorageError
from attnlab.runs import (
    RunFolder,
    create_run,
    find_damage,
    load_model,
    open_run,
    run_folders,
    save_weights,
    snapshot_steps,
)
from attnlab.runs import files as run_files
from attnlab.runs.files import LOCK, check_name, read_file, settle, write_files
from attnlab.runs.manifest import ABSENT, MANIFEST, Bound, Manifest, bind, read_manifest
from attnlab.storage import append_json_line, as_json
from attnlab.training import train_run
from commands import attnlab
from killed import each_kill
from tiny import tiny

SPEC = tiny(threads=1, snapshots=(0, 9))
UNFINISHED = 11  # steps of fifteen


@pytest.fixture(scope="module", autouse=True)
def _unflushed() -> Iterator[None]:
    """What is flushed does not matter where no machine loses power, and takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def train(path: Path, *, steps: int = 10**9) -> RunFolder:
    """A run that was stopped after so many steps."""
    run, left = create_run(path, SPEC), iter(range(steps))
    train_run(run, stopping=lambda: next(left, None) is None)
    return run


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run with an analysis, and one that was stopped."""
    folder = tmp_path_factory.mktemp("ends")
    done, stopped = train(folder / "done"), train(folder / "stopped", steps=UNFINISHED)
    for run in (done, stopped):
        run.keep_analysis("some", {"correct": 3})
    return {"done": done.path, "stopped": stopped.path}


@pytest.fixture
def done(ends: dict[str, Path], tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(ends["done"], tmp_path / "done")))


@pytest.fixture
def stopped(ends: dict[str, Path], tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(ends["stopped"], tmp_path / "stopped")))


def bound(run: RunFolder) -> set[str]:
    manifest = read_manifest(run.path)
    assert manifest is not None
    return set(manifest.files)


def names(run: RunFolder) -> set[str]:
    found = (path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file())
    return {name for name in found if name != MANIFEST and not name.startswith(".")}


@pytest.mark.parametrize("end", ["done", "stopped"])
def test_every_file_is_bound(ends: dict[str, Path], end: str) -> None:
    run = RunFolder(ends[end])
    assert names(run) == bound(run)
    assert {"spec.json", "best.safetensors", "metrics.jsonl", "analysis/some.json"} < bound(run)
    assert ("state.safetensors" in bound(run)) == (end == "stopped")
    assert snapshot_steps(run) == ([0, 9, 15] if end == "done" else [0, 9])
    assert find_damage(run.path) is None


def test_shipped_runs_are_bound_whole() -> None:
    for run in run_folders(open_run("zoo:adder").path.parent):
        assert find_damage(run.path) is None
        assert names(run) == bound(run)


def damage(content: bytes, chance: random.Random) -> bytes:
    """A bit flipped, the end cut off, or a block of zeros."""
    place, kind = chance.randrange(len(content)), chance.randrange(3)
    if kind == 0:
        return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    if kind == 1:
        return content[:place]
    block = content[place : place + 512]
    return content[:place] + bytes(len(block)) + content[place + len(block) :]


def test_no_damage_is_read(ends: dict[str, Path], tmp_path: Path) -> None:
    chance = random.Random(2)
    run = RunFolder(Path(shutil.copytree(ends["stopped"], tmp_path / "run")))
    refused = 0
    for name in sorted(bound(run)):
        whole = run.read(name)
        for _ in range(30):
            broken = damage(whole, chance)
            if broken == whole:
                continue
            run.file(name).write_bytes(broken)
            with pytest.raises(RunError, match=f"is damaged: {name} is not as it was written, says manif"):
                run.read(name)
            refused += 1
        run.file(name).write_bytes(whole)
    assert refused > 29 * len(bound(run))
    assert find_damage(run.path) is None


def flip(run: RunFolder, name: str) -> None:
    content = bytearray(run.file(name).read_bytes())
    content[len(content) // 2] ^= 16
    run.file(name).write_bytes(content)


AGAIN = "then resume: training begins again and ends with the same weights"
UNTIL = "until then best.safetensors can be used"
ANALYSE = "remove it and run the analysis again"
COPY = "bring it back from a copy of the run, or train a new run with its spec.json"
STEPS: dict[str, tuple[str, str, Callable[[RunFolder], object], str]] = {
    "best": ("done", "best.safetensors", load_model, COPY),
    "best of an unfinished run": (
        "stopped", "best.safetensors", load_model, f"remove it and state.safetensors, {AGAIN}"
    ),
    "best, resuming": (
        "stopped", "best.safetensors", train_run, f"remove it and state.safetensors, {AGAIN}"
    ),
    "state": (
        "stopped", "state.safetensors", train_run, f"remove it, {AGAIN}; {UNTIL}"
    ),
    "snapshot": (
        "done", "snapshots/step-00000009.safetensors",
        lambda run: load_model(run, "snapshots/step-00000009"), "remove it to do without that snapshot",
    ),
    "analysis": (
        "done", "analysis/some.json", lambda run: run.analysis("some"), ANALYSE
    ),
    "spec": ("done", "spec.json", RunFolder.spec, COPY),
    "metrics": ("done", "metrics.jsonl", RunFolder.metrics, COPY),
    "summary": ("done", "summary.json", RunFolder.summary, COPY),
    "environment": ("done", "environment.json", RunFolder.environment, COPY),
    "observed": ("done", "observed.json", RunFolder.observed, COPY),
}  # fmt: skip


@pytest.mark.parametrize("case", STEPS)
def test_a_sentence_names_the_file_and_the_next_step(
    case: str, ends: dict[str, Path], tmp_path: Path
) -> None:
    end, name, use, step = STEPS[case]
    run = RunFolder(Path(shutil.copytree(ends[end], tmp_path / "run")))
    flip(run, name)
    with pytest.raises(RunError) as refused:
        use(run)
    said = f"run {run.path} is damaged: {name} is not as it was written, says manifest.json; {step}"
    assert str(refused.value) == said


@pytest.mark.parametrize("lost", [["state.safetensors"], ["best.safetensors", "state.safetensors"]])
def test_after_the_next_step_the_run_ends_with_the_same_weights(
    lost: list[str], stopped: RunFolder, ends: dict[str, Path]
) -> None:
    flip(stopped, lost[0])
    with pytest.raises(RunError):
        train_run(stopped)
    for name in lost:
        stopped.file(name).unlink()
    assert train_run(stopped) is not None
    for name in ("best.safetensors", "last.safetensors"):
        assert stopped.file(name).read_bytes() == (ends["done"] / name).read_bytes()
    assert find_damage(stopped.path) is None


def test_a_training_does_not_go_on_without_its_best_weights(stopped: RunFolder) -> None:
    stopped.file("best.safetensors").unlink()
    with pytest.raises(
        RunError, match=r"best\.safetensors cannot be read .*; remove state\.safetensors, th"
    ):
        train_run(stopped)


def test_a_spec_that_belongs_to_other_weights_is_refused(tmp_path: Path) -> None:
    path = Path(shutil.copytree(open_run("zoo:adder").path, tmp_path / "adder"))
    spec = json.loads((path / "spec.json").read_text())
    spec["task"]["digits"] = 12
    (path / "spec.json").write_bytes(as_json(spec))
    said = attnlab("evaluate", "adder", cwd=tmp_path, code=2).stderr
    why = "spec.json is not as it was written, says manifest.json"
    assert said == f"attnlab: run adder is damaged: {why}; {COPY}\n"


def test_a_file_that_is_not_bound_is_refused(done: RunFolder) -> None:
    shutil.copy(done.file("best.safetensors"), done.file("snapshots/step-00000003.safetensors"))
    with pytest.raises(RunError, match=r"step-00000003\.safetensors was not written with the run, says"):
        load_model(done, "snapshots/step-00000003")


def test_metrics_are_bound_up_to_the_last_save(stopped: RunFolder) -> None:
    whole = stopped.file("metrics.jsonl").read_bytes()
    count = len(stopped.metrics().lines)
    append_json_line(stopped.file("metrics.jsonl"), json.loads(whole.splitlines()[-1]))
    assert len(stopped.metrics().lines) == count + 1
    stopped.file("metrics.jsonl").write_bytes(whole[:-1])
    with pytest.raises(RunError, match=r"metrics\.jsonl is not as it was written"):
        stopped.metrics()


@pytest.mark.parametrize("lost", [b"\0" * 9 + b"\n", b"\0" * 30, b"]\n", b"\xff\n", b"[]\n", b"7}\n"])
def test_lines_that_nothing_binds_end_where_power_was_lost(lost: bytes, stopped: RunFolder) -> None:
    before = stopped.metrics().lines
    line = stopped.file("metrics.jsonl").read_bytes().splitlines()[-1] + b"\n"
    with stopped.file("metrics.jsonl").open("ab") as file:
        file.write(line + lost + line)
    assert stopped.metrics().lines == [*before, before[-1]]


def test_metrics_of_a_finished_run_grow_no_more(done: RunFolder) -> None:
    append_json_line(done.file("metrics.jsonl"), {})
    with pytest.raises(RunError, match=r"metrics\.jsonl is not as it was written"):
        done.metrics()


# Older runs


@pytest.fixture
def older(stopped: RunFolder) -> RunFolder:
    stopped.file(MANIFEST).unlink()
    return stopped


def test_a_run_without_a_manifest_opens_with_one_line(
    older: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert al.load(older.path).analysis("some") is not None
    why = "as those of older versions: damage to its files may go unseen"
    said = f"run {older.path} has no manifest.json, {why}"
    assert capsys.readouterr().err.splitlines() == [said]
    assert not older.file(MANIFEST).exists()


def test_an_older_run_is_bound_when_it_is_first_written_to(older: RunFolder) -> None:
    count = len(older.metrics().lines)
    older.keep_analysis("other", {})
    assert bound(older) == names(older)
    append_json_line(older.file("metrics.jsonl"), {"event": "probe", "step": 11, "entropy": 0.5})
    assert len(older.metrics().lines) == count + 1
    flip(older, "best.safetensors")
    with pytest.raises(RunError, match=r"best\.safetensors is not as it was written"):
        older.analysis("other")


def test_an_older_run_resumes_to_the_same_bytes(older: RunFolder, ends: dict[str, Path]) -> None:
    train_run(older)
    assert find_damage(older.path) is None
    assert older.file("last.safetensors").read_bytes() == (ends["done"] / "last.safetensors").read_bytes()


# The manifest itself


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "manifest.json cannot be read .*; bring it back from a copy, or remove it to open the run "),
        ("[]", r"manifest.json is \[\], but it must be an object"),
        ('{"format": 2}', "was written by a newer version of attnlab: manifest.json has format 2, this "
                          "version reads 1; install a newer one"),
        ('{"format": 1, "seal": "", "files": {}}', "its files are not those of its seal"),
        ('{"format": 1, "seal": "", "files": {"a": {"sha256": 3, "size": 1}}}', "sha256 is 3, but it must"),
    ],
)  # fmt: skip
def test_a_damaged_manifest_is_refused(content: str, text: str, done: RunFolder) -> None:
    done.file(MANIFEST).write_text(content)
    with pytest.raises(RunError, match=text):
        load_model(done)


def test_no_damage_to_a_manifest_puts_the_blame_on_a_file(done: RunFolder) -> None:
    chance, whole = random.Random(3), done.file(MANIFEST).read_bytes()
    for _ in range(60):
        broken = damage(whole, chance)
        done.file(MANIFEST).write_bytes(broken)
        try:
            done.read("spec.json")
        except RunError as error:
            assert "manifest.json" in str(error)  # noqa: PT017
            assert "spec.json" not in str(error)  # noqa: PT017
        else:
            assert broken.split() == whole.split()  # only white space differs


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "/x", "a/../b", "a//b", "a/b/c", ".lock", "a/.b", "a\\b", "c:x", "a\nb", "a\0"],
)
def test_names_that_no_file_of_a_run_has(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a file of a run folder"):
        check_name(name)
    with pytest.raises(RunError, match="is not a file of a run folder"):
        write_files(tmp_path, {name: b""})
    assert list(tmp_path.iterdir()) == []


# Kills and other processes


def test_no_kill_leaves_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The writes of a training: files that are new, replaced together, and removed; metrics that grow."""
    folder, tried, seen = tmp_path / "run", [0], list[dict[str, bytes]]()

    def contents() -> dict[str, bytes]:
        there = {path.name for path in folder.iterdir() if path.name[0] != "."} - {MANIFEST}
        if "summary.json" in there:
            there.discard("state")  # which nobody reads then
        return {name: read_file(folder, name) for name in there}

    def begin() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_files(folder, {"spec.json": b"{}"})

    def work() -> None:
        write_files(folder, {"metrics.jsonl": b""}, growing=["metrics.jsonl"])
        for step in (b"1", b"2"):
            append_json_line(folder / "metrics.jsonl", 7)
            write_files(folder, {"best": step, "state": step}, growing=["metrics.jsonl"])
        write_files(folder, {"metrics.jsonl": b"7\n"}, growing=["metrics.jsonl"])
        write_files(folder, {"last": b"3", "summary.json": b"{}"})
        settle(folder, without=["state"], ended=["metrics.jsonl"])

    for _ in each_kill(work, begin=begin):
        found = contents()
        seen.append(found)
        if "state" in found:
            assert found["best"] >= found["state"]  # no state without the weights that it saw
        if "summary.json" in found:
            assert found["last"] == b"3"
        write_files(folder, {"state": b"4"})  # whoever comes next can write
        assert read_file(folder, "state") == b"4"
        tried[0] += 1
    assert tried[0] > 50
    assert {each.get("state") for each in seen} == {None, b"1", b"2"}
    begin()
    work()
    assert find_damage(folder) is None
    assert all(each.before is None and not each.grows for each in run_files.read_bound(folder).values())


def test_a_training_killed_at_any_write_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Some of the writes of a training that is stopped once."""
    run, spec = RunFolder(tmp_path / "run"), tiny(threads=1, epochs=1)
    train_run(create_run(tmp_path / "whole", spec))
    whole = (tmp_path / "whole/last.safetensors").read_bytes()

    def begin() -> None:
        shutil.rmtree(run.path, ignore_errors=True)

    def work() -> None:
        create_run(run.path, spec)
        for steps in (3, 100):
            left = iter(range(steps))
            train_run(run, stopping=lambda left=left: next(left, None) is None)  # type: ignore[misc]

    tried = 0
    for _ in each_kill(work, begin=begin, stride=13):
        if not run.file("spec.json").exists():
            create_run(run.path, spec)
        train_run(run)
        assert run.file("last.safetensors").read_bytes() == whole
        assert find_damage(run.path) is None
        tried += 1
    assert tried > 5


def test_writers_side_by_side_forget_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {"spec.json": b"{}"})

    def write(writer: int) -> None:
        for number in range(10):
            write_files(tmp_path, {f"analysis/{writer}-{number}.json": b"[]"})

    threads = [Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert find_damage(tmp_path) is None
    assert len(run_files.read_bound(tmp_path)) == 31


def test_a_reader_beside_a_writer_reads_the_old_or_the_new(tmp_path: Path) -> None:
    contents = [bytes([number]) * 1009 for number in range(40)]
    write_files(tmp_path, {"best": contents[0]})

    def write() -> None:
        for content in contents[1:]:
            write_files(tmp_path, {"best": content})

    writer, seen = Thread(target=write), list[bytes]()
    writer.start()
    while writer.is_alive():
        seen.append(read_file(tmp_path, "best"))
    assert set(seen) <= set(contents)
    assert seen == sorted(seen)
    assert read_file(tmp_path, "best") == contents[-1]


def test_a_writer_that_never_ends_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "_SECONDS", 0.0)
    with run_files._writing(tmp_path), pytest.raises(StorageError, match="has kept it locked for a minute"):
        write_files(tmp_path, {"best": b""})


def test_what_a_file_held_is_forgotten_once_it_is_replaced() -> None:
    old, new = bind(b"old"), bind(b"new", before=bind(b"old").known)
    assert new.fits(b"old") == old.known
    assert Manifest({"a": new}).settled("a", b"old").files == {"a": old}
    assert Manifest({"a": new}).settled("a", b"new").files == {"a": bind(b"new")}
    assert Manifest({"a": new}).settled("a", b"damaged").files == {"a": bind(b"new")}
    assert bind(b"same", before=bind(b"same").known) == bind(b"same")
    assert Manifest({"a": bind(b"new", before=ABSENT)}).settled("a", None).files == {}
    assert Manifest({"a": new}).settled("a", None).files == {"a": new}


def test_a_file_that_was_never_there_is_no_damage(tmp_path: Path) -> None:
    """A kill between the manifest and the first name of a file."""
    write_files(tmp_path, {"spec.json": b"{}"})
    settle(tmp_path)
    write_files(tmp_path, {"analysis/some.json": b"{}"})
    (tmp_path / "analysis/some.json").unlink()
    assert find_damage(tmp_path) is None
    write_files(tmp_path, {"best": b"1"})
    assert set(run_files.read_bound(tmp_path)) == {"spec.json", "best"}
    settle(tmp_path)
    (tmp_path / "best").unlink()
    assert find_damage(tmp_path) == "best"


def test_what_grows_begins_with_what_is_bound() -> None:
    lines = bind(b"1\n", grows=True)
    assert [lines.fits(each) for each in (b"1\n", b"1\n2", b"", b"1", b"2\n2")] == [
        lines.known, lines.known, None, None, None
    ]  # fmt: skip
    shorter = replace(lines, before=bind(b"0\n0\n").known)
    assert shorter.fits(b"0\n0\n") == shorter.before
    assert Manifest({"a": shorter}).settled("a", b"0\n0\n").files == {"a": bind(b"0\n0\n")}
    assert isinstance(lines, Bound)


def test_locks_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(StorageError, match="it is a symbolic link"):
        write_files(tmp_path / "run", {"best": b""})
    assert (tmp_path / "mine").read_text() == "mine"


def test_weights_of_another_run_are_refused(done: RunFolder, tmp_path: Path) -> None:
    other = create_run(tmp_path / "other", replace(SPEC, seed=4))
    save_weights(other, "best", load_model(done).state_dict())
    shutil.copy(other.file("best.safetensors"), done.file("best.safetensors"))
    load_model(done)  # the same weights: the same bytes
    train_run(other)
    shutil.copy(other.file("best.safetensors"), done.file("best.safetensors"))
    with pytest.raises(RunError, match=r"best\.safetensors is not as it was written"):
        load_model(done)
