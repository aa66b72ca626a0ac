"""Two results that are the same but for rounding, and hold nothing that is not on the CPU."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from pretend import MisplacedError, There


def flat(value: Any) -> Iterator[Any]:
    """All that is in a result, down to numbers, words and tensors."""
    if isinstance(value, There):
        raise MisplacedError("a result is not on the CPU")
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from flat(getattr(value, each.name))
    elif isinstance(value, dict):
        for key in value:
            yield from (key, *flat(value[key]))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from flat(each)
    else:
        yield value.as_subclass(Tensor) if isinstance(value, Tensor) else value


def alike(mine: Any, yours: Any) -> None:
    a, b = list(flat(mine)), list(flat(yours))
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        if isinstance(one, Tensor):
            torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-3)
        elif isinstance(one, float):
            assert other == pytest.approx(one, abs=1e-3, rel=1e-2)
        else:
            assert one == other
