from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import nn

from attnlab.analysis.ablate import mean_baseline
from attnlab.analysis.choices import check_pruned
from attnlab.analysis.evaluate import evaluate_run
from attnlab.analysis.prune.cutting import Material, OwnSurgery, cut
from attnlab.analysis.prune.elimination import (
    Elimination,
    check_heads_kept,
    eliminate_all,
    eliminate_refitted,
    load_material,
)
from attnlab.analysis.prune.refit import refit, residuals, streams
from attnlab.analysis.prune.runs import PruningResult, begin_pruned_run, describe_pruning
from attnlab.analysis.subjects import score, subject_of
from attnlab.attention import Attention
from attnlab.errors import InputError, LabError
from attnlab.models import attentions, build_model, heads
from attnlab.notation import parse_head
from attnlab.problems.digits import Digits
from attnlab.runs import RunFolder, create_run, load_model, open_run, save_weights
from attnlab.specs import MLPModel, Seq2SeqModel, Sinusoidal, Spec
from attnlab.taps import taps
from attnlab.training import train_run
from planted import ACTIVE, ALIGN, CARRY, SPEC, planted, planted_run

pytestmark = pytest.mark.slow


def material(*, carries: bool) -> Material:
    task, model = planted(carries=carries)
    train, valid, _ = task.split_pairs(SPEC.seed)
    return Material(
        OwnSurgery(SPEC), subject_of(task, model, task.examples(valid[:97])), task.examples(train[:199])
    )


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return planted_run(tmp_path_factory.mktemp("pruning") / "parent", carries=True)


@pytest.fixture(scope="module")
def found(parent: RunFolder) -> Elimination:
    return eliminate_all(load_material(parent, examples=97), repair="mean")


@pytest.mark.parametrize(("carries", "method"), [(False, "greedy"), (True, "gates")])
def test_heads_that_do_nothing_go_first(carries: bool, method: Literal["greedy", "gates"]) -> None:
    given = material(carries=carries)
    found = eliminate_all(given, method=method, repair="mean")
    idle = len(found.order) - len(ACTIVE[carries])
    assert set(found.order[idle:]) == ACTIVE[carries]
    whole = found.answers[0].exact
    for answers in found.answers[: idle + 1]:
        assert torch.equal(answers.exact, whole)
    assert float(found.answers[idle + 1].exact.double().mean()) < float(whole.double().mean())
    kept = found.fewest(0.01)
    assert kept == len(ACTIVE[carries])
    pruned = found.pruned(kept)
    assert pruned.difference <= 1e-5
    assert len(heads(pruned.model)) == kept
    assert torch.equal(score(pruned.model, given.subject.examples).exact, whole)


def test_refitted_models_keep_heads_that_nothing_makes_up_for() -> None:
    """Values chosen anew find a token where it stands first, without COPY; where to look is not chosen."""
    given = material(carries=True)
    before = {name: value.clone() for name, value in given.model.state_dict().items()}
    found = eliminate_all(given, method="greedy", repair="refit")
    kept = found.fewest(0.01)
    assert kept <= len(ACTIVE[True])
    assert {ALIGN, CARRY} <= set(found.order[-kept:])
    pruned = found.pruned(kept)
    assert score(pruned.model, given.subject.examples).exact.all()
    assert pruned.difference <= 1e-5
    # The model itself stays as it was.
    assert all(torch.equal(before[name], value) for name, value in given.model.state_dict().items())
    assert not any(tap.active or tap.supplied is not None for tap in taps(given.model).values())


def test_frequencies_are_the_same_after_any_number_of_cuts() -> None:
    """Rounding them to single precision would move logits of a post-norm model by far more than 1e-12."""
    spec = Seq2SeqModel(width=20, heads=2, encoder_layers=1, decoder_layers=1, hidden=12, norm="post")
    assert isinstance(spec.positions, Sinusoidal)
    task, _ = planted(carries=False)
    torch.manual_seed(0)
    model = build_model(spec, vocabulary=task.vocabulary).eval()
    train, valid, _ = task.split_pairs(SPEC.seed)
    subject = subject_of(task, model, task.examples(valid[:31]))
    given = Material(OwnSurgery(Spec(task=task, model=spec)), subject, task.examples(train[:199]))
    (*_, (_, _, last)) = eliminate_refitted(given)
    assert last is not None
    assert len(last.removed) == 6
    assert last.difference <= 1e-12
    before, after = (dict(each.named_buffers()) for each in (model, last.model))
    assert all(torch.equal(before[name], buffer) for name, buffer in after.items())


def test_refitting_a_whole_model_changes_no_stream() -> None:
    given = material(carries=True)
    wanted = streams(given.model, given.train)
    assert list(wanted) == list(residuals(given.model))
    again = cut(given, [], mean_baseline(given.model, given.train, by_place=False))
    refit(again.model, given.train, wanted)
    for name, stream in streams(again.model, given.train).items():
        assert torch.allclose(stream, wanted[name], atol=1e-4), name


