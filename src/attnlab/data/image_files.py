"""Labelled images of one's own, of any size, in grey or colour, from a folder or an ``.npz`` file.

    train/CLASS/*.png, test/CLASS/*.png     pictures by class; without ``test`` one in six of each class is
    CLASS/*.png                             kept for testing, the same ones every time
    train-*.parquet, test-*.parquet         columns image (struct with bytes) and label, as Hugging Face has
    train-images-idx3-ubyte, ...            IDX, raw or with .gz, as MNIST has
    *.npz                                   x_train, y_train, x_test, y_test, or images and labels; classes

Pictures must have one size. Where any of them is in colour, all are.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, UInt8
from numpy import ndarray
from PIL import Image

from attnlab.data.idx_bytes import LIMIT
from attnlab.data.image_set import ImageSet, read_sets
from attnlab.data.mnist_files import NAMES, find_idx, fingerprint, read_file
from attnlab.data.parquet import opened, rows_of
from attnlab.data.pictures import MOST_BYTES, pictures_in, read_pixels
from attnlab.errors import InputError, brief
from attnlab.reading import MOST_SPEC, parse_json, read_bytes

TESTED = 6
"""One in so many of a class is kept for testing, where there are no test pictures."""
MOST = 2**31
"""Bytes of all images together, and of an ``.npz`` file."""
MOST_CLASSES = 2**16
"""Classes that a file names, or that its labels stand for."""
_SHUFFLE = 1998

Pixels = UInt8[ndarray, "N ..."]


@dataclass(frozen=True)
class Part:
    """Images (N, Y, X) or (N, 3, Y, X) with the numbers of their classes."""

    images: Pixels
    labels: Int[ndarray, "N"]


@lru_cache(maxsize=2)
def load_images(directory: str) -> ImageSet:
    """All images of a folder or an ``.npz`` file; read once a process."""
    path = Path(directory)
    if path.suffix == ".npz" and path.is_file():
        return _arrays(path)
    if not os.path.isdir(directory):  # noqa: PTH112  # unlike Path.is_dir, false for a name that is too long
        raise InputError(f"{brief(directory)} is not a folder; name one that holds images")
    arrays = sorted(path.glob("*.npz"))
    if arrays:
        if len(arrays) > 1:
            raise InputError(f"{path} holds {len(arrays)} npz files; name one of them")
        return _arrays(arrays[0])
    if any(find_idx(path, name) for name in NAMES):
        return _idx(path)
    if any(path.glob("*.parquet")):
        return _tables(path)
    return _folders(path)


def fit_picture(source: Path | bytes, name: str, shape: tuple[int, int, int]) -> UInt8[ndarray, "*C Y X"]:
    """A picture in the colours of a task's images, and in their size."""
    channels, height, width = shape
    image = Image.fromarray(read_pixels(source, name)).convert("L" if channels == 1 else "RGB")
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)
    pixels = np.asarray(image)
    return pixels if channels == 1 else pixels.transpose(2, 0, 1)


def _folders(path: Path) -> ImageSet:
    train = path / "train" if (path / "train").is_dir() else path
    files = _by_class(train)
    parts = {"train": files}
    if train != path and (path / "test").is_dir():
        parts["test"] = _by_class(path / "test")
        unknown = sorted(set(parts["test"]) - set(files))
        if unknown:
            raise InputError(f"{path / 'test' / unknown[0]} is a class that has no training pictures")
    else:
        parts = _parted(files)
    classes = sorted(files)
    read, digest = {}, hashlib.sha256()
    for name, groups in parts.items():
        pairs = [(file, classes.index(each)) for each, group in groups.items() for file in group]
        if not pairs:
            raise InputError(f"{path} has too few pictures: {TESTED} of a class are needed to test by one")
        read[name] = _pictures([pairs[at] for at in _order(len(pairs))], path, digest)
    return _image_set(read["train"], read["test"], classes, path, {"pictures": digest.hexdigest()})


def _by_class(folder: Path) -> dict[str, list[Path]]:
    """The pictures of each class, by the names of folders."""
    folders = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    if not folders:
        raise InputError(
            f"{folder} holds no images; it needs a folder of pictures for each class, such as "
            f"{folder / 'cat'}, or IDX, Parquet or npz files"
        )
    return {each.name: pictures_in(each) for each in folders}


