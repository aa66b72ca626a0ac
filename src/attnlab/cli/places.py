"""Where commands write, and refusing a place before the work rather than after it."""

import re
from pathlib import Path

from attnlab.data.choices import ENDINGS
from attnlab.errors import InputError, StorageError
from attnlab.storage import refusing


def check_out(out: str, *endings: str, folder: bool = False) -> None:
    """Refuse a file that ends otherwise, and a place for which no folder can be made."""
    path = Path(out)
    with refusing(path):
        taken, is_file = path.is_dir(), path.suffix in endings
        holder = path.parent if is_file else path
        there = next((each for each in (holder, *holder.parents) if each.exists()), Path())
        blocked = not there.is_dir()
    if not is_file and not (folder and (taken or not path.suffix)):
        known = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        rule = f"give a file that ends in {known}, or a folder" if folder else f"it must end in {known}"
        raise InputError(f"--out is {out!r}; {rule}")
    if is_file and taken:
        raise StorageError(f"cannot write {path}: it is a folder")
    if blocked:
        raise StorageError(f"cannot write {path}: {there} is no folder")


def file_name(*words: str) -> str:
    """A name that any disk takes; of a picture without its ending."""
    plain = [word.removesuffix(Path(word).suffix) if _is_picture(word) else word for word in words]
    return re.sub(r"[^\w.+-]", "-", "-".join(plain))


def _is_picture(word: str) -> bool:
    return Path(word).suffix.lower() in ENDINGS
