"""Pixels as models are given them: scaled, and altered for training."""

from functools import lru_cache
from pathlib import Path

from jaxtyping import Float, UInt8
from torch import Tensor

from attnlab.data.augmenting import augment
from attnlab.data.mnist import load_digits_data
from attnlab.data.mnist_images import DigitImages
from attnlab.problems.digits.task import Scale

__all__ = ["augment", "load", "scaled"]


def scaled(images: UInt8[Tensor, "N R C"], scale: Scale) -> Float[Tensor, "N R C"]:
    """Images as models are given them."""
    mean, deviation = scale
    return (images.float() / 255 - mean) / deviation


@lru_cache(maxsize=2)
def load(directory: str) -> DigitImages:
    """Read once a process."""
    return load_digits_data(Path(directory) if directory else None)
