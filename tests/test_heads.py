"""Where heads look: exact values on patterns made by hand, and on models whose truth is known."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

from attnlab.analysis.heads import (
    HeadsResult,
    Metric,
    _measure,
    describe_heads,
    heads_run,
    mean_intervals,
    neighbours,
    strongest,
)
from attnlab.analysis.statistics import bootstrap_interval
from attnlab.analysis.subjects import Subject, load_subject, subject_of
from attnlab.cli.main import run as run_command
from attnlab.errors import InputError, LabError
from attnlab.figures.heads import draw_heads, heads_data
from attnlab.model import Model, Site
from attnlab.problems.addition import Addition
from attnlab.problems.addition.key_sets import addition_sets
from attnlab.specs import MLPModel, to_json
from commands import attnlab
from planted import ALIGN, CARRY, COPY, OWN, READ, planted, planted_module, planted_run
from tiny_digits import untrained_digits

SELF = Site("encoder.0.self", "encoder", 0, "self", 1, "input", "input")
CROSS = Site("decoder.0.cross", "decoder", 0, "cross", 1, "answer", "input")

PAIRS = torch.cartesian_prod(torch.arange(0, 100, 3), torch.arange(0, 100, 7))


@pytest.fixture(scope="module")
def found() -> HeadsResult:
    task, model = planted(carries=True)
    return describe_heads(subject_of(task, model, task.examples(PAIRS)), addition_sets(task, PAIRS))


def cells(found: HeadsResult, head: str) -> dict[str, Metric]:
    (row,) = [row for row in found.heads if row.head == head]
    return row.metrics


def value(found: HeadsResult, head: str, metric: str) -> float:
    return cells(found, head)[metric].value


def test_deciding_columns_go_down_to_the_first_that_does_not_sum_to_nine() -> None:
    task = Addition(digits=4, train=7, valid=5, test=3)
    pairs = torch.tensor([[1234, 1111], [4455, 5544], [455, 1547]])  # sums 2345, 9999, and columns 12 9 9 1
    asked = task.deciding(pairs)
    assert asked[0].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert asked[1].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert asked[2].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    assert task.arrivals(pairs)[2].tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("order", ["least", "most"])
def test_the_deciding_columns_alone_decide_whether_a_carry_arrives(order: str) -> None:
    task = Addition(digits=3, order=order, train=7, valid=5, test=3)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(1000, (997, 2), generator=generator)
    power = 10 ** torch.arange(3)
    digits = pairs[..., None] // power % 10  # (N, 2, C)
    asked, arrives = task.deciding(pairs), task.arrivals(pairs)
    others = torch.randint(10, digits.shape, generator=generator)
    for column in range(4):
        changed = torch.where(asked[:, column, None], digits, others)
        below = (changed * power)[:, :, :column].sum(dim=(1, 2)) >= 10**column
        assert torch.equal(below & (column > 0), arrives[:, column])


def test_columns_follow_the_order_in_which_digits_are_written() -> None:
    least, most = (Addition(digits=2, order=order, train=7, valid=5, test=3) for order in ("least", "most"))
    assert least.source_columns().tolist() == [0, 1, -1, 0, 1]
    assert most.source_columns().tolist() == [1, 0, -1, 1, 0]
    assert least.target_columns().tolist() == [0, 1, 2, -1]
    assert most.target_columns().tolist() == [2, 1, 0, -1]
    assert most.places() == ["10^2", "10^1", "10^0", "end"]


def test_entropy_and_sparsity_have_their_values_by_hand() -> None:
    pattern = torch.tensor([[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0.5, 0.0]])[None, None].double()
    seen = torch.ones(3, 3).tril().bool()[None, None]
    found = _measure(pattern, seen, neighbours(SELF, 3, 3))
    assert found["entropy"].rows.tolist() == [[2]]  # the first row has nothing to choose
    two = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert found["entropy_nats"].heads.item() == pytest.approx(two + math.log(2))
    assert found["entropy_nats"].uniform.item() == pytest.approx(math.log(2) + math.log(3))
    assert found["entropy"].heads.item() == pytest.approx(two / math.log(2) + math.log(2) / math.log(3))
    hoyer = [
        (2**0.5 - 1 / (0.25**2 + 0.75**2) ** 0.5) / (2**0.5 - 1),
        (3**0.5 - 1 / 0.5**0.5) / (3**0.5 - 1),
    ]
    assert found["sparsity"].heads.item() == pytest.approx(sum(hoyer))
    assert found["diagonal"].heads.item() == pytest.approx(0.75)
    assert found["diagonal"].uniform.item() == pytest.approx(1 / 2 + 1 / 3)
    assert found["previous"].heads.item() == pytest.approx(0.25 + 0.5)


def test_cross_attention_has_no_diagonal_even_if_it_is_square() -> None:
    assert neighbours(CROSS, 3, 3) == {}
    assert neighbours(SELF, 2, 3) == {}
    assert neighbours(SELF, 2, 2)["previous"].tolist() == [[False, False], [True, False]]


def test_the_copying_head_looks_at_itself_and_the_aligning_head_at_its_column(
    found: HeadsResult,
) -> None:
    for head in (COPY, OWN):
        assert value(found, head, "diagonal") == pytest.approx(1, abs=1e-6)
        assert value(found, head, "entropy") == pytest.approx(0, abs=1e-4)
        assert value(found, head, "sparsity") == pytest.approx(1, abs=1e-4)
        assert value(found, head, "previous") == pytest.approx(0, abs=1e-6)
    assert value(found, COPY, "column") == pytest.approx(1, abs=1e-6)
    assert value(found, COPY, "partner") == pytest.approx(0, abs=1e-6)
    assert value(found, ALIGN, "column") == pytest.approx(1, abs=1e-6)
    assert value(found, ALIGN, "carry") == pytest.approx(0, abs=1e-6)
    assert value(found, ALIGN, "operator") == pytest.approx(0.5, abs=1e-6)  # at two of four places
    assert value(found, ALIGN, "entropy_nats") == pytest.approx(math.log(2) / 2, abs=1e-4)
    best = {(row.metric, row.kind): row.head for row in strongest(found)}
    assert best["column", "decoder cross"] == ALIGN
    assert best["carry", "decoder cross"] == CARRY
    assert best["diagonal", "encoder self"] == COPY
    assert best["diagonal", "decoder self"] == OWN


def test_the_carrying_head_looks_at_the_deciding_columns_whether_or_not_a_carry_arrives(
    found: HeadsResult,
) -> None:
    for metric in ("carry", "carry_in", "no_carry_in"):
        assert value(found, CARRY, metric) == pytest.approx(1, abs=1e-6)
        assert cells(found, CARRY)[metric].interval == pytest.approx((1, 1), abs=1e-6)
    assert value(found, CARRY, "column") == pytest.approx(0, abs=1e-6)
    by_place = cells(found, CARRY)["operator"].by_place
    assert by_place is not None
    assert list(by_place) == ["10^0", "10^1", "10^2", "end"]
    assert list(by_place.values()) == pytest.approx([1, 0, 0, 1], abs=1e-6)
    assert list(cells(found, ALIGN)["column"].by_place or {}) == ["10^0", "10^1"]


def test_idle_heads_have_the_values_of_uniform_attention(found: HeadsResult) -> None:
    active = {COPY, ALIGN, CARRY, OWN}
    for row in found.heads:
        if row.head not in active:
            for name, cell in row.metrics.items():
                assert cell.value == pytest.approx(cell.uniform, abs=1e-6), (row.head, name)
    uniform = cells(found, "decoder.1.cross.1")
    assert uniform["column"].uniform == pytest.approx(2 / 5)
    assert uniform["operator"].uniform == pytest.approx(1 / 5)
    assert uniform["entropy"].uniform == 1
    assert uniform["sparsity"].uniform == 0
    assert cells(found, "encoder.1.self.0")["partner"].uniform == pytest.approx(1 / 5)
    assert cells(found, "decoder.1.self.0")["diagonal"].uniform == pytest.approx(
        (1 / 2 + 1 / 3 + 1 / 4) / 3
    )


def test_carry_is_the_mean_of_its_two_groups_by_rows(found: HeadsResult) -> None:
    task, _ = planted()
    arrives = task.arrivals(PAIRS)[:, 1:]
    share = arrives.double().mean().item()
    for head in ("decoder.1.cross.1", "decoder.0.self.0"):
        parts = cells(found, head)
        both = share * parts["carry_in"].uniform + (1 - share) * parts["no_carry_in"].uniform
        assert parts["carry"].uniform == pytest.approx(both)
    assert cells(found, ALIGN)["carry_in"].examples == int(arrives.any(dim=1).sum())


def test_what_does_not_apply_is_absent(found: HeadsResult) -> None:
    assert {"diagonal", "previous", "partner"}.isdisjoint(cells(found, ALIGN))
    assert {"column", "partner", "operator"}.isdisjoint(cells(found, OWN))
    model, examples = planted_module()
    own = describe_heads(Subject(model, examples, {}, []))
    assert list(own.metrics) == ["entropy", "entropy_nats", "sparsity", "diagonal", "previous"]


def test_what_is_not_yet_said_decides_nothing() -> None:
    task = Addition(digits=2, order="most", train=7, valid=5, test=3)
    _, model = planted()
    found = describe_heads(subject_of(task, model, task.examples(PAIRS)), addition_sets(task, PAIRS))
    assert not any(name.startswith("carry") for name in cells(found, OWN))
    assert "carry" in cells(found, ALIGN)


def test_a_users_own_module_and_its_own_set_of_keys() -> None:
    model, examples = planted_module()
    first = torch.zeros(5, 5, dtype=torch.bool)
    first[:, 0] = True
    found = describe_heads(Subject(model, examples, {}, []), {("encoder", "self"): {"the first": first}})
    assert found.metrics["the first"] == "weight on the first"
    assert value(found, READ, "the first") == pytest.approx(1, abs=1e-6)
    assert value(found, "encoder.0.self.0", "the first") == pytest.approx(0.2)


def test_intervals_agree_with_scipy_and_hold_what_is_constant() -> None:
    generator = torch.Generator().manual_seed(1)
    values = torch.rand(211, 1, generator=generator, dtype=torch.double) ** 3
    ours = mean_intervals(values, torch.ones_like(values))[0].tolist()
    scipy = bootstrap_interval(values[:, 0].tolist())
    assert scipy is not None
    width = scipy[1] - scipy[0]
    assert ours == pytest.approx(scipy, abs=0.1 * width)
    rows = torch.tensor([[3.0, 0], [2, 1], [1, 0]], dtype=torch.double)
    low, high = mean_intervals(rows * 0.25, rows).T
    assert low[0] == high[0] == 0.25  # a mean over rows, not over examples
    assert low[1].isnan()  # one example has no spread


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch, found: HeadsResult) -> None:
    monkeypatch.setattr("attnlab.analysis.subjects.BATCH", 97)
    task, model = planted(carries=True)
    again = describe_heads(subject_of(task, model, task.examples(PAIRS)), addition_sets(task, PAIRS))
    for head in (ALIGN, COPY, "decoder.0.self.0"):
        for name, cell in cells(found, head).items():
            assert cells(again, head)[name].value == pytest.approx(cell.value, abs=1e-6)


def test_the_map_shows_uniform_attention_above_each_kind_and_leaves_out_what_is_absent(
    found: HeadsResult,
) -> None:
    data = heads_data(found)
    assert [kind.kind for kind in data.kinds] == ["encoder self", "decoder self", "decoder cross"]
    cross = data.kinds[2]
    column, diagonal = data.metrics.index("column"), data.metrics.index("diagonal")
    assert cross.heads[2] == ALIGN
    assert cross.values[2][column] == value(found, ALIGN, "column")
    assert cross.intervals[2][column] == cells(found, ALIGN)["column"].interval
    assert cross.uniform[column] == pytest.approx(2 / 5)
    assert cross.values[2][diagonal] is None
    assert "entropy_nats" not in data.metrics
    drawn = [axes for axes in draw_heads(data).axes if axes.get_ylabel() != "value, from 0 to 1"]
    assert [label.get_text() for label in drawn[2].get_yticklabels()] == [
        "decoder cross, uniform", *cross.heads
    ]  # fmt: skip
    texts = [text.get_text() for text in drawn[2].texts]
    assert len(texts) == sum(value is not None for row in [cross.uniform, *cross.values] for value in row)


def test_a_run_keeps_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = planted_run(tmp_path / "planted", carries=True)
    assert run_command(["heads", str(run.path), "--examples", "211", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    kept = run.analysis("heads-valid")
    assert kept is not None
    assert {**shown, "weights": kept["weights"]} == kept
    assert shown["examples"] == 211
    assert (run.file("figures/heads.svg").exists(), run.file("figures/heads.png").exists()) == (True, True)
    shown_data = to_json(heads_data(HeadsResult.from_json(shown)))
    assert json.loads(run.file("figures/heads.json").read_text()) == shown_data
    assert run_command(["heads", str(run.path), "--places", "--out", str(tmp_path / "there")]) == 0
    text = capsys.readouterr().out
    assert "carry, by the place of the answer" in text
    assert f"column        {ALIGN}" in text
    assert (tmp_path / "there/heads.json").exists()


def test_images_have_the_metrics_that_apply_to_them(tmp_path: Path) -> None:
    found = heads_run(untrained_digits(tmp_path), count=11)
    assert list(found.metrics) == ["entropy", "entropy_nats", "sparsity", "diagonal", "previous"]
    (row,) = found.heads
    assert row.metrics["diagonal"].uniform == pytest.approx(1 / 49)


def test_heads_on_few_examples_do_not_stand_for_heads_on_many(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    heads_run(run, count=3)
    assert heads_run(run, count=2, reuse=True).examples == 3
    assert heads_run(run, count=7, reuse=True).examples == 7
    heads_run(run, count=5)
    kept = run.analysis("heads-valid")
    assert kept is not None
    assert kept["examples"] == 7
    every = heads_run(run, count=10**6, reuse=True).examples
    assert every == len(load_subject(run, split="valid", count=10**6).examples)
    run.keep_analysis("heads-valid", {**kept, "examples": every, "run": "as it was kept"})
    assert heads_run(run, count=10**6, reuse=True).run == "as it was kept"  # there are no more


def test_the_figure_of_few_examples_goes_by_another_name(tmp_path: Path) -> None:
    run = untrained_digits(tmp_path)
    heads_run(run, count=7)
    done = attnlab("heads", run.path, "--examples", "3", cwd=tmp_path)
    assert f"{run.path}/analysis/heads-valid.json stays as it is: it is of 7 examples, this is of 3\n" in (
        done.stderr
    )
    assert run.file("figures/heads-3-examples.svg").exists()
    assert not run.file("figures/heads.svg").exists()


def test_refusals(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "planted")
    with pytest.raises(InputError, match="examples is 0; it must be at least 1"):
        heads_run(run, count=0)
    task, model = planted()
    with pytest.raises(InputError, match="there are no examples to look at"):
        subject_of(task, model, task.examples(PAIRS[:0]))
    with pytest.raises(LabError, match="MLP has no attention, so it has no heads to look at"):
        heads_run(untrained_digits(tmp_path, MLPModel()))
    with pytest.raises(LabError, match="Model has no attention, so it has no heads to look at"):
        Subject(Model(), task.examples(PAIRS), {}, [])


def test_the_example_in_the_docs_works(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "docs/explanation/heads.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/explanation/heads.md", "exec"), {"__name__": "example"})
    shown = eval(capsys.readouterr().out, {"Metric": Metric})
    assert shown.uniform == pytest.approx(0.2)
    assert shown.examples == 50
