"""What a sweep is opened with: a folder of its own, a storage that works, keys that there are."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import LabError, RunError, SpecError, StorageError
from attnlab.presets import preset
from attnlab.runs import create_run
from attnlab.specs import with_settings
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.studies.sweeps.search import storing
from attnlab.training import train_run
from made_up_sweeps import LR, SWEEPS, WIDE, in_memory, jobs, opened, played, short
from tiny import TINY
from tiny_digits import write_squares


@pytest.fixture
def folder() -> Iterator[Path]:
    with in_memory() as place:
        yield place


def test_a_folder_is_opened_again_by_its_own_search_alone(folder: Path) -> None:
    with opened(short(LR, count=3), folder, seed=4):
        pass
    with opened(short(LR, count=5), folder, seed=4, count=7):
        pass
    changes: list[tuple[dict[str, Any], str]] = [
        ({"file": short({"training.lr": "log 1e-4 .. 1e-2"})}, "sweep file"),
        ({"file": short(LR, prune={})}, "sweep file"),
        ({"seed": 5}, "spec"),
        ({"base": WIDE}, "spec"),
    ]
    for options, what in changes:
        text = f"{folder / 'sweep'} holds a sweep with another {what}; choose another folder for out"
        with pytest.raises(LabError, match=f"^{re.escape(text)}$"):
            opened(**{"file": short(LR), "folder": folder, "seed": 4, **options})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read (Expecting property name"),
        ("[]", "has format None, but this version"),
        ("{}", "has format None, but this version"),
        ("\xff", "cannot be read ('utf-8' codec"),
        ('{"format": 99}', "has format 99, but this version of attnlab reads format 1"),
    ],
)
def test_a_folder_that_cannot_be_read_is_refused(text: str, message: str, folder: Path) -> None:
    (folder / "sweep").mkdir()
    (folder / "sweep/sweep.json").write_text(text, encoding="latin-1")
    with pytest.raises(RunError, match=re.escape(f"{folder / 'sweep/sweep.json'} {message}")):
        opened(short(LR), folder)
    assert [path.name for path in (folder / "sweep").iterdir()] == ["sweep.json"]


def storage_refusal(folder: Path, reason: str) -> str:
    return f"^{re.escape(str(folder / 'sweep/trials.db'))} cannot be used as Optuna's storage \\({reason}"


def test_a_storage_that_is_no_database_is_refused(folder: Path) -> None:
    (folder / "sweep").mkdir()
    (folder / "sweep/trials.db").write_text("this is no database at all" * 9)
    with pytest.raises(RunError, match=storage_refusal(folder, "file is not a database")):
        opened(short(LR), folder)


@pytest.mark.parametrize("name", ["trials.db", "trials.db-journal", ".lock"])
def test_no_link_in_a_folder_of_somebody_else_is_followed(name: str, folder: Path) -> None:
    (folder / "mine").write_text("")
    (folder / "sweep").mkdir()
    (folder / "sweep" / name).symlink_to(folder / "mine")
    with pytest.raises(StorageError, match=rf"{re.escape(name)}: it is a symbolic link, which leads to"):
        opened(short(LR), folder)
    assert (folder / "mine").read_text() == ""


def test_a_storage_of_another_optuna_is_refused(folder: Path) -> None:
    with opened(short(LR), folder):
        pass
    with sqlite3.connect(folder / "sweep/trials.db") as connection:
        connection.execute("update alembic_version set version_num = 'v99'")
    connection.close()
    with pytest.raises(RunError, match=storage_refusal(folder, "The runtime optuna version")):
        opened(short(LR), folder)


def test_a_storage_that_breaks_on_the_way_is_one_sentence(folder: Path) -> None:
    with opened(short(LR), folder) as sweep:
        jobs(sweep, 1)
        database = sweep.folder / "trials.db"
        database.write_bytes(b"\0" * database.stat().st_size)
        with pytest.raises(RunError, match=storage_refusal(folder, "")), storing(sweep.folder):
            jobs(sweep, 1)


def test_two_processes_do_not_work_on_one_sweep(folder: Path) -> None:
    with opened(short(LR), folder):
        text = f"^another process works on the sweep in {re.escape(str(folder / 'sweep'))}$"
        with pytest.raises(RunError, match=text):
            opened(short(LR), folder)
    with opened(short(LR), folder) as sweep:
        assert len(jobs(sweep, 1)) == 1


def test_a_folder_may_have_any_name(folder: Path) -> None:
    place = folder / "50%20 {x}?a=b#c"
    for count in (1, 2):
        played(short(LR), place, count=count)
    assert sorted(path.name for path in (place / "sweep").iterdir()) == [".lock", "sweep.json", "trials.db"]
    assert [path.name for path in folder.iterdir()] == [place.name]


@pytest.mark.parametrize(
    ("search", "settings", "message"),
    [
        ({"model.patch": [4, 7]}, {}, r"^model\.patch is not a key of this spec; "),
        (
            {"model.headz": [4, 7]},
            {},
            r"^model\.headz is not a key of this spec; did you mean 'model\.heads'\?$",
        ),
        (
            LR,
            {"model.layers": 3},
            r"^model\.layers is not a key of this spec; did you mean 'model.*layers'\?$",
        ),
        ({"task.kind": ["addition", "x"]}, {}, r"^task\.kind is not a key of this spec; "),
        ({"training.optimiser.momentum": "0.1 .. 0.9"}, {}, r"^training\.optimiser\.momentum is not a key"),
        (
            {"training.optimiser.beta1": "0.1 .. 0.9"},
            {"training.optimiser": "sgd"},
            r"^training\.optimiser\.beta1 is not a key",
        ),
    ],
)
def test_a_key_that_no_spec_has_is_refused_before_anything_is_made(
    search: dict[str, Any], settings: dict[str, Any], message: str, folder: Path
) -> None:
    with pytest.raises(SpecError, match=message):
        opened(short(search, set=settings), folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("search", "settings"),
    [
        ({"training.optimiser.beta2": "0.9 .. 0.99"}, {}),
        ({"training.optimiser.momentum": "0.1 .. 0.9", "training.optimiser": ["adamw", "sgd"]}, {}),
        ({"training.optimiser.momentum": "0.1 .. 0.9"}, {"training.optimiser": "sgd"}),
        # Rotary positions are impossible in the width of the base, but not in the width of the sweep.
        (
            {"model.positions.base": "100 .. 900", "model.positions": ["none", "rotary"]},
            {"model.width": 12},
        ),
    ],
)
def test_a_key_of_one_of_the_variants_is_a_key(
    search: dict[str, Any], settings: dict[str, Any], folder: Path
) -> None:
    base = with_settings(TINY, {"model.width": 9, "model.positions": "none"})
    with opened(short(search, set=settings, method="random"), folder, base=base) as sweep:
        assert len(jobs(sweep, 3)) == 3


READERS = {"encoder-only": ("digits", "vit-reference"), "encoder-decoder": ("grids", "reference")}


@pytest.mark.parametrize("name", READERS)
def test_files_for_readers_of_digits_need_their_models(name: str, folder: Path) -> None:
    file = read_sweep_file(SWEEPS / f"{name}.yaml")
    with pytest.raises(SpecError, match=r"^model\.(layers|patch) is not a key of this spec; "):
        opened(file, folder, base=preset(file.task, file.preset))


@pytest.mark.parametrize("name", READERS)
def test_what_they_find_can_be_trained(name: str, folder: Path, tmp_path: Path) -> None:
    """Narrow and on a few squares; depth, patches, heads and all of training are the trial's."""
    base = preset(*READERS[name])
    with opened(read_sweep_file(SWEEPS / f"{name}.yaml"), folder, base=base) as sweep:
        job, *others = jobs(sweep, 3)
    assert len({each.name for each in (job, *others)}) == 3
    small = {
        "model.width": 16,
        "model.hidden": 16,
        "task.directory": str(write_squares(tmp_path / "squares")),
        "task.train": 5,
        "task.valid": 2,
        "task.test": 2,
        "training.epochs": 1,
        "training.threads": 1,
    }
    summary = train_run(create_run(tmp_path / "run", with_settings(job.spec, small)))
    assert summary is not None
    assert summary["steps"] == 1
