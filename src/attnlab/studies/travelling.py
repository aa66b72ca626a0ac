"""Run folders on their way to a node of a cluster and back.

What comes back is held against its manifest and against the job's spec before the pool sees any of it. It
can move a run forward, and nothing else: a finished run in the pool stays as it is but for analyses that it
lacked, an unfinished one is replaced only by one that is as far or further, and no file is taken away but
the training state of a run that has finished.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attnlab.errors import RunError, SpecError, brief
from attnlab.reading import parse_json, read_bytes
from attnlab.runs import RunFolder, find_damage, place_run
from attnlab.runs.files import BEST, METRICS, MOST_WEIGHTS, SPEC, STATE, SUMMARY, check_name, read_bound
from attnlab.runs.manifest import MANIFEST
from attnlab.specs import Spec, from_json, to_json
from attnlab.storage import make_folder, refuse_link, write_bytes
from attnlab.training.records import saved_step

Archive = dict[str, bytes]

MOST_FILES = 10_000
MOST_BYTES = 2**31
"""Of all files of a run together."""
UNBOUND = ("tensorboard/", "wandb/")
"""What trackers write, which no manifest binds."""


def pack(folder: Path) -> Archive:
    """What a run folder holds; damage is refused, and so is a link, since what it leads to is no part of
    the run.
    """
    found = _listed(folder)
    linked = next((path for path in found if path.is_symlink()), None)
    if linked is not None:
        raise RunError(f"{linked} is a symbolic link, which no run on its way to a cluster may hold")
    files = [path for path in found if path.is_file()]
    _check_size(len(files), sum(path.stat().st_size for path in files))
    bound, archive, run = read_bound(folder), Archive(), RunFolder(folder)
    for path in files:
        name = path.relative_to(folder).as_posix()
        archive[name] = run.read(name, MOST_WEIGHTS) if name in bound else read_bytes(path)
    return check_archive(archive)


def _listed(folder: Path) -> list[Path]:
    """All but what is hidden, without a look behind links."""
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".")]
        found += [Path(path, each) for each in (*folders, *names) if not each.startswith(".")]
    return sorted(found)


def check_archive(archive: object) -> Archive:
    """What came over the network, if it is files of one run."""
    if not isinstance(archive, dict) or not all(isinstance(each, bytes) for each in archive.values()):
        raise RunError(f"{brief(archive)} is not a folder of files")
    _check_size(len(archive), sum(len(each) for each in archive.values()))
    for name in archive:
        check_name(name if isinstance(name, str) else "", deepest=8)
    return archive


def _check_size(files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        raise RunError(
            f"a run has {files:,} files of {size:,} bytes together; at most {MOST_FILES:,} files and "
            f"{MOST_BYTES:,} bytes travel to a cluster and back"
        )


def unpack(archive: Mapping[str, bytes], folder: Path) -> RunFolder:
    """A run in a new folder of its own."""
    for name in check_archive({**archive}):
        path = folder / name
        for place in reversed(path.relative_to(folder).parents[:-1]):
            refuse_link(folder / place)
        make_folder(path.parent)
        write_bytes(path, archive[name])
    return RunFolder(folder)


def take_back(archive: Mapping[str, bytes], folder: Path, spec: Spec) -> None:
    """Put what came back where ``folder`` is, the run of ``spec``, if it is what it should be."""
    make_folder(folder.parent)
    with tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=folder.parent) as place:
        came = unpack(archive, Path(place) / folder.name)
        _check(came, archive, spec)
        files = {name: content for name, content in archive.items() if name != MANIFEST}
        here = RunFolder(folder)
        if here.file(SPEC).exists():
            _move_forward(here, came, files)
        else:
            place_run(folder, {name: files[name] for name in read_bound(came.path)}, archive[MANIFEST])
    _add_unbound(folder, files)


def _check(came: RunFolder, archive: Mapping[str, bytes], spec: Spec) -> None:
    damaged = find_damage(came.path)
    if damaged is not None:
        raise RunError(f"its {damaged} is missing or damaged")
    others = archive.keys() - read_bound(came.path).keys() - {MANIFEST}
    unknown = sorted(name for name in others if not name.startswith(UNBOUND))
    if unknown:
        raise RunError(f"its {MANIFEST} does not name {unknown[0]}")
    if not _is_of(archive[SPEC], spec):
        raise RunError("its spec is not that of the job")
    if came.summary() is not None and BEST not in archive:
        raise RunError(f"it is finished, but has no {BEST}")


def _is_of(content: bytes, spec: Spec) -> bool:
    """Whether a ``spec.json`` says the same as ``spec``; code that it names is not run."""
    try:
        plain = parse_json(content.decode())
        same_code = plain.get("source", "") == spec.source
        return same_code and bool(to_json(from_json(Spec, plain)) == to_json(spec))
    except (AttributeError, ValueError, SpecError):
        return False


def _move_forward(here: RunFolder, came: RunFolder, files: Mapping[str, bytes]) -> None:
    """Write what is new; the summary comes after the weights it speaks of, analyses come last."""
    old, new = read_bound(here.path), read_bound(came.path)
    if here.summary() is not None:
        for name in (BEST, "last.safetensors"):
            if name in old and (name not in new or new[name].known != old[name].known):
                raise RunError(f"its {name} is not that of the finished run {here.path}")
        fresh = {name for name in new if name.startswith("analysis/") and not here.file(name).exists()}
    else:
        before, after = saved_step(here), saved_step(came)
        if came.summary() is None and after < before:
            raise RunError(f"it stands at step {after:,}, but {here.path} at step {before:,}")
        fresh = {name for name in new if name not in old or new[name].known != old[name].known} - {SPEC}
    order = sorted(fresh, key=lambda name: (name.startswith("analysis/"), name == SUMMARY, name == STATE))
    growing = [METRICS] if METRICS in new and new[METRICS].grows else []
    here.write({name: files[name] for name in order}, growing=growing)
    if came.summary() is not None and here.file(STATE).exists():
        here.remove(STATE)


def _add_unbound(folder: Path, files: Mapping[str, bytes]) -> None:
    """Files of trackers that are not here."""
    fresh = {name: files[name] for name in files if name.startswith(UNBOUND)}
    unpack({name: fresh[name] for name in fresh if not (folder / name).exists()}, folder)
