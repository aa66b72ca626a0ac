"""What heads are worth, on models in which this is known."""

from itertools import combinations, permutations

import pytest
import torch

from attnlab.analysis.ablate.ablation import Ablation, AblationResult, ablate, evaluate_without
from attnlab.analysis.ablate.baselines import head_names, optimal_baseline, zero_baseline
from attnlab.analysis.ablate.effects import (
    ALL,
    HardestHit,
    Pair,
    Shapley,
    Single,
    describe_shapley,
    describe_singles,
    disagreement_sentence,
    disagreements,
    hardest_hit,
    missing_in,
    random_orders,
)
from attnlab.analysis.statistics import bootstrap_interval
from attnlab.analysis.subjects import Answers, Subject, score, subject_of
from attnlab.errors import InputError, LabError
from attnlab.model import Model
from attnlab.results import Estimate
from attnlab.sets import Examples
from planted import ACTIVE, ALIGN, CARRY, COPY, OWN, READ, planted, planted_module

PAIRS = torch.cartesian_prod(torch.arange(0, 100, 9), torch.arange(3, 100, 7))


def planted_subject(*, carries: bool) -> Subject:
    task, model = planted(carries=carries)
    return subject_of(task, model, task.examples(PAIRS))


@pytest.fixture(scope="module")
def found() -> AblationResult:
    """Everything about the planted adder with carries."""
    subject = planted_subject(carries=True)
    plan = Ablation(baselines=("zero", "mean", "resample"), pairs=True, orders=3)
    return ablate(subject, subject.examples[slice(0, 61)], plan)


def rows(found: AblationResult, baseline: str) -> dict[str, Single]:
    return {row.head: row for row in found.baselines[baseline]}


def pairs_of(found: AblationResult) -> list[Pair]:
    assert found.pairs is not None
    return found.pairs


def shapley_of(found: AblationResult) -> Shapley:
    assert found.shapley is not None
    return found.shapley


@pytest.mark.parametrize("baseline", ["zero", "mean", "resample"])
def test_exactly_the_planted_heads_are_missed(found: AblationResult, baseline: str) -> None:
    assert found.exact_match == 1
    for head, row in rows(found, baseline).items():
        if head in ACTIVE[True]:
            assert row.lost[ALL].surely_above(0.1)
            assert row.loss_rise.surely_above(0.0)
        else:
            assert row.loss_rise == Estimate(0.0, (0.0, 0.0))
            assert set(row.groups.values()) == {Estimate(0.0, (0.0, 0.0))}


def test_no_constant_takes_the_place_of_a_planted_head() -> None:
    subject = planted_subject(carries=False)
    best = optimal_baseline(subject.model, subject.examples, steps=5)
    sets = {head: frozenset((head,)) for head in head_names(subject.model)}
    answers, whole = evaluate_without(subject, sets.values(), best), score(subject.model, subject.examples)
    lost = {head: int(whole.exact.sum() - answers[removed].exact.sum()) for head, removed in sets.items()}
    assert {head for head, count in lost.items() if count != 0} == ACTIVE[False]
    assert min(lost[head] for head in ACTIVE[False]) > whole.exact.sum() / 2


def test_the_heads_that_bring_the_carry_are_missed_where_there_is_one() -> None:
    subject = planted_subject(carries=True)
    without = {(CARRY, OWN): frozenset((CARRY, OWN))}
    answers = evaluate_without(subject, without.values(), zero_baseline(subject.model))
    task, _ = planted(carries=True)
    (row,) = describe_singles(
        subject, score(subject.model, subject.examples), {"both": answers[without[CARRY, OWN]]}
    )
    assert {group: cell.value for group, cell in row.lost.items()} == {
        ALL: (task.chains(PAIRS) > 0).double().mean().item(),
        "carry chain 0": 0,
        "carry chain 1": 1,
        "carry chain 2": 1,
    }
    carries = task.carries(PAIRS)  # column 0 sends one to the tens, column 1 to the leading digit
    assert {place: cell.value for place, cell in row.lost_at.items()} == {
        "10^0": 0,
        "10^1": pytest.approx(carries[:, 0].double().mean().item()),
        "10^2": pytest.approx(carries[:, 1].double().mean().item()),
        "end": 0,
    }