def _parted(files: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    parts: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for name, group in files.items():
        mixed = [group[at] for at in _order(len(group))]
        kept = len(group) // TESTED
        parts["test"][name], parts["train"][name] = mixed[:kept], mixed[kept:]
    return parts


def _order(count: int) -> list[int]:
    """A shuffle that is always the same."""
    order: list[int] = np.random.default_rng(_SHUFFLE).permutation(count).tolist()
    return order


def _pictures(pairs: list[tuple[Path, int]], root: Path, digest: "hashlib._Hash") -> Part:
    images: list[ndarray] = []
    for file, _ in pairs:
        try:
            content = read_bytes(file, MOST_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"picture {brief(str(file))} cannot be read ({reason})") from error
        digest.update(f"{file.relative_to(root)}\n".encode())
        digest.update(content)
        images.append(read_pixels(content, str(file)))
        _check_same(images[-1], images[0], f"picture {str(file)!r}", len(pairs))
    return Part(_stacked(images), np.array([label for _, label in pairs]))


def _check_same(image: ndarray, first: ndarray, name: str, count: int) -> None:
    (height, width), (high, wide) = image.shape[:2], first.shape[:2]
    if (height, width) != (high, wide):
        raise InputError(
            f"{name} is {width} x {height} pixels, and others are {wide} x {high}; all must have one size"
        )
    if height * width * count > MOST:
        raise InputError(f"{count:,} images of {width} x {height} pixels are too many; make them smaller")


def _stacked(images: Sequence[ndarray]) -> Pixels:
    """Grey, or in colour if one of them is."""
    if all(image.ndim == 2 for image in images):
        return np.stack(images)
    full = [image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2) for image in images]
    return np.stack(full).transpose(0, 3, 1, 2)


def _arrays(path: Path) -> ImageSet:
    try:
        content = read_bytes(path, MOST)
        with np.load(BytesIO(content), allow_pickle=False) as file:
            size = sum(each.file_size for each in file.zip.infolist())
            if size > MOST:
                raise InputError(f"{path} unpacks to {size:,} bytes; {MOST:,} are read")
            held = {name: np.asarray(file[name]) for name in file.files}
        names = None
        if "classes" in held:
            _check_classes(path, held["classes"].size)
            names = [str(each) for each in held["classes"].flatten()]
    except InputError:
        raise
    except Exception as error:  # damage makes numpy raise almost anything
        raise InputError(f"{path} is not a readable npz file: {error}") from error
    if {"x_train", "y_train", "x_test", "y_test"} <= held.keys():
        train, test = (_array(path, held, f"x_{part}", f"y_{part}") for part in ("train", "test"))
    elif {"images", "labels"} <= held.keys():
        whole = _array(path, held, "images", "labels")
        order = np.array(_order(len(whole.labels)))
        kept = len(order) // TESTED
        test, train = (Part(whole.images[at], whole.labels[at]) for at in (order[:kept], order[kept:]))
    else:
        there = ", ".join(sorted(held)) or "nothing"
        raise InputError(
            f"{path} holds {there}; it needs images and labels, or x_train, y_train, x_test and y_test"
        )
    return _image_set(train, test, names, path, {path.name: fingerprint(content)})


def _array(path: Path, held: dict[str, Any], images: str, labels: str) -> Part:
    pixels, numbers = held[images], held[labels]
    if pixels.ndim == 4 and pixels.shape[-1] in (1, 3):
        pixels = pixels.transpose(0, 3, 1, 2)
    grey = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[1] == 1)
    if pixels.dtype != np.uint8 or not (grey or (pixels.ndim == 4 and pixels.shape[1] == 3)):
        raise InputError(
            f"{path}: {images} has the shape {held[images].shape} of {pixels.dtype}; it must be (N, Y, X) "
            "or (N, Y, X, 3) of uint8"
        )
    if numbers.shape != (len(pixels),) or not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(
            f"{path}: {labels} has the shape {numbers.shape} of {numbers.dtype}; it must be one integer an "
            f"image, of which there are {len(pixels):,}"
        )
    return Part(
        pixels.reshape(len(pixels), *pixels.shape[-2:]) if grey else pixels, numbers.astype(np.int64)
    )


