"""What positions look like: planted tables and formulas, known places, movements of a real training."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from study_figures import draw_kinds, kinds_data

from attnlab.analysis.positions import (
    StackPlaces,
    describe_stack,
    first_model,
    look_at,
    movements,
    run_places,
    stacks_of,
)
from attnlab.errors import LabError
from attnlab.figures.positions import draw_positions
from attnlab.models import build_model
from attnlab.positions import LearnedTable, Positions, build_positions
from attnlab.problems.digits import Digits
from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run
from attnlab.specs import (
    AdamW,
    Alibi,
    GridStart,
    Interpolated,
    Learned,
    MLPModel,
    PatchAttentionModel,
    PositionSpec,
    Randomised,
    Relative,
    Rotary,
    Seq2SeqModel,
    Spec,
    TokensModel,
    Training,
)
from attnlab.training import train_run
from tiny import TINY


def stack(spec: PositionSpec, trained: int = 3) -> StackPlaces:
    return StackPlaces("any", spec.kind, build_positions(spec, width=6, head_width=2), 2, trained)


def table(*rows: list[float]) -> Positions:
    made = LearnedTable(width=len(rows[0]), length=len(rows), scale=0.0)
    made.load_state_dict({"table": torch.tensor(rows)})
    return Positions(add=made)


def test_added_vectors_and_their_cosines() -> None:
    planted = StackPlaces("any", "learned", table([3.0, 0.0], [0.0, 2.0], [1.0, 1.0]), 2, 2)
    (look,) = look_at(planted, 4)
    assert (look.slot, look.rows) == ("add", [0, 1, 2, 3])
    assert look.vectors == [[3, 0], [0, 2], [1, 1], [1, 1]]
    assert look.known == look.known_rows == [True, True, False, False]
    half = math.sqrt(0.5)
    expected = [[1, 0, half, half], [0, 1, half, half], [half, half, 1, 1], [half, half, 1, 1]]
    alike = torch.tensor(look.alike, dtype=torch.float64)
    torch.testing.assert_close(alike, torch.tensor(expected, dtype=torch.float64))


def test_turned_vectors_are_as_alike_as_the_cosine_of_their_distance() -> None:
    (look,) = look_at(stack(Rotary()), 5)
    assert look.slot == "turn"
    for i in range(5):
        assert look.vectors[i] == pytest.approx([math.cos(i), math.sin(i)])
        for j in range(5):
            assert look.alike[i][j] == pytest.approx(math.cos(i - j), abs=1e-12)


def test_bias_by_offset_and_the_weights_it_gives() -> None:
    (look,) = look_at(stack(Alibi()), 4)
    slopes = [2 ** (-8 * h / 3) for h in (1, 2, 3)]
    assert (look.slot, look.rows) == ("bias", [-3, -2, -1, 0, 1, 2, 3])
    for offset, row in zip(look.rows, look.vectors, strict=True):
        assert row == pytest.approx([-slope * abs(offset) for slope in slopes], rel=1e-6)
    assert look.known_rows == [False, True, True, True, True, True, False]
    alike = torch.tensor(look.alike, dtype=torch.float64)
    torch.testing.assert_close(alike.sum(dim=1), torch.ones(4, dtype=torch.float64))
    weights = torch.tensor([[math.exp(-slope * d) for d in range(4)] for slope in slopes])
    first = (weights / weights.sum(dim=1, keepdim=True)).mean(dim=0)
    torch.testing.assert_close(alike[0].float(), first, rtol=1e-6, atol=0)


def test_offsets_after_the_query_have_their_own_bias() -> None:
    (look,) = look_at(stack(Relative(buckets=4, distance=2, scale=1.0)), 3)
    bias = stack(Relative(buckets=4, distance=2, scale=1.0)).positions.get_parameter("bias.table")
    assert np.shape(look.vectors) == (5, bias.shape[1])
    assert look.vectors[1] != look.vectors[3]
    assert look.vectors[0] == look.vectors[1]


def test_known_places_of_mappings() -> None:
    """Random places were all drawn some time; squeezed ones stay within those of training."""
    (drawn,) = look_at(stack(Randomised(limit=50)), 7)
    assert all(drawn.known)
    (squeezed,) = look_at(stack(Interpolated(trained=3)), 6)
    assert squeezed.rows == [0, 0.5, 1, 1.5, 2, 2.5]
    assert all(squeezed.known)


def test_none_has_nothing_to_look_at() -> None:
    assert look_at(StackPlaces("any", "none", Positions(), 2, 3), 5) == []


def test_movement_is_split_into_along_and_sideways() -> None:
    start, end = table([2.0, 0.0], [0.0, 4.0]), table([2.0, 3.0], [0.0, 1.0])
    (moved,) = movements(StackPlaces("any", "learned", end, 2, 1, start))
    assert moved.table == "add.table"
    assert moved.distance == [3, 3]
    assert moved.sideways == [3, 0]
    assert moved.start_norm == [2, 4]
    assert moved.known == [True, False]


def test_known_buckets_are_those_of_short_offsets() -> None:
    """Two tokens: offsets -1, 0 and 1."""
    spec = Relative(buckets=8, distance=9)
    once = stack(spec, trained=2)
    (moved,) = movements(replace(once, start=once.positions))
    assert moved.known == [True, True, False, False, False, True, False, False]
    assert not any(moved.distance)


def test_a_trained_run_against_its_first_weights(tmp_path: Path) -> None:
    """Places beyond those of the task only shrink, by weight decay."""
    spec = replace(
        TINY,
        model=Seq2SeqModel(
            width=6, heads=3, hidden=5, encoder_layers=1, positions=Learned(length=11, scale=1.0)
        ),
        training=replace(TINY.training, optimiser=AdamW(weight_decay=0.5)),
    )
    run = create_run(tmp_path / "run", spec)
    train_run(run)
    source, target = run_places(run)
    assert [(each.name, each.trained) for each in (source, target)] == [("source", 3), ("target", 3)]
    for each in (source, target):
        (moved,) = movements(each)
        assert moved.known == [True] * 3 + [False] * 8
        assert min(moved.sideways[:3]) > 1e-3
        assert max(moved.sideways[3:]) < 1e-6
        assert min(moved.distance[3:]) > 1e-3
    torch.manual_seed(spec.seed)
    fresh = build_model(spec.model, vocabulary=14)
    for name, weight in first_model(run).state_dict().items():
        assert torch.equal(weight, fresh.state_dict()[name])


@pytest.mark.parametrize(("front", "trained"), [(False, 5), (True, 6)])
def test_stacks_of_a_classifier_of_lists(tmp_path: Path, front: bool, trained: int) -> None:
    model = TokensModel(width=6, heads=3, layers=1, hidden=5, positions=Learned(length=9))
    spec = Spec(
        task=Sorting(low=2, high=5, train=8, valid=4, test=4),
        model=replace(model, pooling="cls") if front else model,
        training=Training(epochs=1, batch=4, threads=1),
    )
    run = create_run(tmp_path / "run", spec)
    train_run(run)
    (found,) = run_places(run)
    assert (found.name, found.word, found.trained) == ("tokens", "learned:length=9,scale=0.02", trained)


def test_the_table_of_patches_counts_as_positions() -> None:
    spec = Spec(task=Digits(), model=PatchAttentionModel(positions=GridStart()))
    model = build_model(spec.model, vocabulary=10)
    (name, positions), *_ = stacks_of(spec, model).items()
    assert name == "patches"
    assert torch.equal(positions.get_parameter("add.table"), model.get_parameter("embed.positions"))


def test_a_model_without_positions_is_refused() -> None:
    spec = Spec(task=Digits(), model=MLPModel(hidden=3))
    with pytest.raises(LabError, match="a model of kind 'mlp' is told no positions"):
        stacks_of(spec, build_model(spec.model, vocabulary=10))


def test_figure_holds_the_numbers_and_marks_unknown_places() -> None:
    start, end = table([2.0, 0.0], [0.0, 4.0]), table([2.0, 3.0], [0.0, 1.0])
    data = describe_stack(StackPlaces("source", "learned", end, 2, 1, start), 2)
    assert (data.stack, data.positions, data.tokens, data.trained) == (
        "source",
        "learned",
        2,
        1,
    )
    (slot,), (moved,) = data.slots, data.moved
    assert slot.vectors == [[2, 3], [0, 1]]
    assert slot.neighbours_alike == pytest.approx(3 / math.sqrt(13))
    assert moved.mean == {
        "distance": {"known": 3, "unknown": 3},
        "sideways": {"known": 3, "unknown": 0},
    }
    vectors, alike, bars = (axes for axes in draw_positions(data).axes if axes.get_title(loc="left"))
    assert [line.get_ydata() for line in vectors.lines] == [[0.5, 0.5]]
    assert len(alike.lines) == 2
    assert [bar.get_height() for container in bars.containers for bar in container] == [3, 3, 3, 0]
    assert legend_of(draw_positions(data)) == ["never reached in training"]


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_figure_of_a_bias_has_no_table_where_nothing_was_trained() -> None:
    data = describe_stack(stack(Alibi()), 4)
    assert data.moved == []
    assert [slot.slot for slot in data.slots] == ["bias"]
    assert {axes.get_title(loc="left") for axes in draw_positions(data).axes} >= {"bias of the scores"}


def test_kinds_stand_side_by_side() -> None:
    data = kinds_data([stack(Rotary()), StackPlaces("any", "none", Positions(), 2, 3), stack(Alibi())], 5)
    assert [(kind.positions, kind.slot) for kind in data.kinds] == [
        ("rotary", "turn"),
        ("alibi", "bias"),
    ]
    assert data.kinds[0].alike[0] == pytest.approx([math.cos(i) for i in range(5)], abs=1e-4)
    titles = [axes.get_title(loc="left").splitlines()[0] for axes in draw_kinds(data).axes[:2]]
    assert titles == ["rotary", "alibi"]
    assert legend_of(draw_kinds(data)) == ["never reached in training"]
    assert legend_of(draw_kinds(kinds_data([stack(Rotary())], 3))) == [], "3 tokens were reached"
