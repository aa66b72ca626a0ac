"""The carry's way through an adder: known for the planted one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from attnlab.analysis.patch.contrasts import (
    CarrierSet,
    Chosen,
    Contrast,
    TaskNames,
    choose_pairs,
    measure_carriers,
    measure_contrast,
    patch_pairs,
    patch_run,
    said,
)
from attnlab.cli.parsing import parse
from attnlab.cli.patch import command
from attnlab.errors import InputError, LabError
from attnlab.figures.patching import draw_grids, head_grids_data, positions_data, stream_data
from attnlab.models import build_model
from attnlab.problems.addition import Addition
from attnlab.problems.addition.carries import CarryResult
from attnlab.problems.addition.task import Digit
from attnlab.runs import create_run, save_weights
from attnlab.specs import Seq2SeqModel, to_json
from attnlab.tables.patch import sentence
from commands import complaint
from planted import CARRY, COPY, OWN, SPEC, planted, planted_run
from tiny_digits import untrained_digits

ADDER = planted(carries=True)


TASK, MODEL = ADDER
WORDS = CarryResult.words


def pairs_of(column: int, reach: int = 1, digit: Digit = "same", pairs: int = 23) -> Chosen:
    (drawn,) = TASK.contrasts(2 * pairs, 0, column=column, reach=reach, digit=digit)
    return choose_pairs(MODEL, drawn, pairs, WORDS)


def measured(column: int, reach: int = 1) -> Contrast:
    return measure_contrast(MODEL, pairs_of(column, reach), TaskNames(TASK, MODEL), words=WORDS)


def told(carriers: CarrierSet) -> str:
    """What the command says of a set."""
    contrasts = [measured(column) for column in carriers.columns]
    return sentence(CarryResult(run="planted", columns=contrasts, carriers=[carriers]), carriers)


def heads_that_matter(found: Contrast, direction: str) -> dict[str, list[float]]:
    """Shares of z, q, k, v and pattern, rounded, of all heads that restore anything."""
    (grid,) = (grid for grid in getattr(found, direction) if grid.quantity == "heads")
    rows = zip(grid.rows, grid.share, strict=True)
    rounded = {head: [round(share, 2) + 0.0 for share in row] for head, row in rows}
    return {head: row for head, row in rounded.items() if any(row)}


def stream(found: Contrast, row: str) -> dict[str, float]:
    """Shares by position of the residual stream after ``row``."""
    for grid in found.denoising:
        if grid.quantity == "residual stream" and row in grid.rows:
            shares = grid.share[grid.rows.index(row)]
            return {name: round(s, 2) + 0.0 for name, s in zip(grid.columns, shares, strict=True)}
    raise KeyError(row)


@pytest.mark.parametrize("column", [1, 2])
def test_the_carry_comes_through_the_head_that_reads_the_column_below(column: int) -> None:
    """CARRY reads the sum of the column below from what COPY copied, both through their values."""
    found = measured(column)
    for direction in ("denoising", "noising"):
        assert heads_that_matter(found, direction) == {COPY: [1, 0, 0, 1, 0], CARRY: [1, 0, 0, 1, 0]}
    assert (found.drawn, found.pairs, found.held_out) == (46, 23, 23)
    assert found.difference["plain"] < 0 < found.difference["carried"]
    below = f"10^{column - 1}"
    for layer in ("encoder.0.self", "encoder.1.feed"):
        at = stream(found, layer)
        assert {name for name, share in at.items() if share} == {f"a {below}", f"b {below}"}
    assert set(stream(found, "decoder.1.self").values()) == {0}
    after = stream(found, "decoder.1.cross")
    assert after == {**dict.fromkeys(after, 0), f"10^{column}": 1}


def test_through_a_nine_the_carry_comes_with_the_digit_said_before() -> None:
    """With a reach of 2 the column below sums to 9 either way: only its digit, 0 or 9, tells."""
    found = measured(2, reach=2)
    assert heads_that_matter(found, "denoising") == {OWN: [1, 0, 0, 1, 0]}
    assert set(stream(found, "encoder.1.feed").values()) == {0}
    carriers = measure_carriers(MODEL, [pairs_of(2, reach=2)])
    assert carriers.heads == (OWN,)


def test_the_smallest_set_is_named_and_holds_on_other_pairs() -> None:
    columns = [pairs_of(1), pairs_of(2)]
    found = measure_carriers(MODEL, columns)
    assert (found.heads, found.others) == ((CARRY,), ((COPY,),))
    assert found.smallest
    assert found.of_all_heads == pytest.approx([1, 1], abs=1e-4)
    assert [tested.column for tested in found.held_out] == [1, 2]
    for tested in found.held_out:
        for direction in ("denoising", "noising"):
            assert getattr(tested, direction).share == pytest.approx(1, abs=1e-4)
            assert getattr(tested, direction).interval == pytest.approx((1, 1), abs=1e-4)
            assert getattr(tested, direction).flipped == 1
            assert getattr(tested, direction).flipped_interval == pytest.approx((0.857, 1), abs=1e-3)
    assert told(found) == f"carry into 10^1, 10^2: {CARRY} (by itself; 1 other set of 1 does too)"


def test_with_any_digit_two_heads_are_needed() -> None:
    """p - s tells of the carry, so both the column below and the digit said there must come along."""
    found = measure_carriers(MODEL, [pairs_of(1, digit="any")])
    assert found.heads == (OWN, CARRY)
    assert found.others == ((COPY, OWN),)
    assert all(share < 0.9 for share in found.without.values())
    assert found.smallest
    assert told(found) == (
        f"carry into 10^1: {OWN}, {CARRY} (no set of 1 restores 90%; 1 other set of 2 does too)"
    )


def test_pairs_held_out_are_others_than_those_to_find_with() -> None:
    each = pairs_of(1, pairs=61)
    rows = [
        {tuple(row) for row in torch.cat((half.donor.inputs[0], half.base.inputs[0]), dim=1).tolist()}
        for half in (each.finding, each.held_out)
    ]
    assert [len(half) for half in rows] == [61, 61]
    assert not rows[0] & rows[1]
    patching = patch_pairs(MODEL, each.held_out, quantities=("z",))
    assert torch.equal(said(patching.donor.given, patching.known[2]), patching.known[0])
    assert torch.equal(said(patching.base.given, patching.known[2]), patching.known[1])


def test_a_model_that_cannot_carry_has_no_pairs() -> None:
    with pytest.raises(
        LabError, match=r"of 26 pairs .* into column 10\^1 the model gets 0 right on both sides"
    ):
        choose_pairs(planted(carries=False)[1], TASK.contrasts(26, 0, column=1)[0], 13, WORDS)


def test_positions_go_by_operand_and_column() -> None:
    source = ["a 10^0", "a 10^1", "+", "b 10^0", "b 10^1"]
    labels = TaskNames(TASK, MODEL).labels(pairs_of(1).finding)
    assert labels("encoder.0.self.z", 5) == labels("decoder.0.cross.v", 5) == source
    assert labels("decoder.0.cross.q", 2) == labels("decoder.0.self.k", 2) == ["10^0", "10^1"]
    assert isinstance(SPEC.task, Addition)
    mirrored = replace(SPEC.task, order="most")
    most = TaskNames(mirrored, MODEL).labels(mirrored.contrasts(7, 0)[0])
    assert most("encoder.0.self.z", 5) == ["a 10^1", "a 10^0", "+", "b 10^1", "b 10^0"]
    assert most("decoder.0.self.q", 1) == ["10^2"]


def test_figures_show_percent(tmp_path: Path) -> None:
    found = measured(1)
    data = head_grids_data(found, WORDS)
    assert data.title == "Carry into 10^1, 23 pairs: one head at all positions"
    ((put_in, taken_out),) = data.panels
    assert (put_in.title, taken_out.title) == ("carry put in", "carry taken out")
    place = put_in.rows.index(CARRY)
    assert put_in.percent[place] == pytest.approx([100, 0, 0, 100, 0], abs=0.1)
    assert put_in.interval is not None
    assert put_in.interval[place][0] == pytest.approx((100, 100), abs=0.1)
    figure = draw_grids(data)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert len(shown) == 18 * 5
    assert shown[place * 5 : place * 5 + 5] == ["100", "0", "0", "100", "0"]
    streams = stream_data(found, WORDS)
    assert [[panel.title for panel in row] for row in streams.panels] == [
        ["residual stream after"] * 2,
        ["output of attention"] * 2,
    ]
    first = draw_grids(streams).axes[0]
    assert [label.get_text() for label in first.get_xticklabels()] == [
        "a\n10⁰",
        "a\n10¹",
        "+",
        "b\n10⁰",
        "b\n10¹",
    ]
    ((source, target),) = positions_data(found, WORDS, "v").panels
    assert len(source.rows) == 12  # keys of cross attention lie in the source
    assert len(target.rows) == 6


def test_a_run_keeps_what_was_found(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "adder", carries=True)
    found = patch_run(run, pairs=7)
    kept = run.analysis("patch")
    assert kept is not None
    assert kept["columns"] == to_json(found.columns)
    assert [column.column for column in found.columns] == [1, 2]
    assert [each.columns for each in found.carriers] == [[1], [2], [1, 2]]
    with pytest.raises(InputError, match="pairs is 1; it must be from 2 to 1,000"):
        patch_run(run, pairs=1)


def test_the_command_prints_tables_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = planted_run(tmp_path / "adder", carries=True)
    parse(command, [str(run.path), "--column=1", "--pairs=11"], command="patch")
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert [CARRY, "100%", "(100%", "to", "100%)", "0%", "0%", "100%", "0%", "100%"] in rows
    assert "16 heads by themselves restore less than 5% with z" in printed
    assert ["decoder.1.cross", "0%", "100%"] in rows
    assert f"carry into 10^1: {CARRY} (by itself; 1 other set of 1 does too)" in printed
    assert sorted(path.name for path in run.file("figures").iterdir()) == sorted(
        f"patch-1-{name}.{ending}"
        for name in ("stream", "heads", "positions")
        for ending in ("svg", "png", "json")
    )


def test_the_command_prints_json_and_draws_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = planted_run(tmp_path / "adder", carries=True)
    words = [str(run.path), "--reach=2", "--pairs=5", "--out", str(tmp_path / "here"), "--json"]
    parse(command, words, command="patch")
    found = json.loads(capsys.readouterr().out)
    assert [column["column"] for column in found["columns"]] == [2]
    assert found["carriers"][0]["heads"] == [OWN]
    assert (tmp_path / "here/patch-2-heads.svg").exists()
    assert not run.file("figures").exists()


def test_a_run_without_heads_is_told(tmp_path: Path) -> None:
    assert isinstance(SPEC.model, Seq2SeqModel)
    spec = replace(SPEC, model=replace(SPEC.model, head_counts=(0,) * 6))
    run = create_run(tmp_path / "bare", spec)
    save_weights(run, "best", build_model(spec.model, vocabulary=14).state_dict())
    with pytest.raises(LabError, match="run bare has no attention left, so it has no heads to patch"):
        patch_run(run)


def test_what_cannot_be_patched_is_one_sentence(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "adder", carries=True)
    for asked, message in (
        ({"column": 3}, "a carry arrives at columns 1 to 2 of these sums, not at 3"),
        ({"reach": 3}, "a carry arrives at columns 1 to 2 of these sums, not at 3"),
        ({"reach": 0}, "reach is 0, but a carry into column 1 comes from 1 to 1 below"),
        ({"pairs": 1001}, "pairs is 1001; it must be from 2 to 1,000"),
    ):
        with pytest.raises(InputError, match=message):
            patch_run(run, **cast(Any, asked))
    digits = untrained_digits(tmp_path)
    assert complaint("patch", digits.path, cwd=tmp_path) == (
        "the task 'digits' has no `contrasts`, pairs of examples that differ in one thing; give it this "
        "method to patch its runs"
    )