def _idx(path: Path) -> ImageSet:
    found = {name: find_idx(path, name) for name in NAMES}
    missing = [name for name, file in found.items() if file is None]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}")
    raw = {name: read_file(file) for name, file in found.items() if file is not None}
    pixels, labels, tested, asked = (each.numpy() for each in read_sets(raw, size=None, classes=256))
    hashes = {name: fingerprint(content) for name, content in raw.items()}
    train, test = Part(pixels, labels.astype(np.int64)), Part(tested, asked.astype(np.int64))
    return _image_set(train, test, None, path, hashes)


def _tables(path: Path) -> ImageSet:
    parts, names = [], None
    hashes: dict[str, str] = {}
    for part in ("train", "test"):
        files = sorted(path.glob(f"{part}*.parquet"))
        if not files:
            raise InputError(f"{path} lacks {part}-*.parquet")
        read = [_table(file) for file in files]
        names = names or read[0][1]
        hashes |= {file.name: fingerprint(read_bytes(file, LIMIT)) for file in files}
        images = [image for (rows, _) in read for image, _ in rows]
        for image in images:
            _check_same(image, images[0], f"an image of {files[0]}", len(images))
        labels = np.array([label for (rows, _) in read for _, label in rows])
        parts.append(Part(_stacked(images), labels))
    return _image_set(parts[0], parts[1], names, path, hashes)


def _table(path: Path) -> tuple[list[tuple[ndarray, int]], list[str] | None]:
    """Images and labels of a Parquet file, and the names of classes that it tells."""
    rows: list[tuple[ndarray, int]] = []
    with opened(path, LIMIT) as file:
        names = _class_names((file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
        count = file.metadata.num_rows
        for place, (content, label) in enumerate(rows_of(file)):
            name = f"{path}, row {place}"
            if content is None or label is None or label < 0:
                raise InputError(f"{name} has no image, or no label from 0 on")
            rows.append((read_pixels(content, name), label))
            _check_same(rows[-1][0], rows[0][0], name, count)  # at once: rows may share a large picture
    return rows, names


def _class_names(metadata: bytes) -> list[str] | None:
    """As the library ``datasets`` writes them beside a table; None where it did not."""
    if len(metadata) > MOST_SPEC:
        raise ValueError(f"its metadata has {len(metadata):,} bytes; at most {MOST_SPEC:,} are read")
    found = parse_json(metadata.decode())
    for key in ("info", "features", "label", "names"):
        found = found.get(key) if isinstance(found, dict) else None
    return [str(name) for name in found] if found and isinstance(found, list) else None


def _image_set(
    train: Part, test: Part, classes: list[str] | None, path: Path, sha256: dict[str, str]
) -> ImageSet:
    """Both parts together, once they are known to fit; classes that nobody names go by their numbers."""
    if classes is None:
        most = max(int(part.labels.max(initial=0)) for part in (train, test))
        _check_classes(path, most + 1)
        classes = [str(number) for number in range(most + 1)]
    for name, part in (("training", train), ("test", test)):
        if len(part.labels) == 0:
            raise InputError(f"{path} has no {name} images; there must be at least one")
        worst = int(part.labels.max() if part.labels.max() >= len(classes) else part.labels.min())
        if not 0 <= worst < len(classes):
            raise InputError(f"{path} has the label {worst}; its {len(classes)} classes go from 0 on")
    if len(set(classes)) < 2 or len(set(classes)) != len(classes):
        named = ", ".join(map(repr, classes))
        raise InputError(f"{path} has the classes {named}; there must be at least 2 different ones")
    if train.images.shape[-2:] != test.images.shape[-2:]:
        sizes = " and ".join(f"{part.images.shape[-1]} x {part.images.shape[-2]}" for part in (train, test))
        raise InputError(f"{path} has training and test images of {sizes} pixels; all must have one size")
    images = [part.images for part in (train, test)]
    if images[0].ndim != images[1].ndim:
        images = [each if each.ndim == 4 else np.repeat(each[:, None], 3, axis=1) for each in images]
    arrays = (images[0], train.labels, images[1], test.labels)
    tensors = (torch.from_numpy(np.ascontiguousarray(each)) for each in arrays)
    return ImageSet(*tensors, source=f"the directory {path}", sha256=sha256, classes=tuple(classes))


def _check_classes(path: Path, count: int) -> None:
    if count > MOST_CLASSES:
        raise InputError(f"{path} has {count:,} classes; there may be {MOST_CLASSES:,}")
