"""Labelled images to learn from and to be tested by."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from jaxtyping import Integer, UInt8
from torch import Tensor

from attnlab.data.idx import check_counts, read_images, read_labels
from attnlab.data.idx_bytes import CLASSES, SIDE
from attnlab.data.mnist_files import NAMES, fingerprint


@dataclass(frozen=True)
class ImageSet:
    """Images of one size; grey ones have no axis for channels, and colours are red, green and blue."""

    train_images: UInt8[Tensor, "N *C Y X"]
    train_labels: Integer[Tensor, "N"]
    test_images: UInt8[Tensor, "M *C Y X"]
    test_labels: Integer[Tensor, "M"]
    _: KW_ONLY
    source: str
    """Where they come from, as a part of a sentence."""
    sha256: dict[str, str]
    """Of the files, by name."""
    sample: bool = False
    """Whether this is the small bundled sample, because nothing else answered."""
    classes: tuple[str, ...] = ()
    """Names of the labels, where they are told."""
    refusals: tuple[str, ...] = ()
    """Why each source that was asked before did not answer."""


def read_sets(
    files: Mapping[str, bytes], size: tuple[int, int] | None = (SIDE, SIDE), classes: int = CLASSES
) -> list[Tensor]:
    """Images and labels to learn from, then those to be tested by, of four raw IDX files."""
    found = []
    for images, labels in (NAMES[:2], NAMES[2:]):
        pixels = read_images(files[images], images, size)
        numbers = read_labels(files[labels], labels, classes)
        check_counts(pixels, numbers, images, labels)
        found += [pixels, numbers]
    return found


def decode(files: Mapping[str, bytes], source: str, sha256: dict[str, str] | None = None) -> ImageSet:
    """The digits of four raw IDX files. ``sha256`` saves the time to find it again where it is known."""
    hashes = sha256 or {name: fingerprint(files[name]) for name in NAMES}
    return ImageSet(*read_sets(files), source=source, sha256=hashes)
