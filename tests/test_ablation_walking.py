"""Shared prefixes change no answer, and teacher forcing tells what greedy decoding gets right."""

from typing import final

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnlab.analysis.ablate.ablation import evaluate_without
from attnlab.analysis.ablate.baselines import (
    Baseline,
    Heads,
    head_names,
    mask_without,
    masked,
    mean_baseline,
    resample_baseline,
    run_pass,
    until,
    zero_baseline,
)
from attnlab.analysis.subjects import Answers, Subject, judge, load_subject, subject_of
from attnlab.attention import Attention
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Seq2Seq, build_model
from attnlab.problems.addition import Addition
from attnlab.runs import open_run
from attnlab.sets import Examples
from attnlab.specs import Learned, Seq2SeqModel
from attnlab.taps import Edit, edit, taps
from twins import randomise

TASK = Addition(digits=2, train=31, valid=7, test=5)
PAIRS = torch.randint(100, (31, 2), generator=torch.Generator().manual_seed(1))


def subject(norm: str) -> Subject:
    torch.manual_seed(0)
    spec = Seq2SeqModel(width=15, heads=3, hidden=7, norm=norm, positions=Learned(length=5))  # type: ignore[arg-type]
    model = build_model(spec, vocabulary=TASK.vocabulary)
    randomise(model)
    return subject_of(TASK, model.eval(), TASK.examples(PAIRS))


SUBJECTS = {norm: subject(norm) for norm in ("pre", "post")}
HEADS = head_names(SUBJECTS["pre"].model)


def plainly(subject: Subject, removed: Heads, baseline: Baseline) -> Answers:
    with masked(subject.model, mask_without(subject.model, removed), baseline), torch.inference_mode():
        return judge(subject.model(*subject.examples.inputs), subject.examples.targets)


def same(a: Answers, b: Answers) -> bool:
    return torch.equal(a.right, b.right) and torch.allclose(a.loss, b.loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("norm", "threads"), [("pre", 1), ("post", 1), ("pre", 2)])
def test_answers_are_those_of_plain_passes(norm: str, threads: int) -> None:
    chosen, chance = SUBJECTS[norm], torch.Generator().manual_seed(2)
    sets = [frozenset(head for head in HEADS if torch.rand(1, generator=chance) < 0.3) for _ in range(5)]
    sets += [frozenset[str](), frozenset(HEADS), *(frozenset((head,)) for head in HEADS[::4])]
    for baseline in (zero_baseline(chosen.model), resample_baseline(chosen.model, chosen.examples)):
        torch.set_num_threads(threads)
        found = evaluate_without(chosen, [*sets, sets[0]], baseline)
        torch.set_num_threads(1)
        assert list(found) == sets
        for removed, answers in found.items():
            assert same(answers, plainly(chosen, removed, baseline))


@settings(max_examples=15)
@given(st.lists(st.frozensets(st.sampled_from(HEADS)), min_size=1, max_size=4))
def test_any_sets_of_heads_in_any_order(sets: list[Heads]) -> None:
    chosen = SUBJECTS["pre"]
    few = Subject(chosen.model, chosen.examples[slice(0, 5)], {}, chosen.places)
    baseline = zero_baseline(chosen.model)
    found = evaluate_without(few, sets, baseline)
    assert all(same(answers, plainly(few, removed, baseline)) for removed, answers in found.items())


def test_what_comes_before_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = SUBJECTS["pre"]
    computed: list[str] = []
    attend = Attention.attend

    def counting(self: Attention, *words: Tensor, **more: Tensor | None) -> Tensor:
        if len(words[0]) > 1:  # one example alone tells how many go at once
            computed.extend(name for name, module in chosen.model.named_modules() if module is self)
        return attend(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Attention, "attend", counting)
    sets = [frozenset((head,)) for head in ("encoder.1.self.0", "decoder.1.self.1", "decoder.1.cross.2")]
    evaluate_without(chosen, sets, zero_baseline(chosen.model))
    counts = {name: computed.count(name) for name in computed}
    assert counts == {
        "encoder.0.self": 1,
        "encoder.1.self": 1,
        "decoder.0.self": 2,
        "decoder.0.cross": 2,
        "decoder.1.self": 2,
        "decoder.1.cross": 3,
    }


def test_all_that_is_known_may_be_supplied_without_changing_a_bit() -> None:
    chosen, nothing = SUBJECTS["pre"], Baseline("none", {})
    logits, values = run_pass(chosen.model, chosen.examples, {}, {}, nothing)
    assert list(values)[:3] == ["encoder.0.self.z", "encoder.0.self.out", "encoder.0.self_residual.out"]
    for path in ("encoder.0.self", "decoder.0.cross", "decoder.1.cross"):
        known = until(values, path)
        assert list(known)[-1] == f"{path}.z"
        again, seen = run_pass(chosen.model, chosen.examples, known, {}, nothing)
        assert torch.equal(again, logits)
        assert list(seen) == list(values)