def test_hardest_hit_names_the_head_or_nobody() -> None:
    def row(head: str, everywhere: float, leading: float) -> Single:
        def cell(value: float) -> Estimate:
            return Estimate(value, (value - 0.125, value + 0.125))

        return Single(head, 1.0, 1.0, cell(0.0), {ALL: cell(everywhere)}, {"10^3": cell(leading)})

    assert hardest_hit([row("a", 0.25, 0.0625), row("b", 0.5, 0.0)]) == [
        HardestHit(ALL, "b", 0.5, (0.375, 0.625)),
        HardestHit("at 10^3", None, 0.0625, (-0.0625, 0.1875)),
    ]


def test_intervals_are_those_of_the_paired_bootstrap(found: AblationResult) -> None:
    subject = planted_subject(carries=True)
    removed = frozenset((OWN,))
    answers = evaluate_without(subject, [removed], zero_baseline(subject.model))[removed]
    row = rows(found, "zero")[OWN]
    lost = score(subject.model, subject.examples).exact.double() - answers.exact.double()
    assert row.lost[ALL].value == lost.mean().item() == pytest.approx(1 - row.exact_match)
    assert row.lost[ALL].interval == pytest.approx(bootstrap_interval(lost.tolist()), abs=0.02)
    rise = answers.loss - score(subject.model, subject.examples).loss
    assert row.loss_rise.value == pytest.approx(rise.mean().item())
    ends = bootstrap_interval(rise.tolist())  # corrected for bias, which few large losses make large
    assert row.loss_rise.interval == pytest.approx(ends, rel=0.25)


def test_pairs_interact_exactly_where_heads_were_planted(found: AblationResult) -> None:
    lost = {frozenset(row.heads): row.lost.value for row in pairs_of(found)}
    alone = {head: row.lost[ALL].value for head, row in rows(found, "zero").items()}
    assert len(lost) == 18 * 17 // 2
    for row in pairs_of(found):
        a, b = row.heads
        assert row.excess.value == pytest.approx(lost[frozenset((a, b))] - alone[a] - alone[b])
        if not ACTIVE[True].issuperset((a, b)):
            assert row.excess == Estimate(0.0, (0.0, 0.0))
    task, _ = planted(carries=True)
    assert lost[frozenset((CARRY, OWN))] == (task.chains(PAIRS) > 0).double().mean().item()
    assert lost[frozenset((COPY, ALIGN))] == alone[COPY]
    assert found.only_together == []


def test_shapley_values_are_nothing_for_idle_heads_and_sum_to_the_whole(found: AblationResult) -> None:
    shapley = shapley_of(found)
    assert {row.head for row in shapley.heads if row.value != 0} <= ACTIVE[True]
    for head in set(rows(found, "zero")) - ACTIVE[True]:
        (row,) = [row for row in shapley.heads if row.head == head]
        assert (row.value, row.error, row.loss.value) == (0, 0, 0)
    total = sum(row.value for row in shapley.heads)
    assert total == pytest.approx(shapley.whole - shapley.none, abs=1e-12)
    assert found.only_in_company == []


def test_shapley_values_of_all_orders_are_shapleys() -> None:
    """Two heads that need each other share what they bring; with all orders there is no error left."""
    subject = planted_subject(carries=False)
    heads = [COPY, ALIGN, "encoder.1.self.2", "decoder.1.cross.1"]
    orders = [list(order) for order in permutations(heads)]
    sets = [out for order in orders for out in missing_in(order)]
    answers = evaluate_without(subject, sets, zero_baseline(subject.model))
    assert len(answers) == 2**4
    found = describe_shapley(heads, orders, answers)
    values = {row.head: row.value for row in found.heads}
    half = (found.whole - found.none) / 2
    assert half > 0.1
    assert values == {
        COPY: pytest.approx(half),
        ALIGN: pytest.approx(half),
        "encoder.1.self.2": 0,
        "decoder.1.cross.1": 0,
    }


