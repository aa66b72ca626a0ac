import json
import os
import stat
from pathlib import Path

import pytest

from attnlab.errors import StorageError
from attnlab.storage import (
    append_json_line,
    read_json_lines,
    refusing,
    user_cache,
    write_bytes,
    write_json,
    write_text,
)


def test_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    write_bytes(file, b"old and longer")
    write_bytes(file, b"new")
    assert file.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_text_is_utf8(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "⊢ä")
    assert (tmp_path / "a.txt").read_bytes() == "⊢ä".encode()


def test_json_is_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": [1], "a": "ä"})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "b": [\n    1\n  ],\n  "a": "ä"\n}\n'


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_refused_write_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "a.json"
    write_json(file, 1)
    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[call], refuse)
    with pytest.raises(
        StorageError, match=r"cannot write .*a\.json: no space left on device; nothing that"
    ):
        write_json(file, 2)
    monkeypatch.undo()
    assert json.loads(file.read_text()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "a", b"x")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file or directory"):
        write_bytes(tmp_path / "none" / "a", b"x")
    with pytest.raises(StorageError, match="no such file or directory"):
        append_json_line(tmp_path / "none" / "a", {})


def test_refusing_uses_the_text_where_there_is_no_reason() -> None:
    with (
        pytest.raises(StorageError, match="cannot write x: odd; nothing that was saved"),
        refusing(Path("x")),
    ):
        raise OSError("Odd")


def test_json_lines_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    assert read_json_lines(file) == []
    append_json_line(file, {"step": 1, "sign": "⊢"})
    append_json_line(file, {"step": 2})
    assert read_json_lines(file) == [{"step": 1, "sign": "⊢"}, {"step": 2}]


def test_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"step": 1}\n{"st')
    assert read_json_lines(file) == [{"step": 1}]


def test_the_cache_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNLAB_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache() == tmp_path / ".cache/attnlab"
    monkeypatch.setattr(Path, "home", _no_home)
    assert user_cache() == Path("/nonexistent/.cache/attnlab")
    monkeypatch.setenv("ATTNLAB_CACHE", "elsewhere")
    assert user_cache() == Path("elsewhere")


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")