@final
class Backwards(Model):
    """Its attentions are computed in the other order than they are named, and one is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.idle, self.last, self.first = (Attention(width=7, heads=2, head_width=3) for _ in range(3))
        self.readout = nn.Linear(7, 5)

    def forward(self, x: Float[Tensor, "B T 7"]) -> Float[Tensor, "B 5"]:
        x = x + self.first(x, x)
        x = x + self.last(x, x)
        return self.readout(x[:, 0])


def test_the_order_of_computation_counts_not_that_of_names() -> None:
    examples = Examples((torch.randn(11, 5, 7),), torch.randint(5, (11,)))
    own = Subject(Backwards(), examples, {}, ["class"])
    names = head_names(own.model)
    assert names == ["idle.0", "idle.1", "last.0", "last.1", "first.0", "first.1"]
    sets = [frozenset(names[start::step]) for start in range(5) for step in (1, 2, 3)]
    for baseline in (zero_baseline(own.model), mean_baseline(own.model, examples)):
        for removed, answers in evaluate_without(own, sets, baseline).items():
            assert same(answers, plainly(own, removed - {"idle.0", "idle.1"}, baseline))


@pytest.fixture(scope="module")
def adder() -> Subject:
    return load_subject(open_run("zoo:adder"), count=101)


SOME = ("encoder.0.self.0", "decoder.0.cross.0", "decoder.1.self.1")


def greedy(adder: Subject, *, cached: bool) -> Int[Tensor, "N T"]:
    assert isinstance(adder.model, Seq2Seq)
    source, given = adder.examples.inputs
    start, length = int(given[0, 0]), given.shape[1]
    return adder.model.greedy(source, start=start, length=length, cached=cached)


def test_greedy_decoding_gets_exactly_these_examples_right(adder: Subject) -> None:
    """With and without cache, towards baselines with and without a value for each place."""
    zero, mean = zero_baseline(adder.model), mean_baseline(adder.model, adder.examples)
    whole, sets = frozenset(SOME), [frozenset((head,)) for head in SOME]
    found = {each.name: evaluate_without(adder, [*sets, whole], each) for each in (zero, mean)}
    for removed in (*sets, whole):
        with masked(adder.model, mask_without(adder.model, removed), zero):
            said = greedy(adder, cached=True)
        assert torch.equal((said == adder.examples.targets).all(dim=1), found["zero"][removed].exact)
        with edit(adder.model, {f"{head.rpartition('.')[0]}.z": _to(mean, head) for head in removed}):
            said = greedy(adder, cached=False)
        assert torch.equal((said == adder.examples.targets).all(dim=1), found["mean"][removed].exact)
    assert not found["mean"][whole].exact.all()


def _to(baseline: Baseline, head: str) -> Edit:
    """Puts the baseline of the places there are in the place of one head."""
    path, _, index = head.rpartition(".")
    own = torch.arange(4) == int(index)
    return lambda z: torch.where(own[:, None, None], baseline.values[path][:, :, : z.shape[2]], z)


def test_the_model_is_left_as_it_was_also_after_an_exception() -> None:
    chosen = SUBJECTS["pre"]
    before = chosen.model(*chosen.examples.inputs)

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        evaluate_without(chosen, [frozenset((HEADS[3],))], zero_baseline(chosen.model), progress=fail)
    assert not any(tap.active or tap.supplied is not None for tap in taps(chosen.model).values())
    assert torch.equal(chosen.model(*chosen.examples.inputs), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_counts_every_pass(threads: int) -> None:
    torch.set_num_threads(threads)
    chosen, told = SUBJECTS["pre"], list[tuple[int, int]]()
    sets = [frozenset((head,)) for head in HEADS[:3]]
    evaluate_without(
        chosen, sets, zero_baseline(chosen.model), progress=lambda done, total: told.append((done, total))
    )
    total = told[-1][1]
    assert told == [(done, total) for done in range(1, total + 1)]
    assert total == 3 * threads  # a part of the examples a thread


def test_an_unknown_head_is_refused() -> None:
    chosen = SUBJECTS["pre"]
    with pytest.raises(LabError, match=r"the model has no head 'encoder.9.self.0'; did you mean 'encoder"):
        evaluate_without(chosen, [frozenset(("encoder.9.self.0",))], zero_baseline(chosen.model))
