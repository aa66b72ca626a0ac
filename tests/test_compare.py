"""Two runs side by side: paired numbers by hand, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnlab.analysis.compare import Comparison, compare_answers, paired, spec_differences, why_not_paired
from attnlab.analysis.image_classifier import image_classifier
from attnlab.figures.strata import differences_data
from attnlab.models import build_for
from attnlab.problems.addition import Addition
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import is_sorted
from attnlab.problems.sorting.words import CLASSES
from attnlab.runs import RunFolder, create_run, save_weights
from attnlab.specs import PatchSeq2SeqModel, Rotary, Spec, TokensModel
from attnlab.training import train_run
from commands import attnlab, complaint
from tiny import TINY
from tiny_digits import TEST, VIT, squares, squares_spec, write_squares


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three adders: two that differ in their positions, and one with another seed."""
    home = tmp_path_factory.mktemp("compare")
    turned = replace(TINY, model=replace(TINY.model, positions=Rotary(), width=12))  # type: ignore[arg-type]
    for name, spec in {"learned": TINY, "turned": turned, "other": replace(TINY, seed=8)}.items():
        train_run(create_run(home / name, spec))
    return home


def hits(text: str) -> torch.Tensor:
    return torch.tensor([sign == "1" for sign in text])


def test_paired_numbers_by_hand() -> None:
    found = paired(hits("1111110000"), hits("1000001000"))
    assert (found.only_first, found.only_second, found.examples) == (5, 1, 10)
    assert found.right == [0.6, 0.2]
    assert found.difference == pytest.approx(0.4)
    assert found.p == pytest.approx(14 / 64)  # 2 (1 + 6) / 2^6
    middle, spread = 4 / 12, (8 / 12 - (4 / 12) ** 2) / 12
    assert found.interval == pytest.approx(
        [middle - 1.96 * spread**0.5, middle + 1.96 * spread**0.5], abs=1e-4
    )


def test_turning_two_runs_around_turns_every_sign() -> None:
    one, two = paired(hits("1101011"), hits("0111000")), paired(hits("0111000"), hits("1101011"))
    assert two.difference == pytest.approx(-one.difference)
    assert two.interval == pytest.approx([-one.interval[1], -one.interval[0]])
    assert two.p == one.p


def test_the_same_answers_differ_by_nothing() -> None:
    found = paired(hits("10110"), hits("10110"))
    assert (found.difference, found.p) == (0, 1)
    assert found.interval[0] == -found.interval[1] < 0


def test_intervals_hold_the_true_difference_as_often_as_they_say() -> None:
    """Of answers that are independent with 80% and 70% right."""
    chance = torch.Generator().manual_seed(0)
    held = 0
    for _ in range(300):
        one, two = (torch.rand(60, generator=chance) < share for share in (0.8, 0.7))
        low, high = paired(one, two).interval
        held += low <= 0.1 <= high
    assert held / 300 > 0.92


def test_what_differs_in_two_specs() -> None:
    other = replace(TINY, seed=4, model=replace(TINY.model, positions=Rotary(base=500.0), width=12))  # type: ignore[arg-type]
    rows = {row.key: row.values for row in spec_differences(TINY, other)}
    assert rows["seed"] == [3, 4]
    assert rows["model.width"] == [6, 12]
    assert rows["model.positions.base"][1] == 500.0
    assert spec_differences(TINY, TINY) == []


def test_runs_that_cannot_be_paired_are_told_why() -> None:
    other = replace(TINY, task=replace(TINY.task, digits=2))  # type: ignore[call-arg]
    assert why_not_paired(TINY, other) == "task.digits is 1 in one and 2 in the other"
    assert why_not_paired(TINY, replace(TINY, seed=1)) is None


def test_the_command_pairs_the_same_examples(home: Path) -> None:
    found = json.loads(
        attnlab("compare", "learned", "turned", "--json", "--out", "new/page.html", cwd=home).stdout
    )
    whole = found["answers"]["whole"]
    assert whole["examples"] == 5 == sum(row["examples"] for row in found["answers"]["groups"])
    for row in found["answers"]["groups"]:
        assert row["p_holm"] >= row["p"]
    own = [
        json.loads(attnlab("evaluate", name, "--json", cwd=home).stdout) for name in ("learned", "turned")
    ]
    assert whole["right"] == [each["exact_match"] for each in own]
    assert [each["count"] for each in found["heads"]] == [9, 9]
    page = (home / "new/page.html").read_text()
    assert page.count("<figure role=") == page.count("Good and bad signs.") == 2
    assert "attnlab compare learned turned --out new/page.html<" in page
    answers = Comparison.from_json(found).answers
    assert answers.whole is not None
    data = differences_data(["a", "b"], [answers.whole, *answers.groups])
    assert data.groups[0] == "all examples"
    assert data.difference[0] == pytest.approx(data.right[0][0] - data.right[0][1])


def test_the_page_tells_the_command_that_wrote_it(home: Path) -> None:
    attnlab("compare", "learned", "turned", "--samples", "3", "--out", "few.html", cwd=home)
    page = (home / "few.html").read_text()
    assert "attnlab compare learned turned --out few.html --samples 3<" in page


