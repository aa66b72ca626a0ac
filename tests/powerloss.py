"""A disk that loses power: what a process did to its files is recorded, and played back up to a cut.

``powerloss.c``, preloaded, records each change of files under a folder. After a cut there are on the disk:

- of a file, what was written to it before it was last flushed;
- of what was written since, anything: each block of 512 bytes or not, zeros where only a later one came,
  the new length, the old one or one between;
- of a folder, the names as they were when it was last flushed;
- of the changes of names since, depending on the disk: those before some moment (``in_order``: ext4, XFS
  and APFS keep a journal of them, so that a flush also keeps every earlier change), or any of them (POSIX
  promises no more). A renaming happens as a whole or not at all.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import unquote

SOURCE = Path(__file__).with_suffix(".c")
BLOCK = 512


def compiler() -> str | None:
    """What compiles C here, if this is a system on which a library can be preloaded."""
    return shutil.which("cc") if sys.platform == "linux" else None


def build(folder: Path) -> Path:
    """The library that is preloaded."""
    library = folder / "powerloss.so"
    flags = ("-shared", "-fPIC", "-O1", "-w")
    subprocess.run(["cc", *flags, "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    return library


@dataclass(frozen=True)
class Change:
    """One record of ``powerloss.c``."""

    kind: str
    inode: int
    offset: int
    data: bytes
    path: str
    other: str


def record(words: list[str], *, root: Path, library: Path) -> list[Change]:
    """Run a command and tell what it did to the files under ``root``."""
    log = root.with_name(f"{root.name}.log")
    given = {"LD_PRELOAD": str(library), "POWERLOSS_ROOT": str(root), "POWERLOSS_LOG": str(log)}
    subprocess.run(words, env={**os.environ, **given}, check=True, stdout=subprocess.DEVNULL)
    return list(read_log(log.read_bytes()))


def read_log(log: bytes) -> Iterator[Change]:
    place = 0
    while place < len(log):
        end = log.index(b"\n", place)
        kind, inode, offset, length, path, *other = log[place:end].decode().split(" ")
        place, data = end + 1, b""
        if kind == "W":
            data = log[place : place + int(length)]
            place += int(length) + 1
        yield Change(kind, int(inode), int(offset), data, unquote(path), unquote("".join(other)))


@dataclass
class File:
    """``flushed`` is safe; ``since`` are writes (offset, bytes) and lengths (None) that are not."""

    flushed: bytes = b""
    since: list[tuple[int, bytes | None]] = field(default_factory=list)

    def flush(self) -> None:
        self.flushed, self.since = self.now(), []

    def now(self) -> bytes:
        content = self.flushed
        for offset, data in self.since:
            content = _changed(content, offset, data)
        return content

    def after_loss(self, chance: Random) -> bytes:
        """One of the contents that the disk may hold."""
        content = self.flushed
        for offset, data in self.since:
            if data is None:
                content = _changed(content, offset, None) if chance.random() < 0.5 else content
                continue
            for start in range(0, len(data), BLOCK):
                if chance.random() < 0.5:
                    content = _changed(content, offset + start, data[start : start + BLOCK])
        whole = len(self.now())
        longest = max(len(content), whole)
        return content.ljust(
            chance.choice((len(content), longest, chance.randint(len(content), longest))), b"\0"
        )


def _changed(content: bytes, offset: int, data: bytes | None) -> bytes:
    if data is None:
        return content[:offset].ljust(offset, b"\0")
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]


@dataclass(eq=False)
class Folder:
    names: "dict[str, File | Folder]" = field(default_factory=dict)


Entry = tuple[Folder, str, "File | Folder | None"]


@dataclass
class Disk:
    """The files under a folder as processes see them, and as they are after a loss.

    ``unsafe`` are changes of names that no flush has covered, each as the entries that it sets together.
    """

    in_order: bool
    seen: Folder = field(default_factory=Folder)
    safe: dict[Folder, dict[str, "File | Folder"]] = field(default_factory=dict)
    unsafe: list[list[Entry]] = field(default_factory=list)
    inodes: dict[int, File] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def apply(self, change: Change) -> None:
        match change.kind:
            case "C":
                self.inodes[change.inode] = File()
                self._set([(*self._at(change.path), self.inodes[change.inode])])
            case "W":
                self.inodes[change.inode].since.append((change.offset, change.data))
            case "T":
                self.inodes[change.inode].since.append((change.offset, None))
            case "S":
                self.inodes[change.inode].flush()
            case "D":
                self._flush(self._folder(change.path))
            case "R":
                before, after = self._at(change.path), self._at(change.other)
                self._set([(*after, before[0].names[before[1]]), (*before, None)])
            case "U" | "X":
                self._set([(*self._at(change.path), None)])
            case "K":
                self._set([(*self._at(change.path), Folder())])
            case "M":
                self.marks.append(change.path)
            case _:
                raise ValueError(f"cannot lose what {change.path} does to {change.other}")

    def lose(self, root: Path, chance: Random) -> None:
        """Write what is there after the loss into a new folder."""
        names = {folder: dict(entries) for folder, entries in self.safe.items()}
        if self.in_order:
            kept = self.unsafe[: chance.randint(0, len(self.unsafe))]
        else:
            kept = [each for each in self.unsafe if chance.random() < 0.5]
        for folder, name, what in (entry for entries in kept for entry in entries):
            _enter(names.setdefault(folder, {}), name, what)
        self._write(root, self.seen, names, chance)

    def _write(
        self, path: Path, folder: Folder, names: dict[Folder, dict[str, "File | Folder"]], chance: Random
    ) -> None:
        path.mkdir()
        for name, what in names.get(folder, {}).items():
            if isinstance(what, Folder):
                self._write(path / name, what, names, chance)
            else:
                (path / name).write_bytes(what.after_loss(chance))

    def _folder(self, path: str) -> Folder:
        found: File | Folder = self.seen
        for name in Path(path).parts:
            assert isinstance(found, Folder)
            found = found.names[name]
        assert isinstance(found, Folder)
        return found

    def _at(self, path: str) -> tuple[Folder, str]:
        return self._folder(str(Path(path).parent)), Path(path).name

    def _set(self, entries: list[Entry]) -> None:
        for folder, name, what in entries:
            _enter(folder.names, name, what)
        self.unsafe.append(entries)

    def _flush(self, folder: Folder) -> None:
        """A journal is written in order; other disks keep what touches the folder."""
        covered = [any(each[0] is folder for each in entries) for entries in self.unsafe]
        if self.in_order and any(covered):
            last = len(covered) - covered[::-1].index(True)
            covered = [place < last for place in range(len(covered))]
        for entries, is_safe in zip(self.unsafe, covered, strict=True):
            for place, name, what in entries if is_safe else ():
                _enter(self.safe.setdefault(place, {}), name, what)
        self.unsafe = [each for each, is_safe in zip(self.unsafe, covered, strict=True) if not is_safe]


def _enter(names: dict[str, File | Folder], name: str, what: File | Folder | None) -> None:
    if what is None:
        names.pop(name, None)
    else:
        names[name] = what


def lose_power(changes: list[Change], at: int, root: Path, chance: Random) -> list[str]:
    """Write under ``root`` what may be there after a loss behind so many changes; the marks until then."""
    disk = Disk(in_order=chance.random() < 0.5)
    for change in changes[:at]:
        disk.apply(change)
    disk.lose(root, chance)
    return disk.marks