def test_shapley_values_against_their_definition() -> None:
    """A game of three players with made-up worth, against the sum over coalitions."""
    heads = ["a", "b", "c"]
    worth = {frozenset(s): 0.01 * i for n in range(4) for i, s in enumerate(combinations(heads, n), 7**n)}

    def answers(right: float) -> Answers:
        count = round(100 * right)
        exact = torch.arange(500)[:, None] < count
        return Answers(1 - exact[:, 0].float(), exact)

    by_missing = {frozenset(heads) - kept: answers(value) for kept, value in worth.items()}
    share = {kept: by_missing[frozenset(heads) - kept].exact.double().mean().item() for kept in worth}
    found = describe_shapley(heads, [list(order) for order in permutations(heads)], by_missing)
    for row in found.heads:
        rest = [head for head in heads if head != row.head]
        expected = sum(
            weight * (share[frozenset((*s, row.head))] - share[frozenset(s)])
            for n, weight in ((0, 1 / 3), (1, 1 / 6), (2, 1 / 3))
            for s in combinations(rest, n)
        )
        assert row.value == pytest.approx(expected)
        assert row.loss.value == pytest.approx(expected)


def test_the_error_is_that_of_a_mean_of_orders() -> None:
    orders = [["a", "b"], ["b", "a"], ["b", "a"], ["a", "b"], ["a", "b"]]

    def answers(right: int) -> Answers:
        return Answers(torch.zeros(5), (torch.arange(5) < right)[:, None])

    worth = {frozenset("ab"): 0, frozenset("b"): 1, frozenset("a"): 3, frozenset[str](): 5}
    found = describe_shapley(["a", "b"], orders, {out: answers(right) for out, right in worth.items()})
    brought = torch.tensor([0.2, 0.4, 0.4, 0.2, 0.2], dtype=torch.double)  # by a
    assert found.heads[0].value == pytest.approx(brought.mean().item())
    assert found.heads[0].error == pytest.approx(brought.std().item() / 5**0.5)
    once = describe_shapley(["a", "b"], orders[:1], {out: answers(right) for out, right in worth.items()})
    assert once.heads[0].error is None


def test_orders_are_drawn_by_the_seed() -> None:
    heads = [str(i) for i in range(11)]
    orders = random_orders(heads, 5, seed=3)
    assert all(sorted(order) == sorted(heads) for order in orders)
    assert orders == random_orders(heads, 5, seed=3) != random_orders(heads, 5, seed=4)
    assert missing_in(["x", "y"]) == [frozenset("xy"), frozenset("y"), frozenset()]


def twins_module() -> tuple[Model, Examples]:
    """The planted module with its reading head twice: each alone is enough."""
    model, examples = planted_module(499)
    with torch.no_grad():
        for part in ("query", "key", "value"):
            weight = model.get_parameter(f"encoder.0.self.{part}.weight")
            weight[:7] = weight[7:]
        weight = model.get_parameter("encoder.0.self.output.weight")
        weight[:, :7] = weight[:, 7:]
    return model, examples


def test_heads_that_matter_only_together_are_named() -> None:
    model, examples = twins_module()
    subject = Subject(model, examples, {}, ["class"])
    found = ablate(subject, examples, Ablation(baselines=("zero",), pairs=True, orders=61))
    assert [row.lost[ALL].value for row in found.baselines["zero"]] == [0, 0]
    (pair,) = found.only_together or []
    tokens = examples.inputs[0]
    told_wrongly = (tokens[:, 0] != tokens[:, -1]).double().mean().item()
    assert pair.heads == ["encoder.0.self.0", READ]
    assert pair.lost.value == pair.excess.value == told_wrongly
    assert set(found.only_in_company or []) == {"encoder.0.self.0", READ}
    assert found.agreement is None


