"""Comparing what a student's function gives with a formula, and with the mistakes that are often made."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attnlab.course.feedback import Wrong

TOLERANCE = 1e-4
"""Rounding of float32 is some hundred times smaller on the sizes used here."""


def alike(a: Tensor, b: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether all numbers agree to rounding."""
    return a.shape == b.shape and torch.allclose(
        a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=False
    )


def compare(
    got: Tensor, right: Tensor, mistakes: Mapping[str, Tensor], *, expected: str, hint: str
) -> Wrong | None:
    """None if ``got`` is ``right``; ``mistakes`` have what each gives, by the hint that fits it.

    Where none of them fits either, ``hint`` is given.
    """
    if alike(got, right):
        return None
    found = next((each for each, value in mistakes.items() if alike(got, value)), hint)
    return Wrong(largest_difference(got, right), expected, found)


def largest_difference(got: Tensor, right: Tensor) -> str:
    """Where two tensors of one shape differ most."""
    if not torch.isfinite(got.double()).all():
        at = tuple((~torch.isfinite(got.double())).nonzero()[0].tolist())
        return f"{got.double()[at].item():g} at index {at}, where {right.double()[at].item():.4f} is right"
    far = (got.double() - right.double()).abs()
    at = tuple(int(each) for each in torch.unravel_index(far.argmax(), far.shape))
    return f"{got.double()[at].item():.4f} at index {at}, where {right.double()[at].item():.4f} is right"
