"""The files of a run, read and written by way of its manifest.

**Reading.** What a file holds must be what the manifest binds. No link is followed. A run without a
manifest, of an older version, is read unchecked until it is first written to: then its files are bound as
they are.

**Writing.** Several files cannot be replaced in one step, so the order is

1. the new contents go to the disk under temporary names;
2. the manifest binds them, and keeps as ``before`` what the files held;
3. each temporary file gets its name, in the order given.

A kill before the end of 2 leaves the old manifest and the old files. Later it leaves some old files and
some new ones; the manifest names both, so each can be read. The next write, or ``settle``, drops what is no
longer there. Writers take turns by a lock; a reader that meets a write between its look at the manifest and
its look at the file looks again.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from attnlab.errors import RunError, StorageError, brief
from attnlab.reading import MOST_LINES, read_bytes
from attnlab.runs.manifest import (
    ABSENT,
    MANIFEST,
    Bound,
    Digest,
    Manifest,
    bind,
    digest,
    look_at_manifest,
    read_manifest,
)
from attnlab.storage import (
    clear_temporaries,
    flush,
    make_folder,
    refuse_link,
    refusing,
    write_bytes,
    write_together,
)

LOCK = ".manifest.lock"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
SPEC = "spec.json"
STATE = "state.safetensors"
BEST = "best.safetensors"
WRITTEN = (SPEC, STATE, BEST, METRICS, SUMMARY, "last.safetensors", "environment.json", "observed.json")
"""What a training writes."""
OLDER = ("*.json", "*.safetensors", "task.py", METRICS, "analysis/*.json", "snapshots/*.safetensors")
"""What is bound of a run of an older version."""
MOST_WEIGHTS = 2**33
"""Bytes of a file of tensors."""
_LOOKS = 100
_SECONDS = 60.0


def check_name(name: str, *, deepest: int = 2) -> None:
    """Refuse a name that does not stand for a file in the run folder, or in folders in it."""
    parts = PurePosixPath(name).parts
    plain = name.isprintable() and not {"\\", ":"} & set(name) and name == "/".join(parts)
    if not (plain and 1 <= len(parts) <= deepest) or any(part.startswith((".", "/")) for part in parts):
        raise RunError(f"{brief(name)} is not a file of a run folder")


def read_file(folder: Path, name: str, most: int = MOST_LINES) -> bytes:
    """What a file of the run holds, as it was written; an ``OSError`` or ``ValueError`` if it cannot be
    read.
    """
    return read_known(folder, name, most)[0]


def read_known(folder: Path, name: str, most: int = MOST_LINES) -> tuple[bytes, Digest | None]:
    """The same, with the digest by which the manifest knows it; None without a manifest."""
    manifest, last = look_at_manifest(folder), None
    for _ in range(_LOOKS):
        content = _read(folder, name, most)
        if manifest is None:
            return content, None
        bound = manifest.files.get(name)
        found = None if bound is None else bound.fits(content)
        if found is not None:
            return content, found
        if manifest == last:
            break
        last, manifest = manifest, read_manifest(folder)
    raise _damaged(folder, name, known=bound is not None)


def write_files(folder: Path, files: Mapping[str, bytes], *, growing: Collection[str] = ()) -> None:
    """Replace files of the run, in this order; those that are ``growing`` may get more lines later.

    A growing file that is not among ``files`` is bound as it is now.
    """
    for name in files:
        check_name(name)
        _make_place(folder, name)
    with _writing(folder) as before:
        bound = dict(before.files)
        for name in growing:
            if name not in files:
                flush(folder / name)
                bound[name] = bind(_read(folder, name, MOST_LINES), grows=True)
        for name, content in files.items():
            bound[name] = bind(content, grows=name in growing, before=_held(folder, name, before))
        after = Manifest(bound)
        contents = {folder / name: content for name, content in files.items()}
        write_together(contents, ready=lambda: _write(folder, after))


def settle(folder: Path, *, without: Collection[str] = (), ended: Collection[str] = ()) -> None:
    """Bind what is there and nothing else; remove the files ``without``, and let ``ended`` grow no more."""
    with _writing(folder) as before:
        bound = {name: each for name, each in before.files.items() if name not in without}
        for name in ended:
            flush(folder / name)
            bound[name] = bind(_read(folder, name, MOST_LINES))
        if bound != read_bound(folder):
            _write(folder, Manifest(bound))
        for (
            name
        ) in without:  # last: a file that is left over is read by nobody, one that is missing is damage
            with refusing(folder / name):
                (folder / name).unlink(missing_ok=True)


def clear_halves(folder: Path) -> None:
    """Remove temporary files that a killed writer has left; nobody else writes meanwhile."""
    with _writing(folder) as manifest:
        for name in {MANIFEST, *WRITTEN, *manifest.files}:
            clear_temporaries(folder / name)


def read_bound(folder: Path) -> Mapping[str, Bound]:
    """What the manifest binds, by name; nothing of a run of an older version."""
    manifest = read_manifest(folder)
    return {} if manifest is None else manifest.files


def find_damage(folder: Path) -> str | None:
    """The first file of a run that is missing or not as it was written; None if it is whole."""
    if read_manifest(folder) is None:
        return MANIFEST
    for name, bound in read_bound(folder).items():
        try:
            read_file(folder, name, MOST_WEIGHTS)
        except (OSError, ValueError, RunError) as error:
            if not (isinstance(error, FileNotFoundError) and bound.before == ABSENT):
                return name
    return None


def first_manifest(files: Mapping[str, bytes], *, growing: Collection[str] = ()) -> bytes:
    """The manifest of a run that holds these files and has not been seen by anybody."""
    return Manifest({name: bind(files[name], grows=name in growing) for name in files}).write()


@contextmanager
def _writing(folder: Path) -> Iterator[Manifest]:
    """Keep other writers out; the manifest, which says of every file what it really holds."""
    refuse_link(folder / LOCK)
    with refusing(folder):
        try:
            lock = FileLock(folder / LOCK, timeout=_SECONDS).acquire()
        except Timeout as error:
            raise StorageError(
                f"cannot write into run {folder}: another process has kept it locked for a minute; "
                "try again when that has ended"
            ) from error
    with lock:
        manifest = read_manifest(folder)
        if manifest is None:
            yield _adopt(folder)
            return
        for name in list(manifest.files):
            if manifest.files[name].before is not None:
                with suppress(OSError, ValueError):
                    manifest = manifest.settled(name, _content(folder, name))
        yield manifest


def _adopt(folder: Path) -> Manifest:
    """What a run of an older version holds."""
    found = {}
    for pattern in OLDER:
        for path in folder.glob(pattern):
            name = path.relative_to(folder).as_posix()
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                grows = name == METRICS and not (folder / SUMMARY).exists()
                found[name] = bind(_read(folder, name, MOST_WEIGHTS), grows=grows)
    return Manifest(found)


def _held(folder: Path, name: str, manifest: Manifest) -> Digest:
    """What a file holds; of one that has grown the manifest does not know it."""
    bound = manifest.files.get(name)
    if bound is None:
        return ABSENT
    if not bound.grows:
        return bound.known
    content = _content(folder, name)
    return ABSENT if content is None else digest(content)


def _content(folder: Path, name: str) -> bytes | None:
    """What a file holds; None if it is not there."""
    with suppress(FileNotFoundError):
        return _read(folder, name, MOST_WEIGHTS)
    return None


def _read(folder: Path, name: str, most: int) -> bytes:
    place = (folder / name).parent
    if place != folder and place.is_symlink():
        raise ValueError(f"{place.name} is a symbolic link")
    return read_bytes(folder / name, most, links=False)


def _make_place(folder: Path, name: str) -> None:
    place = (folder / name).parent
    if place != folder:
        refuse_link(place)
        make_folder(place)


def _write(folder: Path, manifest: Manifest) -> None:
    write_bytes(folder / MANIFEST, manifest.write())


def _damaged(folder: Path, name: str, *, known: bool) -> RunError:
    what = "is not as it was written" if known else "was not written with the run"
    return RunError(f"run {folder} is damaged: {name} {what}, says {MANIFEST}; {_next_step(folder, name)}")


def _next_step(folder: Path, name: str) -> str:
    """How a user goes on whose run has lost a file."""
    again = "then resume: training begins again and ends with the same weights"
    if name == STATE:
        usable = f"; until then {BEST} can be used" if (folder / BEST).exists() else ""
        return f"remove it, {again}{usable}"
    if name == BEST and not (folder / SUMMARY).exists():
        return f"remove it and {STATE}, {again}"
    if name.startswith("analysis/"):
        return "remove it and run the analysis again"
    if name.startswith("snapshots/"):
        return "remove it to do without that snapshot"
    return f"bring it back from a copy of the run, or train a new run with its {SPEC}"
