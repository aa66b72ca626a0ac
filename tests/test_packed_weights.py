"""Weights as text: what comes back is close, in Python and bit for bit the same in JavaScript."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnlab.explorer.weights import BITS, pack, unpack
from v8 import V8, source

SHAPES = [(7,), (3, 5), (2, 3, 5, 5), (1,), (1, 1), (13, 1), (5, 0), (0, 3)]


def tensors(seed: int) -> dict[str, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    made = {
        f"part.{number}": torch.randn(shape, generator=chance) * 10.0 ** (number - 3)
        for number, shape in enumerate(SHAPES)
    }
    return made | {
        "zeros": torch.zeros(2, 3),
        "mixed": torch.tensor([[0.0, 0.0], [1e30, -1e-30], [1e-44, 0.0]]),
    }


@pytest.fixture(scope="module")
def run() -> V8:
    return V8(text=source("packed.js"))


UNPACKED = """((packed) => Object.entries(text.unpackWeights(packed)).map(
    ([name, { shape, data }]) => [name, shape, [...new Uint32Array(data.buffer)]]))"""


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_weight_comes_back_within_half_a_step_of_its_row(bits: int, seed: int) -> None:
    given_, found = tensors(seed), unpack(pack(tensors(seed), bits))
    assert list(found) == list(given_)
    for name, tensor in given_.items():
        assert found[name].shape == tensor.shape
        assert found[name].dtype == torch.float32
        rows = tensor.flatten(1) if tensor.dim() > 1 else tensor[None]
        step = rows.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1) if rows.numel() else rows
        away = (found[name].reshape(rows.shape) - rows).abs()
        assert bool((away <= 0.5001 * step + 1e-7 * rows.abs() + 1e-38).all())


@pytest.mark.parametrize("bits", BITS)
def test_a_page_reads_the_same_bits(run: V8, bits: int) -> None:
    packed = pack(tensors(2), bits)
    expected = [
        [name, [*tensor.shape], [each % 2**32 for each in tensor.flatten().view(torch.int32).tolist()]]
        for name, tensor in unpack(packed).items()
    ]
    assert run.call(UNPACKED, packed.to_json())["value"] == expected


@given(st.lists(st.floats(-4, 4, width=32), max_size=40), st.sampled_from(BITS))
def test_any_vector_takes_its_bits_and_what_is_largest_comes_back_whole(
    numbers: list[float], bits: int
) -> None:
    row = torch.tensor(numbers)
    packed = pack({"row": row}, bits)
    blob = 4 + -(-len(row) * bits // 8)
    assert len(packed.text) == -(-blob // 3) * 4
    found = unpack(packed)["row"]
    if len(row):
        at = int(row.abs().argmax())
        torch.testing.assert_close(found[at], row[at], rtol=2e-7, atol=1e-38)


def test_the_same_weights_give_the_same_text() -> None:
    assert pack(tensors(3), 18) == pack(tensors(3), 18)


def test_a_million_weights_of_twenty_bits_take_less_than_3_6_mb(run: V8) -> None:
    packed = pack({"large": torch.randn(1024, 1024)}, 20)
    assert len(packed.text) < 3_600_000
    assert (
        run.call("((packed) => text.unpackWeights(packed).large.data.length)", packed.to_json())["value"]
        == 1024**2
    )
