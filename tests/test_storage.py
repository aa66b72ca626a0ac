import json
import os
import secrets
import stat
from pathlib import Path
from threading import Thread

import pytest

from attnlab.errors import ECHOED, StorageError
from attnlab.reading import parse_json_lines
from attnlab.storage import (
    append_json_line,
    clear_temporaries,
    flush,
    make_folder,
    refusing,
    user_cache,
    write_bytes,
    write_json,
    write_text,
    write_together,
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


def test_writers_side_by_side_never_meet(tmp_path: Path) -> None:
    """Each content is of one byte, so a file of two writers, or of half of one, would show."""
    file, torn = tmp_path / "a.bin", []
    write_bytes(file, bytes(100_003))

    def write(number: int) -> None:
        for _ in range(20):
            write_bytes(file, bytes([number]) * 100_003)

    writers = [Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = file.read_bytes()
        torn += [content] if len(content) != 100_003 or len(set(content)) != 1 else []
    assert torn == []
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_what_a_link_leads_to_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, folder = tmp_path / "mine", tmp_path / "received"
    mine.write_text("mine")
    folder.mkdir()
    monkeypatch.setattr(secrets, "token_hex", lambda _: "known")
    for name in ("a.json", ".a.json.part", "log.jsonl", ".b.json.known.part"):
        (folder / name).symlink_to(mine)
    write_json(folder / "a.json", 1)  # the link itself is replaced
    assert (folder / "a.json").read_text() == "1\n"
    with pytest.raises(StorageError, match=r"cannot write .*b\.json: file exists"):
        write_json(folder / "b.json", 1)
    with pytest.raises(
        StorageError, match=r"log\.jsonl: it is a symbolic link, which leads to .*mine; remove"
    ):
        append_json_line(folder / "log.jsonl", {})
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in folder.iterdir()) == [
        ".a.json.part",
        ".b.json.known.part",
        "a.json",
        "log.jsonl",
    ]


def test_file_and_folder_are_flushed_in_the_order_that_survives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    really = os.fsync, Path.replace

    def flushed(handle: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        really[0](handle)

    def renamed(path: Path, target: Path) -> Path:
        seen.append("renamed")
        return really[1](path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    write_bytes(tmp_path / "a", b"x")
    assert seen == ["file", "renamed", "folder"]
    seen.clear()
    write_together({tmp_path / "a": b"y", tmp_path / "b": b"z"}, ready=lambda: seen.append("ready"))
    assert seen == ["file", "file", "ready", *["renamed", "folder"] * 2]
    seen.clear()
    make_folder(tmp_path / "e/c/d")
    make_folder(tmp_path / "e/c/d")
    assert seen == ["folder"] * 3
    seen.clear()
    flush(tmp_path / "a")
    flush(tmp_path / "none")
    assert seen == ["file"]


def test_what_killed_writers_have_left_goes_with_a_later_write(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / name for name in (".a.1.part", ".a.2.part", ".b.3.part"))
    for path in (old, fresh, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (0, 0))
    write_bytes(tmp_path / "a", b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.2.part", ".b.3.part", "a"]
    clear_temporaries(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.3.part", "a"]
    clear_temporaries(tmp_path / "none/a")


def test_the_longest_names_are_written(tmp_path: Path) -> None:
    name = "ä" * 126 + "abc"  # 255 bytes
    write_bytes(tmp_path / name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


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


def test_a_long_name_is_cut_in_what_is_said() -> None:
    with pytest.raises(StorageError) as refused, refusing(Path("x" * 9999)):
        raise OSError("Odd")
    assert str(refused.value).count("x") < ECHOED


def test_json_lines_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append_json_line(file, {"step": 1, "sign": "⊢"})
    append_json_line(file, {"step": 2})
    assert parse_json_lines(file.read_text()) == [{"step": 1, "sign": "⊢"}, {"step": 2}]


def test_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"step": 1}\n{"st')
    assert parse_json_lines(file.read_text()) == [{"step": 1}]


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