def test_refitting_makes_up_for_a_head_that_another_repeats() -> None:
    """Two heads with the same z and half of the output each: without one, the other can do it all."""
    given = material(carries=False)
    active, idle = parse_head("decoder.0.cross.2"), parse_head("decoder.0.cross.0")
    attention = attentions(given.model)[active.attention]
    assert isinstance(attention, Attention)
    assert isinstance(attention.output, nn.Linear)
    with torch.no_grad():
        for part in (attention.query, attention.key, attention.value):
            part.weight[:14] = part.weight[28:]
            part.bias[:14] = part.bias[28:]
        attention.output.weight[:, 28:] /= 2
        attention.output.weight[:, :14] = attention.output.weight[:, 28:]
    whole = score(given.model, given.subject.examples)
    assert whole.exact.any()
    wanted = streams(given.model, given.train)
    for head in (active, idle):
        halved = cut(given, [str(head)], mean_baseline(given.model, given.train, by_place=False))
        assert not torch.equal(score(halved.model, given.subject.examples).exact, whole.exact)
        refit(halved.model, given.train, wanted)
        assert torch.equal(score(halved.model, given.subject.examples).exact, whole.exact)


def test_a_pruned_run_is_an_ordinary_run(tmp_path: Path, parent: RunFolder, found: Elimination) -> None:
    pruned = found.pruned(4)
    child = begin_pruned_run(parent, pruned, tmp_path / "child")
    summary = train_run(child)
    assert summary is not None
    assert summary["steps"] == 0
    assert [record.event for record in child.metrics().lines] == ["epoch"]
    model = load_model(child)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), pruned.model.parameters(), strict=True)
    )
    assert evaluate_run(child).exact_match == 1.0
    told = describe_pruning(parent, child, found, pruned, finetune=0)
    assert told.test.after.exact_match == told.test.before.exact_match == 1.0
    assert set(told.kept) == ACTIVE[True]
    assert len(told.removed) + len(told.kept) == told.heads == 18
    cost = told.cost
    width, head_width, gone = 42, 14, 14
    weights = gone * (4 * width * head_width + 3 * head_width)
    assert cost.before.parameters - cost.after.parameters == weights
    assert cost.after.multiply_adds < cost.before.multiply_adds
    assert child.kept("prune", PruningResult) == told


def test_a_pruned_run_learns_on_and_can_be_stopped(
    tmp_path: Path, parent: RunFolder, found: Elimination
) -> None:
    ends = []
    for name, stops in (("whole", ()), ("stopped", (1, 2))):
        child = begin_pruned_run(parent, found.pruned(1), tmp_path / name, finetune=5)
        for count in stops:
            asked = iter([False] * count + [True])
            assert train_run(child, stopping=asked.__next__) is None
        summary = train_run(open_run(str(tmp_path / name)))
        assert summary is not None
        assert summary["steps"] == 5
        ends.append(child.file("last.safetensors").read_bytes())
        assert child.file("best.safetensors").exists()
    assert ends[0] == ends[1]


def test_weights_that_are_not_those_of_the_spec(
    tmp_path: Path, parent: RunFolder, found: Elimination
) -> None:
    child = begin_pruned_run(parent, found.pruned(2), tmp_path / "child")
    other = begin_pruned_run(parent, found.pruned(3), tmp_path / "other")
    child.write({"start.safetensors": other.read("start.safetensors")})
    with pytest.raises(LabError, match="other weights than the spec names"):
        train_run(child)


def test_the_fewest_heads_come_before_the_first_fall(found: Elimination) -> None:
    given = found.material
    worse = [answers for answers in found.answers if not torch.equal(answers.exact, found.answers[0].exact)]
    # A lucky set behind a fall does not count.
    order = [found.answers[0], worse[0], *found.answers[2:]]
    lucky = Elimination(given, "greedy", "mean", found.order, order, found.baseline, {})
    assert lucky.fewest(0.01) == lucky.heads


def test_choices_that_cannot_be_made(tmp_path: Path, parent: RunFolder) -> None:
    run = parent
    assert [check_heads_kept(run.model, run.name, keep) for keep in (0, None)] == [18, 18]
    for keep, loss in ((None, None), (3, 0.01)):
        with pytest.raises(InputError, match="give either keep, how many heads to keep, or loss, how much"):
            check_pruned(keep, loss)
    with pytest.raises(InputError, match=r"loss is 1\.5; it must lie between 0 and 1"):
        check_pruned(None, 1.5)
    with pytest.raises(InputError, match="finetune is -1; it must be at least 0"):
        check_pruned(3, None, -1)
    with pytest.raises(LabError, match=r"keep is 99, but .* has 18 heads"):
        check_heads_kept(run.model, run.name, 99)
    plain = create_run(tmp_path / "plain", Spec(task=Digits(), model=MLPModel(hidden=3)))
    save_weights(plain, "best", build_model(MLPModel(hidden=3), vocabulary=10).state_dict())
    with pytest.raises(LabError, match="has no attention"):
        check_heads_kept(plain.model, plain.name, 1)
