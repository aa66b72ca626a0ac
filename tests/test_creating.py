"""New run folders: of several processes one gets the name, and what a kill leaves is no run."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from attnlab.errors import RunError, SpecError
from attnlab.runs import (
    RunFolder,
    check_unused,
    create_ensemble,
    create_run,
    find_damage,
    numbered,
    open_run,
    run_folders,
)
from attnlab.runs import creating as module
from attnlab.runs.environment import Environment
from attnlab.runs.manifest import MANIFEST, read_manifest
from attnlab.training import train_run
from killed import each_kill
from tiny import tiny

SPEC = tiny(threads=1, epochs=1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for the machine starts a process, and flushing takes its time."""
    monkeypatch.setattr(module, "describe_environment", Environment)
    monkeypatch.setattr("os.fsync", lambda _: None)


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call gave, or how it was refused; all begin at the same moment."""
    start, found = Barrier(len(calls)), list[object]([None] * len(calls))

    def do(number: int) -> None:
        start.wait()
        try:
            found[number] = calls[number]()
        except RunError as error:
            found[number] = error

    threads = [Thread(target=do, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_a_hundred_pairs_get_a_folder_each(tmp_path: Path) -> None:
    def create(name: str) -> Callable[[], object]:
        return lambda: numbered(tmp_path, name, lambda path: create_run(path, SPEC)).name

    for number in range(100):
        name = f"pair{number}"
        assert {*at_once(create(name), create(name))} == {name, f"{name}-2"}
    assert len(run_folders(tmp_path)) == 200


def test_of_two_that_name_the_same_folder_one_is_refused(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / str(number)
        found = at_once(*[lambda path=path: create_run(path, SPEC)] * 2)
        made = [each for each in found if isinstance(each, RunFolder)]
        (refused,) = [each for each in found if isinstance(each, RunError)]
        assert [each.path for each in made] == [path]
        assert str(refused).endswith("choose another folder for out")
        assert find_damage(path) is None


def test_two_ensembles_get_a_folder_each(tmp_path: Path) -> None:
    run = open_run("zoo:digit")

    def create() -> object:
        return numbered(tmp_path, "both", lambda path: create_ensemble(path, [run, run], {})).name

    assert {*at_once(create, create)} == {"both", "both-2"}


def test_what_a_kill_leaves_is_no_run_and_is_filled_by_the_next(tmp_path: Path) -> None:
    path, lefts = tmp_path / "run", set[frozenset[str]]()

    def begin() -> None:
        shutil.rmtree(path, ignore_errors=True)

    def create() -> None:
        create_run(path, SPEC, {"start.safetensors": b"start"})

    for _ in each_kill(create, begin=begin):
        if path.exists():
            lefts.add(frozenset(each.name for each in path.iterdir() if each.name[0] != "."))
        if run_folders(tmp_path):  # the spec comes last, so it is all there
            assert open_run(str(path)).spec() == SPEC
        else:
            check_unused(path)
            assert numbered(tmp_path, "run", lambda path: create_run(path, SPEC)).name == "run"
        assert find_damage(path) is None
    assert {frozenset(), frozenset({MANIFEST, "environment.json"})} <= lefts
    train_run(RunFolder(path))


@pytest.mark.parametrize("left", [["notes.txt"], ["task.py"], ["environment.json"], [MANIFEST, "mine"]])
def test_a_folder_with_files_of_others_is_not_filled(left: list[str], tmp_path: Path) -> None:
    create_run(tmp_path / "other", SPEC)
    (tmp_path / "run").mkdir()
    for name in left:
        (tmp_path / "run" / name).write_bytes((tmp_path / "other" / MANIFEST).read_bytes())
    with pytest.raises(RunError, match="run exists already and is not empty; choose another"):
        create_run(tmp_path / "run", SPEC)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(left)


def test_a_spec_that_could_not_be_read_again_gets_no_folder(tmp_path: Path) -> None:
    training = replace(SPEC.training, epochs=2**63)
    said = f"^spec.training.epochs is {2**63}, but it must be a whole number below 2\\^63 in size$"
    with pytest.raises(SpecError, match=said):
        create_run(tmp_path / "run", replace(SPEC, training=training))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "real")  # the user's own link
    create_run(tmp_path / "run", SPEC)
    manifest = read_manifest(tmp_path / "real")
    assert manifest is not None
    assert set(manifest.files) == {"environment.json", "spec.json"}
