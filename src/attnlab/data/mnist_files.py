"""The four files of MNIST: their names, their pinned SHA-256, and what their sources are called.

LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", 1998.
"""

import hashlib
from collections.abc import Callable

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

CACHE = "the cache"
SAMPLE = "the bundled sample of MNIST (its first 5,000 training and 1,000 test digits)"

Tell = Callable[[str], None]
"""Hears how far a long piece of work is, many times a second; whoever shows it chooses how often."""


def fingerprint(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_canonical(name: str, content: bytes) -> bool:
    """Whether this is the file of MNIST that it is named after, byte for byte."""
    return fingerprint(content) == SHA256[name]


def silent(_: str) -> None:
    """For those who do not want to hear how far it is."""
