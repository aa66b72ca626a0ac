"""The manifest of a run: ``manifest.json`` binds each of its files to a SHA-256 (FIPS 180-4) and a size.

It is no signature: whoever can write the files can write a manifest that fits them. It shows damage, and
files that do not belong together.

A file that grows line by line is bound up to the length it had when it was bound last. While a file is
being replaced, ``before`` is what it held, if anything: until the new content has its name, both are right.
The seal is the SHA-256 of the manifest's own ``files``, so that a damaged manifest does not put the blame
on a file.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

from attnlab.errors import RunError, SpecError, brief
from attnlab.reading import MOST_SPEC, parse_json, read_bytes
from attnlab.specs import from_json, to_json
from attnlab.specs.codec import later
from attnlab.storage import as_json

MANIFEST = "manifest.json"
FORMAT = 1


@final
@dataclass(frozen=True)
class Digest:
    """What a content is known by."""

    sha256: str
    size: int


ABSENT = Digest("", 0)
"""What a file that was not there is known by."""


def digest(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest(), len(content))


@final
@dataclass(frozen=True)
class Bound:
    """What a file holds; if it ``grows``, what it begins with."""

    sha256: str
    size: int
    grows: bool = later(False)
    before: Digest | None = later(None)
    """What it holds as well while it is being replaced; ``ABSENT`` if it is new."""

    @property
    def known(self) -> Digest:
        return Digest(self.sha256, self.size)

    def fits(self, content: bytes) -> Digest | None:
        """The digest by which ``content`` is known, if it is."""
        if not self.grows or len(content) < self.size:
            found = digest(content)
            return found if found in (self.known, self.before) else None
        if digest(content[: self.size]) == self.known:
            return self.known
        return found if (found := digest(content)) == self.before else None


@final
@dataclass(frozen=True)
class Manifest:
    """Files by their names in the run folder."""

    files: Mapping[str, Bound]

    def write(self) -> bytes:
        plain = {name: to_json(self.files[name]) for name in sorted(self.files)}
        return as_json({"format": FORMAT, "seal": _seal(plain), "files": plain})

    def settled(self, name: str, content: bytes | None) -> "Manifest":
        """With nothing but what ``name`` really holds; None if it is not there."""
        bound = self.files[name]
        if content is None:
            is_new = bound.before == ABSENT
            return (
                Manifest({key: each for key, each in self.files.items() if key != name}) if is_new else self
            )
        if bound.before is None:
            return self
        found = bound.fits(content)
        is_old = found == bound.before != bound.known
        kept = bound.before if is_old else bound.known
        grows = bound.grows and not is_old
        return Manifest({**self.files, name: Bound(kept.sha256, kept.size, grows)})


@final
@dataclass(frozen=True)
class Written:
    """What the file holds."""

    format: int
    seal: str
    files: dict[str, Bound]


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a run; None if it has none, as those of older versions."""
    try:
        plain = parse_json(read_bytes(folder / MANIFEST, MOST_SPEC, links=False).decode())
        version = plain.get("format") if isinstance(plain, dict) else None
        if isinstance(version, int) and version > FORMAT:
            raise RunError(
                f"run {folder} was written by a newer version of attnlab: {MANIFEST} has format "
                f"{brief(version)}, this version reads {FORMAT}; install a newer one"
            )
        found = from_json(Written, plain, MANIFEST)
        if found.seal != _seal(plain["files"]):
            raise ValueError("its files are not those of its seal")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, SpecError) as error:
        raise RunError(
            f"run {folder} is damaged: {MANIFEST} cannot be read ({error}); bring it back from a copy, or "
            "remove it to open the run with nothing checked"
        ) from error
    return Manifest(found.files)


def look_at_manifest(folder: Path) -> Manifest | None:
    """The same, parsed once while its file stays as it is.

    A file that was replaced within one tick of the clock may look the same; who finds something that does
    not fit reads it again.
    """
    try:
        now = (folder / MANIFEST).lstat()
    except FileNotFoundError:
        return None
    return _parsed(folder, now.st_ino, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=256)
def _parsed(folder: Path, *_identity: int) -> Manifest | None:
    return read_manifest(folder)


def bind(content: bytes, *, grows: bool = False, before: Digest | None = None) -> Bound:
    found = digest(content)
    return Bound(found.sha256, found.size, grows, before if before != found else None)


def _seal(files: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