def test_sums_that_the_second_has_learned_from_are_left_out(home: Path) -> None:
    found = json.loads(attnlab("compare", "learned", "other", "--json", cwd=home).stdout)
    task = TINY.task
    assert isinstance(task, Addition)
    *_, test = task.split_pairs(3)
    learned, watched, _ = task.split_pairs(8)
    known = {frozenset(pair) for pair in torch.cat((learned, watched)).tolist()}
    left = [pair for pair in test.tolist() if frozenset(pair) not in known]
    assert 0 < len(left) < 5
    assert found["answers"]["whole"]["examples"] == len(left)
    told = attnlab("compare", "learned", "other", cwd=home).stdout
    assert "What differs in their specs" in told
    assert f"of {len(left)} test examples learned has" in told


def saying(path: Path, spec: Spec, answer: int) -> RunFolder:
    """A run whose model says the same whatever it is asked."""
    run = create_run(path, spec)
    model = build_for(spec)
    readout = model.get_submodule("readout")
    with torch.no_grad():
        for parameter in readout.parameters():
            parameter.zero_()
        readout.bias[answer] = 1  # type: ignore[operator]
    save_weights(run, "best", model.state_dict())
    return run


def test_digits_are_paired_image_by_image(tmp_path: Path) -> None:
    """One run says the most frequent digit and the other the rarest, so each has the images of it right."""
    counts = torch.bincount(squares(TEST, seed=2)[1].long(), minlength=10).tolist()
    often, seldom = counts.index(max(counts)), counts.index(min(counts))
    assert counts[often] > counts[seldom] > 0
    spec = replace(squares_spec(write_squares(tmp_path / "squares")), model=replace(VIT, layers=1))
    one, two = saying(tmp_path / "one", spec, often), saying(tmp_path / "two", spec, seldom)
    found = compare_answers(one, two)
    assert found.whole is not None
    whole = found.whole
    assert whole.right == [counts[often] / TEST, counts[seldom] / TEST]
    assert (whole.only_first, whole.only_second) == (counts[often], counts[seldom])
    assert whole.difference == pytest.approx((counts[often] - counts[seldom]) / TEST)
    assert [(row.group, row.examples, row.right) for row in found.groups] == [
        (f"digit {digit}", counts[digit], [float(digit == often), float(digit == seldom)])
        for digit in range(10)
    ]


def test_grids_are_right_if_every_digit_is(tmp_path: Path) -> None:
    """Of two digits each: a run that says 33 to all has only these right."""
    spec = squares_spec(write_squares(tmp_path / "squares"))
    task = Grids(rows=1, columns=2, train=30, valid=7, test=400, directory=str(tmp_path / "squares"))
    model = PatchSeq2SeqModel(rows=1, columns=2, patch=14, width=12, heads=2, hidden=5, encoder_layers=1)
    spec = replace(spec, task=task, model=model)
    one, two = saying(tmp_path / "one", spec, 3), saying(tmp_path / "two", spec, 5)
    truth = image_classifier(one).images("test").truth
    threes, fives = (int((truth == digit).all(dim=1).sum()) for digit in (3, 5))
    assert threes + fives > 0
    found = compare_answers(one, two)
    assert found.whole is not None
    assert (found.whole.only_first, found.whole.only_second) == (threes, fives)
    assert found.whole.examples == 400
    with_three = next(row for row in found.groups if row.group == "with a 3")
    held = int((truth == 3).any(dim=1).sum())
    assert (with_three.examples, with_three.right) == (held, [threes / held, 0.0])


def test_lists_are_those_of_the_first_run(tmp_path: Path) -> None:
    """One run says sorted and the other unsorted, so together they have every list right."""
    task = Sorting(low=3, high=5, train=23, valid=7, test=31)
    model = TokensModel(width=12, heads=3, layers=1, hidden=5)
    spec = replace(TINY, task=task, model=model)
    other = replace(spec, seed=8, task=replace(task, test=9))
    one = saying(tmp_path / "one", spec, CLASSES.index("sorted"))
    two = saying(tmp_path / "two", other, CLASSES.index("unsorted"))
    lists = task.splits(spec.seed).test
    ordered = int(is_sorted(lists.inputs[0]).sum())
    assert 0 < ordered < 31
    found = compare_answers(one, two)
    assert found.whole is not None
    assert found.whole.examples == 31
    assert (found.whole.only_first, found.whole.only_second) == (ordered, 31 - ordered)
    assert found.whole.right == [ordered / 31, (31 - ordered) / 31]
    groups = {row.group: (row.examples, row.right) for row in found.groups}
    assert groups["sorted"] == (ordered, [1.0, 0.0])
    assert groups["unsorted"] == (31 - ordered, [0.0, 1.0])
    lengths = [groups[f"length {length}"] for length in (3, 4, 5)]
    assert sum(count for count, _ in lengths) == 31
    assert sum(count * right[0] for count, right in lengths) == pytest.approx(ordered)


def test_refusals(home: Path) -> None:
    assert complaint("compare", "learned", "turned", "--out", "page.svg", cwd=home) == (
        "out is 'page.svg'; it must end in .html"
    )
    said = complaint("compare", "learned", "zoo:sorter", cwd=home)
    assert "'addition'" in said
    assert "'sorting'" in said
    assert "same task" in said
