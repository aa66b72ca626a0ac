"""Tests would notice a tensor of another shape than its signature states."""

import pytest
import torch
from jaxtyping import TypeCheckError

from attnlab.models.images import cut_patches
from shapes import modules_with_shapes


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(TypeCheckError):
        cut_patches(torch.zeros(3, 5), 5)


def test_modules_are_found_by_what_they_say() -> None:
    found = modules_with_shapes()
    assert {"attnlab.attention", "attnlab.models.images"} <= set(found)
    assert "attnlab.errors" not in found
