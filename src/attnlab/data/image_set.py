"""Labelled images to learn from and to be tested by."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Integer, UInt8
from torch import Tensor

from attnlab.data.idx import check_counts, read_images, read_labels
from attnlab.data.mnist_files import (
    NAMES,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    fingerprint,
)


@dataclass(frozen=True)
class ImageSet:
    """Images of one size; grey ones have no axis for channels, and colours are red, green and blue."""

    train_images: UInt8[Tensor, "N *C Y X"]
    train_labels: Integer[Tensor, "N"]
    test_images: UInt8[Tensor, "M *C Y X"]
    test_labels: Integer[Tensor, "M"]
    source: str
    """Where they come from, as a part of a sentence."""
    sample: bool
    """Whether this is the small bundled sample, because nothing else answered."""
    sha256: dict[str, str]
    """Of the files, by name."""
    classes: tuple[str, ...] = ()
    """Names of the labels, where they are told."""
    refusals: tuple[str, ...] = ()
    """Why each source that was asked before did not answer."""


def decode(
    files: Mapping[str, bytes],
    source: str,
    *,
    sample: bool = False,
    sha256: dict[str, str] | None = None,
    refusals: tuple[str, ...] = (),
) -> ImageSet:
    """The digits of four raw IDX files. ``sha256`` saves the time to find it again where it is known."""
    train_images = read_images(files[TRAIN_IMAGES], TRAIN_IMAGES)
    train_labels = read_labels(files[TRAIN_LABELS], TRAIN_LABELS)
    test_images = read_images(files[TEST_IMAGES], TEST_IMAGES)
    test_labels = read_labels(files[TEST_LABELS], TEST_LABELS)
    check_counts(train_images, train_labels, TRAIN_IMAGES, TRAIN_LABELS)
    check_counts(test_images, test_labels, TEST_IMAGES, TEST_LABELS)
    return ImageSet(
        train_images,
        train_labels,
        test_images,
        test_labels,
        source=source,
        sample=sample,
        sha256=sha256 or {name: fingerprint(files[name]) for name in NAMES},
        refusals=refusals,
    )
