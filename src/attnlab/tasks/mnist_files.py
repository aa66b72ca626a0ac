"""The four files of MNIST: their names, their pinned SHA-256, and the digits they hold.

LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", 1998.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxtyping import UInt8
from torch import Tensor

from attnlab.tasks.idx import check_counts, read_images, read_labels

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NAMES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

SHA256 = {
    TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Of the raw files; how a mirror packs them does not matter."""

Tell = Callable[[str], None]
"""Hears how far a long piece of work is, many times a second; whoever shows it chooses how often."""


@dataclass(frozen=True)
class DigitImages:
    """Handwritten digits (or any set of the same form), 0 for the background and 255 for ink."""

    train_images: UInt8[Tensor, "N 28 28"]
    train_labels: UInt8[Tensor, "N"]
    test_images: UInt8[Tensor, "M 28 28"]
    test_labels: UInt8[Tensor, "M"]
    source: str
    """Where they come from, as a part of a sentence."""
    sample: bool
    """Whether this is the small bundled sample, because nothing else answered."""
    sha256: dict[str, str]
    """Of the four raw files, by name."""
    refusals: tuple[str, ...] = ()
    """Why each source that was asked before did not answer."""


def decode(
    files: Mapping[str, bytes],
    source: str,
    *,
    sample: bool = False,
    sha256: dict[str, str] | None = None,
    refusals: tuple[str, ...] = (),
) -> DigitImages:
    """The digits of four raw IDX files. ``sha256`` saves the time to find it again where it is known."""
    train_images = read_images(files[TRAIN_IMAGES], TRAIN_IMAGES)
    train_labels = read_labels(files[TRAIN_LABELS], TRAIN_LABELS)
    test_images = read_images(files[TEST_IMAGES], TEST_IMAGES)
    test_labels = read_labels(files[TEST_LABELS], TEST_LABELS)
    check_counts(train_images, train_labels, TRAIN_IMAGES, TRAIN_LABELS)
    check_counts(test_images, test_labels, TEST_IMAGES, TEST_LABELS)
    return DigitImages(
        train_images,
        train_labels,
        test_images,
        test_labels,
        source=source,
        sample=sample,
        sha256=sha256 or {name: fingerprint(files[name]) for name in NAMES},
        refusals=refusals,
    )


def fingerprint(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_canonical(name: str, content: bytes) -> bool:
    """Whether this is the file of MNIST that it is named after, byte for byte."""
    return fingerprint(content) == SHA256[name]


def silent(_: str) -> None:
    """For those who do not want to hear how far it is."""