def test_a_module_of_ones_own_has_its_one_head_named() -> None:
    model, examples = planted_module(101)
    strata = {"first is 0": examples.targets == 0}
    plan = Ablation(baselines=("mean", "zero", "optimal"), pairs=True, orders=3)
    found = ablate(Subject(model, examples, strata, ["class"]), examples, plan)
    for baseline in ("mean", "zero", "optimal"):
        values = rows(found, baseline)
        assert values[READ].lost[ALL].surely_above(0.5)
        assert values["encoder.0.self.0"].lost[ALL].value == 0
        assert [row.head for row in found.hardest_hit[baseline]] == [READ, READ]
        assert values[READ].lost_at == {}
    assert [row.excess.value for row in pairs_of(found)] == [0]
    assert {row.head: row.value for row in shapley_of(found).heads} == {
        READ: found.baselines["mean"][1].lost[ALL].value,
        "encoder.0.self.0": 0,
    }


def test_where_baselines_disagree() -> None:
    def row(head: str, value: float, low: float, high: float) -> Single:
        return Single(head, 1.0, 1.0, Estimate(0.0, None), {ALL: Estimate(value, (low, high))}, {})

    by_baseline = {
        "zero": [row("a", 0.5, 0.4, 0.6), row("b", 0.1, 0.0, 0.2), row("c", 0.9, 0.8, 1.0)],
        "mean": [row("a", 0.2, 0.1, 0.3), row("b", 0.2, 0.1, 0.3), row("c", 0.1, 0.0, 0.2)],
        "resample": [row("a", 0.3, 0.2, 0.4), row("b", 0.1, 0.0, 0.2), row("c", 0.4, 0.3, 0.5)],
    }
    found = disagreements(by_baseline)
    assert [(each.head, each.least.baseline, each.most.baseline) for each in found] == [
        ("c", "mean", "zero"),
        ("a", "mean", "zero"),
    ]
    assert disagreement_sentence(found, 3) == (
        "The baselines disagree on 2 of 3 heads, most on c: without it 90.0 points (95%: 80.0 to 100.0) "
        "are lost towards zero, but 10.0 points (95%: 0.0 to 20.0) towards mean."
    )
    assert disagreement_sentence(disagreements({"zero": by_baseline["zero"]}), 3) == (
        "The baselines agree on every head within their intervals."
    )


def test_one_example_has_no_interval() -> None:
    model, examples = planted_module(1)
    plan = Ablation(baselines=("zero", "mean"), pairs=True, orders=2)
    found = ablate(Subject(model, examples, {}, ["class"]), examples, plan)
    assert rows(found, "zero")[READ].lost[ALL].interval is None
    assert found.disagreements == []
    assert found.only_together == []
    assert found.only_in_company == []


def test_only_the_heads_that_were_asked_for() -> None:
    subject = planted_subject(carries=False)
    plan = Ablation(baselines=("zero",), heads=(COPY, "decoder.1.cross.1", COPY), pairs=True, orders=2)
    found = ablate(subject, subject.examples, plan)
    assert list(rows(found, "zero")) == [COPY, "decoder.1.cross.1"]
    assert [row.heads for row in pairs_of(found)] == [[COPY, "decoder.1.cross.1"]]
    assert [row.head for row in shapley_of(found).heads] == [COPY, "decoder.1.cross.1"]


def test_what_cannot_be_done_is_refused() -> None:
    model, examples = planted_module(5)
    subject = Subject(model, examples, {}, ["class"])
    with pytest.raises(LabError, match=r"no head 'encoder.0.self.7'; did you mean 'encoder.0.self"):
        ablate(subject, examples, Ablation(baselines=("zero",), heads=("encoder.0.self.7",)))
    with pytest.raises(InputError, match="there is no baseline; name at least one of zero, mean, resample"):
        Ablation(baselines=())
    with pytest.raises(InputError, match="shapley is -1; it must be at least 0"):
        Ablation(orders=-1)
    with pytest.raises(InputError, match="there are no examples to look at; give at least 1"):
        Subject(model, examples[slice(0, 0)], {}, ["class"])
    with pytest.raises(LabError, match="Model has no attention, so it has no heads to look at"):
        Subject(Model(), examples, {}, ["class"])
    with pytest.raises(LabError, match="an example has 1 targets, but there are names for 2"):
        ablate(Subject(model, examples, {}, ["a", "b"]), examples, Ablation(baselines=("zero",)))


def test_every_head_has_a_name() -> None:
    model, _ = planted_module(3)
    assert head_names(model) == ["encoder.0.self.0", READ]
