"""Patching for any task: pairs that differ in one thing, and its known way through a model."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from attnlab import Examples, Pairs, Splits, Task, Tokens, registry, task
from attnlab.analysis.patch import Patching, grids, head_site, measure_grids
from attnlab.analysis.patch.contrasts import (
    Contrast,
    PatchResult,
    TaskNames,
    choose_pairs,
    draw_contrasts,
    measure_carriers,
    measure_contrast,
    patch_pairs,
)
from attnlab.analysis.patch.runs import SmallDifferenceWarning
from attnlab.drawn import _neighbours
from attnlab.errors import InputError, LabError
from attnlab.models import build_model
from attnlab.problems.sorting import Sorting
from attnlab.problems.sorting.lists import is_sorted
from attnlab.specs import Seq2SeqModel
from attnlab.tables.patch import sentence
from planted import READ, planted_module

MODEL, EXAMPLES = planted_module()
DIGITS = "0123456"


@pytest.fixture(scope="module", autouse=True)
def _own_registry() -> Iterator[None]:
    before = dict(registry._tasks)
    yield
    registry._tasks.clear()
    registry._tasks.update(before)


def drawn_first() -> Task:
    """Which of seven digits is the first of five: ``planted_module`` tells it by READ."""

    @task(symbols=DIGITS, classes=list(DIGITS))
    def first(rng: Random) -> tuple[str, str]:
        row = "".join(rng.choice(DIGITS) for _ in range(5))
        return row, row[0]

    return first(train=997, valid=101, test=101)


@dataclass(frozen=True, kw_only=True)
class First(Task):
    """The same as a class."""

    kind: ClassVar[str] = "first-of-five"
    vocabulary: ClassVar[int] = 7
    tokens: ClassVar[Tokens] = Tokens.shared(7)

    def splits(self, seed: int) -> Splits:
        return Splits(EXAMPLES, EXAMPLES, EXAMPLES)

    def answer(self, tokens: Tensor) -> str:
        return DIGITS[int(tokens)]

    def contrasts(self, count: int, seed: int) -> Pairs:
        (base,) = EXAMPLES[:count].inputs
        donor = base.clone()
        donor[:, 0] = (base[:, 0] + 3) % 7
        return Pairs(EXAMPLES[:count], Examples((donor,), donor[:, 0]), "the first digit")


def measured(made: Task) -> tuple[Contrast, PatchResult]:
    (drawn,) = draw_contrasts(made, 34, 0)
    chosen = choose_pairs(MODEL, drawn, 17)
    found = measure_contrast(MODEL, chosen, TaskNames(made, MODEL))
    carriers = measure_carriers(MODEL, [chosen])
    return found, PatchResult(run="first", columns=[found], carriers=[carriers])


@pytest.mark.parametrize("make", [drawn_first, First])
def test_the_one_site_that_brings_the_answer_has_share_one(make: Callable[[], Task]) -> None:
    found, result = measured(make())
    assert (found.drawn, found.pairs, found.held_out, found.warning) == (34, 17, 17, None)
    assert found.difference["base"] < 0 < found.difference["donor"]
    for direction in (found.denoising, found.noising):
        grids = {grid.quantity: grid for grid in direction}
        assert grids["heads"].rows == ["encoder.0.self.0", READ]
        assert grids["heads"].share[0] == pytest.approx([0, 0, 0, 0, 0], abs=1e-4)
        assert grids["heads"].share[1] == pytest.approx([1, 0, 0, 1, 0], abs=1e-4)
        assert grids["v"].columns == ["1", "2", "3", "4", "5"]
        assert grids["v"].share[1] == pytest.approx([1, 0, 0, 0, 0], abs=1e-4)
        assert grids["z"].share[1] == pytest.approx([0, 0, 0, 0, 1], abs=1e-4)
    (carriers,) = result.carriers
    assert (carriers.heads, carriers.smallest) == ((READ,), True)
    assert carriers.held_out[0].denoising.flipped == carriers.held_out[0].noising.flipped == 1
    assert sentence(result, carriers) == f"{found.name}: {READ} (by itself)"
    assert PatchResult.from_json(result.to_json()) == result
    assert list(result.to_json()) == ["run", "columns", "carriers"]


def test_drawn_examples_are_paired_with_neighbours_that_have_another_answer() -> None:
    made = drawn_first()
    (drawn,) = draw_contrasts(made, 90, 3)
    base, donor = drawn.base.inputs[0], drawn.donor.inputs[0]
    assert len(drawn) == 90
    assert torch.equal((base != donor).sum(dim=1), torch.ones(90, dtype=torch.long))
    assert (drawn.base.targets != drawn.donor.targets).all()
    assert torch.equal(torch.cat((drawn.base.targets, drawn.donor.targets)), torch.cat((base, donor))[:, 0])
    assert len(torch.unique(torch.cat((base, donor)), dim=0)) == 180
    (again,) = draw_contrasts(made, 90, 3)
    assert torch.equal(again.base.inputs[0], base)


def test_neighbours_have_the_same_length_and_no_place_comes_first() -> None:
    def row(given: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(given), ("odd" if given.count("1") % 2 else "even",)

    rows = [row(f"{number:0{length}b}") for length in (3, 7) for number in range(2**length)]
    Random(0).shuffle(rows)
    pairs = _neighbours(rows, 999)
    differ = [[x != y for x, y in zip(a, b, strict=True)] for (a, _), (b, _) in pairs]
    assert {sum(each) for each in differ} == {1}
    assert {each.index(True) for each in differ if len(each) == 7} == set(range(7))
    assert _neighbours([row("000"), row("011")], 9) == []


def test_answers_are_compared_where_they_first_differ_after_the_same_beginning() -> None:
    targets = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4], [5, 5, 5, 5]])
    other = torch.tensor([[1, 2, 6, 6], [0, 2, 3, 4], [5, 5, 0, 5]])
    source = torch.randint(7, (3, 5), generator=torch.Generator().manual_seed(0))
    base, donor = (
        Examples((source, torch.cat((torch.full((3, 1), 6), each[:, :-1]), dim=1)), each)
        for each in (targets, other)
    )
    pairs = Pairs(base, donor, "something")
    assert pairs.compared().tolist() == [2, 0, 2]
    torch.manual_seed(0)
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=7).eval()
    patching = patch_pairs(model, pairs)
    more, less, _ = patching.known
    assert (more.tolist(), less.tolist()) == ([6, 0, 0], [3, 1, 5])
    assert patching.base.inputs[1].shape == (3, 3)
    with torch.no_grad():
        logits = model(*base.inputs)  # all that is fed; what comes behind the place changes nothing
    rows = torch.arange(3)
    expected = logits[rows, [2, 0, 2], more] - logits[rows, [2, 0, 2], less]
    torch.testing.assert_close(patching.base.values, expected, atol=1e-5, rtol=1e-5)


def test_sorting_exchanges_two_neighbours() -> None:
    (drawn,) = draw_contrasts(Sorting(low=5, high=11), 53, 1)
    base, donor = drawn.base.inputs[0], drawn.donor.inputs[0]
    assert is_sorted(base).all()
    assert not is_sorted(donor).any()
    assert ((base != donor).sum(dim=1) == 2).all()
    assert torch.equal(base, donor.sort(dim=1).values)


class Pictured(First):
    """The same as if its inputs were images, which have no signs to show."""

    images: ClassVar[bool] = True


def test_images_go_by_their_answers_and_patches_by_numbers() -> None:
    found, _ = measured(Pictured())
    assert all(answer in DIGITS for answer in found.example.values())
    labels = TaskNames(Pictured(), MODEL).labels(First().contrasts(7, 0))
    assert labels("encoder.0.self.z", 6) == ["1", "2", "3", "4", "5", "6"]
    assert TaskNames(First(), MODEL).labels(First().contrasts(7, 0))("encoder.0.self.z", 6)[0] == "cls"


class Bare(First):
    """A task without pairs."""

    def contrasts(self, count: int, seed: int) -> Any:
        return Task.contrasts(self, count, seed)


class Lonely(First):
    """A task whose pairs cannot be found."""

    def contrasts(self, count: int, seed: int) -> Pairs:
        return super().contrasts(0, seed)


def test_a_task_without_pairs_is_told_what_to_write() -> None:
    with pytest.raises(LabError, match=r"'first-of-five' has no `contrasts`, pairs of examples that"):
        draw_contrasts(Bare(), 7, 0)
    (none,) = draw_contrasts(Lonely(), 7, 0)
    with pytest.raises(LabError, match=r"no pairs that differ in the first digit were found; `contrasts`"):
        choose_pairs(MODEL, none, 7)
    with pytest.raises(InputError, match=r"of the task 'first-of-five' have no choice of 'reach'"):
        draw_contrasts(First(), 7, 0, reach=2)


def test_a_difference_that_may_be_nothing_is_warned_of() -> None:
    """What is read goes up in half of the pairs and down in the others, but for one."""
    drawn = First().contrasts(21, 0)
    signs = torch.tensor([1.0, -1.0] * 10 + [1.0])

    def read(logits: Tensor, more: Tensor, less: Tensor, sign: Tensor) -> Tensor:
        rows = torch.arange(len(logits))
        return sign * (logits[rows, more] - logits[rows, less])

    known = (drawn.donor.targets, drawn.base.targets, signs)
    patching = Patching.between(MODEL, drawn.base.inputs, drawn.donor.inputs, read, known=known)
    assert patching.warning is not None
    assert "which may be nothing, so shares of that difference mean little" in patching.warning
    with pytest.warns(SmallDifferenceWarning, match=re.escape(patching.warning)):
        patching.share([head_site(READ)])
    with pytest.warns(SmallDifferenceWarning, match=re.escape(patching.warning)):
        measure_grids(patching, grids(patching))
    sure = Patching.between(
        MODEL, drawn.base.inputs, drawn.donor.inputs, read, known=(*known[:2], torch.ones(21))
    )
    assert sure.warning is None
    assert sure.share([head_site(READ)]).value == pytest.approx(1, abs=1e-4)  # and no warning is raised
    found, result = measured(First())
    shown = PatchResult(run="first", columns=[replace(found, warning=patching.warning)], carriers=[])
    assert f"warning: {patching.warning}" in shown.tables()
    assert shown.to_json()["columns"][0]["warning"] == patching.warning
    assert "warning" not in result.to_json()["columns"][0]
