import math

import pytest
import torch
from torch import Tensor

from attnlab.positions import LearnedTable, Placed, Positions, build_positions
from attnlab.positions.schemes import RotaryRotation, SinusoidalWaves
from attnlab.positions.slots import places
from attnlab.specs import Learned, NoPositions, Rotary, Sinusoidal

B, H, T = 2, 3, 5
WHERE = torch.tensor([0, 1, 2, 7, 100])


def dots(encoded: Tensor) -> Tensor:
    return encoded @ encoded.transpose(-2, -1)


def assert_depends_on_distance_only(products: Tensor) -> None:
    """Products of places 0..n-1 with each other are constant along every diagonal."""
    for shift in range(products.shape[-1]):
        diagonal = products.diagonal(shift, dim1=-2, dim2=-1)
        torch.testing.assert_close(diagonal, diagonal[..., :1].expand_as(diagonal), rtol=0, atol=1e-9)


def test_sinusoidal_value_by_value() -> None:
    width, base = 14, 1000.0
    waves = SinusoidalWaves(width=width, base=base)(WHERE)
    assert waves.shape == (5, 14)
    for row, p in enumerate(WHERE.tolist()):
        for i in range(width // 2):
            angle = p / base ** (2 * i / width)
            assert waves[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert waves[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_sinusoidal_dots_depend_on_distance_only() -> None:
    products = dots(SinusoidalWaves(width=14)(torch.arange(23)))
    assert_depends_on_distance_only(products)
    assert products[0, 0].item() == pytest.approx(7)


def test_fixed_schemes_train_and_save_nothing() -> None:
    for module in (SinusoidalWaves(width=14), RotaryRotation(head_width=6)):
        assert list(module.parameters()) == []
        assert module.state_dict() == {}


def test_learned_table_gives_its_rows_and_clamps_beyond() -> None:
    table = LearnedTable(width=7, length=3, scale=1.0)
    assert torch.equal(table(torch.tensor([1, 0, 2, 3, 99])), table.table[[1, 0, 2, 2, 2]])


def test_learned_table_starts_small() -> None:
    assert LearnedTable(width=101, length=103, scale=0.3).table.std().item() == pytest.approx(0.3, rel=0.05)


def test_rotary_by_hand() -> None:
    """K=4, base 100: the pairs turn by p and p/10. Place 0 turns nothing."""
    turned = RotaryRotation(head_width=4, base=100.0)(
        torch.tensor([1.0, 0.0, 0.0, 2.0], dtype=torch.float64).expand(1, 1, 2, 4), torch.tensor([0, 3])
    )
    expected = [[1, 0, 0, 2], [math.cos(3), math.sin(3), -2 * math.sin(0.3), 2 * math.cos(0.3)]]
    torch.testing.assert_close(turned[0, 0], torch.tensor(expected, dtype=torch.float64))


def test_rotary_keeps_norms() -> None:
    vectors = torch.randn(B, H, T, 6, dtype=torch.float64)
    turned = RotaryRotation(head_width=6)(vectors, WHERE)
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))
    assert not torch.allclose(turned, vectors)


def test_rotary_dots_depend_on_distance_only() -> None:
    q, k = torch.randn(2, B, H, 1, 6, dtype=torch.float64).expand(2, B, H, 11, 6)
    turn = RotaryRotation(head_width=6, base=50.0)
    products = turn(q, torch.arange(11)) @ turn(k, torch.arange(11)).transpose(-2, -1)
    assert_depends_on_distance_only(products)
    assert_depends_on_distance_only(products.transpose(-2, -1))
    assert products[0, 0, 0, 1] != products[0, 0, 1, 0]


def test_rotary_keeps_the_precision_of_its_input() -> None:
    assert RotaryRotation(head_width=6)(torch.randn(B, H, T, 6), WHERE).dtype == torch.float32


def test_build_none() -> None:
    positions = build_positions(NoPositions(), width=12, head_width=4)
    assert (positions.add, positions.rotation, positions.bias) == (None, None, None)


def test_build_sinusoidal() -> None:
    positions = build_positions(Sinusoidal(base=99.0), width=12, head_width=4)
    assert isinstance(positions.add, SinusoidalWaves)
    assert (positions.rotation, positions.bias) == (None, None)
    assert torch.equal(positions.add(WHERE), SinusoidalWaves(width=12, base=99.0)(WHERE))


def test_build_learned() -> None:
    positions = build_positions(Learned(length=13), width=12, head_width=4)
    assert isinstance(positions.add, LearnedTable)
    assert (positions.rotation, positions.bias) == (None, None)
    assert positions.add.table.shape == (13, 12)


def test_build_rotary() -> None:
    positions = build_positions(Rotary(base=99.0), width=12, head_width=4)
    assert isinstance(positions.rotation, RotaryRotation)
    assert (positions.add, positions.bias) == (None, None)
    q = torch.randn(B, H, T, 4)
    turn = RotaryRotation(head_width=4, base=99.0)
    assert torch.equal(positions.at(T, q).rotate(q), turn(q, torch.arange(T)))


def test_empty_slots_do_nothing() -> None:
    x, q = torch.randn(B, T, 7), torch.randn(B, H, T, 4)
    empty = Positions().at(T, x)
    assert empty.embed(x) is x
    assert empty.rotate(q) is q
    assert empty.score_bias(slice(T), slice(T)) is None


def test_add_is_added_in_the_precision_of_the_tokens() -> None:
    waves, x = SinusoidalWaves(width=6), torch.randn(B, T, 6)
    embedded = Placed(WHERE[None], add=waves).embed(x)
    assert embedded.dtype == torch.float32
    assert torch.equal(embedded, x + waves(WHERE).float())


def test_places() -> None:
    assert places(3, 7, torch.empty(0)).tolist() == [3, 4, 5, 6]
