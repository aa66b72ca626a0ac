"""Biases, mappings and grids: formulas by value, and what holds beyond trained lengths."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.errors import LabError
from attnlab.positions import LearnedTable, Placed, Positions, build_positions
from attnlab.positions.schemes import (
    BucketBias,
    GridTable,
    GridWaves,
    LinearBias,
    RandomPlaces,
    RotaryRotation,
    SinusoidalWaves,
    SqueezedPlaces,
    bucket,
)
from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run
from attnlab.specs import (
    Alibi,
    GridLearned,
    GridSinusoidal,
    Interpolated,
    PositionSpec,
    Randomised,
    Relative,
    Spec,
    TokensModel,
    Training,
)
from attnlab.training import train_run

LIKE = torch.empty(0)


def slots(positions: Positions) -> list[type | None]:
    parts = (positions.add, positions.rotation, positions.bias, positions.mapping)
    return [None if part is None else type(part) for part in parts]


def test_alibi_by_value() -> None:
    bias = LinearBias(heads=3)(torch.arange(5), torch.arange(7))
    assert bias.shape == (3, 5, 7)
    for h in range(3):
        for i in range(5):
            for j in range(7):
                expected = -(2 ** (-8 * (h + 1) / 3)) * abs(i - j)
                assert bias[h, i, j].item() == pytest.approx(expected, rel=1e-6)


def test_alibi_of_eight_heads_has_the_slopes_of_the_paper() -> None:
    assert LinearBias(heads=8).slopes.tolist() == [2.0**-h for h in range(1, 9)]


def test_alibi_goes_on_in_a_line() -> None:
    """Beyond any length the bias falls by one slope a place."""
    bias = LinearBias(heads=2)
    far = bias(torch.zeros(1, dtype=torch.long), torch.arange(16_383))
    assert torch.equal(far[:, 0, 1:] - far[:, 0, :-1], -bias.slopes[:, None].expand(2, 16_382))


def test_buckets_by_value() -> None:
    """Eight buckets up to distance 32: 0 to 3 alone, then ranges from 4, 6.7, 11.3 and 19.0 on."""
    found = [bucket(d, 8, 32) for d in (0, 1, 2, 3, 4, 6, 7, 11, 12, 19, 20, 31, 32, 10**6)]
    assert found == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7, 7]


@given(st.integers(2, 40), st.integers(1, 500))
def test_buckets_rise_to_the_last(buckets: int, beyond: int) -> None:
    distance = buckets // 2 + beyond
    found = [bucket(d, buckets, distance) for d in range(distance + 3)]
    assert found[: buckets // 2] == list(range(buckets // 2))
    assert sorted(found) == found
    assert found[distance:] == [buckets - 1] * 3


def test_relative_bias_looks_up_bucket_and_head() -> None:
    bias = BucketBias(heads=3, buckets=12, distance=7, scale=1.0)
    found = bias(torch.arange(11), torch.arange(13))
    assert found.shape == (3, 11, 13)
    for i in range(11):
        for j in range(13):
            row = bucket(abs(i - j), 6, 7) + (6 if j > i else 0)
            assert torch.equal(found[:, i, j], bias.table[row])


def test_relative_bias_depends_on_the_offset_alone_and_ends_at_its_distance() -> None:
    bias = BucketBias(heads=2, buckets=8, distance=9, scale=1.0)
    where = torch.arange(31)
    assert torch.equal(bias(where, where), bias(where + 10_000, where + 10_000))
    far = bias(torch.tensor([0]), torch.tensor([9, 10, 16_384]))
    assert torch.equal(far, bias.table[7][:, None, None].expand(2, 1, 3))
    assert not torch.equal(
        bias(torch.tensor([5]), torch.tensor([3])), bias(torch.tensor([5]), torch.tensor([7]))
    )


def test_relative_table_starts_with_its_scale() -> None:
    table = BucketBias(heads=101, buckets=102, distance=103, scale=0.3).table
    assert table.std().item() == pytest.approx(0.3, rel=0.05)


def test_biases_by_example() -> None:
    """Rows of places give rows of biases."""
    rows = torch.tensor([[0, 2, 5], [1, 4, 6]])
    for bias in (LinearBias(heads=2), BucketBias(heads=2, buckets=6, distance=5, scale=1.0)):
        both = bias(rows, rows)
        assert both.shape == (2, 2, 3, 3)
        for row, found in zip(rows, both, strict=True):
            assert torch.equal(bias(row, row), found)


@given(st.integers(1, 60), st.integers(0, 40), st.integers(0, 999))
def test_drawn_places_are_a_rising_subset(length: int, beyond: int, seed: int) -> None:
    torch.manual_seed(seed)
    mapping = RandomPlaces(limit=length + beyond)
    lengths = torch.randint(1, length + 1, (5,))
    drawn = mapping(length, LIKE, lengths)
    assert drawn.shape == (5, length)
    for row, own in zip(drawn, lengths.tolist(), strict=True):
        real = row[:own]
        assert (real[1:] > real[:-1]).all()
        assert 0 <= int(row.min()) <= int(row.max()) < mapping.limit


def test_every_subset_is_drawn_equally_often() -> None:
    """Two of five places: ten subsets, each with probability 1/10, also behind padding."""
    mapping = RandomPlaces(limit=5)
    drawn = mapping(4, LIKE, torch.full((20_000,), 2))[:, :2]
    counts = torch.bincount(drawn[:, 0] * 5 + drawn[:, 1])
    assert (counts > 0).sum() == 10
    assert (counts[counts > 0] / 20_000 - 0.1).abs().max() < 0.01


def test_places_are_drawn_anew_in_training_and_never_in_evaluation() -> None:
    mapping = RandomPlaces(limit=1009)
    assert not torch.equal(mapping(7, LIKE, None), mapping(7, LIKE, None))
    mapping.eval()
    state = torch.get_rng_state()
    even = mapping(7, LIKE, None)
    assert torch.equal(even, mapping(7, LIKE, None))
    assert torch.equal(state, torch.get_rng_state())
    assert even.tolist() == [[(2 * i + 1) * 1009 // 14 for i in range(7)]]


@given(st.integers(1, 60), st.integers(0, 400))
def test_even_places_are_distinct_spread_and_within(length: int, beyond: int) -> None:
    mapping = RandomPlaces(limit=length + beyond).eval()
    even = mapping(length, LIKE, None)[0]
    gaps = even.diff()
    assert int(even[0]) >= 0
    assert int(even[-1]) < mapping.limit
    assert (gaps >= 1).all()
    assert length < 2 or int(gaps.max() - gaps.min()) <= 1


@pytest.mark.parametrize("training", [False, True])
def test_beyond_the_limit_there_is_no_place(training: bool) -> None:
    mapping = RandomPlaces(limit=2048).train(training)
    text = r"^a sequence of 2,049 tokens cannot be placed: randomised positions reach 2,048 tokens"
    with pytest.raises(LabError, match=text):
        mapping(2049, LIKE, None)
    padded = mapping(2100, LIKE, torch.tensor([2048, 3]))
    assert padded[0, :2048].tolist() == list(range(2048))
    assert (padded[:, 2048:] == 2047).all()


def test_squeezed_places_by_value() -> None:
    mapping = SqueezedPlaces(trained=6)
    assert mapping(4, LIKE, None).tolist() == [[0, 1, 2, 3]]
    found = mapping(12, LIKE, torch.tensor([3, 6, 12]))
    torch.testing.assert_close(found[0], torch.arange(12).double())
    torch.testing.assert_close(found[1], torch.arange(12).double())
    torch.testing.assert_close(found[2], torch.arange(12).double() / 2)
    assert mapping(16_384, LIKE, None).max().item() < 6


def test_waves_of_squeezed_places_lie_between_those_of_training() -> None:
    """Twice as many tokens: every other one stands where a token of training stood."""
    mapped = build_positions(Interpolated(inner="sinusoidal", trained=5), width=12, head_width=4)
    x = torch.zeros(1, 10, 12, dtype=torch.float64)
    long = mapped.at(10, x).embed(x)
    short = mapped.at(5, x).embed(x[:, :5])
    torch.testing.assert_close(long[:, ::2], short)


@pytest.mark.parametrize("mapping", [RandomPlaces(limit=97), SqueezedPlaces(trained=5)])
def test_padding_moves_nobody(mapping: RandomPlaces | SqueezedPlaces) -> None:
    mapping.eval()
    lengths = torch.tensor([7, 3, 11])
    short, long = mapping(11, LIKE, lengths), mapping(29, LIKE, lengths)
    for row, own in enumerate(lengths.tolist()):
        assert torch.equal(short[row, :own], long[row, :own])
        assert torch.equal(short[row, :own], mapping(own, LIKE, None)[0])


def test_all_layers_see_the_same_draw() -> None:
    positions = build_positions(Randomised(inner="rotary", limit=10_007), width=12, head_width=4)
    x = torch.randn(2, 3, 7, 4)
    placed = positions.at(7, x)
    assert torch.equal(placed.rotate(x), placed.rotate(x))
    assert not torch.equal(placed.rotate(x), positions.at(7, x).rotate(x))


def test_placed_takes_rows_by_example_and_starts_anywhere() -> None:
    rows = torch.tensor([[0, 2, 5, 6], [1, 4, 6, 9]])
    waves, turn = SinusoidalWaves(width=6), RotaryRotation(head_width=6)
    placed = Placed(rows, waves, turn, LinearBias(heads=3))
    x, q = torch.randn(2, 2, 6, dtype=torch.float64), torch.randn(2, 3, 2, 6, dtype=torch.float64)
    for b in range(2):
        assert torch.equal(placed.embed(x, 1)[b], x[b] + waves(rows[b, 1:3]))
        torch.testing.assert_close(placed.rotate(q, 1)[b], turn(q[b : b + 1], rows[b, 1:3])[0])
    bias = placed.score_bias(slice(1, 3), slice(0, 4))
    assert bias is not None
    assert torch.equal(bias[1], LinearBias(heads=3)(rows[1, 1:3], rows[1]))


def test_grid_waves_tell_row_and_column() -> None:
    grid, waves = GridWaves(width=12, columns=5), SinusoidalWaves(width=6)
    found = grid(torch.arange(35))
    assert found.shape == (35, 12)
    for p in (0, 4, 5, 17, 34):
        assert torch.equal(
            found[p], torch.cat((waves(torch.tensor([p // 5])), waves(torch.tensor([p % 5]))), 1)[0]
        )
    products = found @ found.T  # two patches' product depends on their offset in rows and in columns alone
    assert products[0, 7].item() == pytest.approx(products[11, 18].item())
    assert products[0, 7].item() != pytest.approx(products[0, 6].item())


def test_grid_table_adds_row_and_column_and_clamps_below() -> None:
    grid = GridTable(width=7, rows=3, columns=5, scale=1.0)
    found = grid(torch.arange(25))
    for p in range(25):
        assert torch.equal(found[p], grid.rows[min(p // 5, 2)] + grid.columns[p % 5])


def test_build() -> None:
    def build(spec: PositionSpec) -> list[type | None]:
        return slots(build_positions(spec, width=12, head_width=4))

    assert build(Alibi()) == [None, None, LinearBias, None]
    assert build(Relative()) == [None, None, BucketBias, None]
    assert build(Randomised()) == [SinusoidalWaves, None, None, RandomPlaces]
    assert build(Randomised(inner="learned")) == [LearnedTable, None, None, RandomPlaces]
    assert build(Randomised(inner="rotary")) == [None, RotaryRotation, None, RandomPlaces]
    assert build(Interpolated()) == [None, RotaryRotation, None, SqueezedPlaces]
    assert build(Interpolated(inner="sinusoidal")) == [SinusoidalWaves, None, None, SqueezedPlaces]


def test_build_takes_the_numbers_of_the_spec() -> None:
    relative = build_positions(Relative(buckets=10, distance=11, scale=0.0), width=12, head_width=4)
    assert relative.get_parameter("bias.table").tolist() == [[0.0] * 3] * 10
    assert len(relative.get_buffer("bias.buckets")) == 23
    learned = build_positions(Randomised(inner="learned", limit=13), width=12, head_width=4)
    assert learned.get_parameter("add.table").shape == (13, 12)
    assert math.isclose(
        float(build_positions(Alibi(), width=12, head_width=4).get_buffer("bias.slopes")[2]), 2**-8
    )


def test_build_grids() -> None:
    waves = build_positions(GridSinusoidal(base=99.0), width=12, rows=3, columns=5)
    table = build_positions(GridLearned(scale=0.0), width=12, rows=3, columns=5)
    assert slots(waves) == [GridWaves, None, None, None]
    assert slots(table) == [GridTable, None, None, None]
    assert isinstance(waves.add, GridWaves)
    assert torch.equal(
        waves.add(torch.arange(15)), GridWaves(width=12, columns=5, base=99.0)(torch.arange(15))
    )
    assert table.get_parameter("add.rows").shape == (3, 12)
    assert table.get_parameter("add.columns").shape == (5, 12)


def test_schemes_without_weights_save_nothing() -> None:
    for module in (
        LinearBias(heads=3),
        RandomPlaces(limit=5),
        SqueezedPlaces(trained=5),
        GridWaves(width=8, columns=3),
    ):
        assert module.state_dict() == {}


def test_a_training_with_drawn_places_can_be_interrupted(tmp_path: Path) -> None:
    spec = Spec(
        task=Sorting(low=2, high=5, train=16, valid=4, test=4),
        model=TokensModel(width=6, heads=3, layers=1, hidden=5, positions=Randomised(limit=31)),
        training=Training(epochs=4, batch=4, threads=1),
    )
    whole, pieces = create_run(tmp_path / "whole", spec), create_run(tmp_path / "pieces", spec)
    assert train_run(whole) is not None
    steps = iter([False] * 6 + [True])
    assert train_run(pieces, stopping=lambda: next(steps)) is None
    torch.manual_seed(99)
    assert train_run(pieces) is not None
    assert whole.file("last.safetensors").read_bytes() == pieces.file("last.safetensors").read_bytes()
