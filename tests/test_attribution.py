"""Methods of attribution on models of which the truth is known."""

import math
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from attnlab.analysis.ablate import mask_without, masked, mean_baseline
from attnlab.analysis.explain.asking import input_space, require_sight
from attnlab.analysis.explain.curves import (
    RANDOM,
    advantage,
    area,
    counts_of,
    curves,
    gone,
    order_of,
    random_orders,
)
from attnlab.analysis.explain.methods import (
    ATTENTION,
    HEADS,
    INTEGRATED,
    METHODS,
    OCCLUSION,
    ROLLOUT,
    STEPS,
    agreement,
    completeness_gap,
    gradient_attention,
    head_effects,
    integrated_gradients,
    occlusion,
    raw_attention,
    rho_interval,
    score,
    see,
    shuffled_ranks,
    shuffled_weights,
    spearman,
)
from attnlab.analysis.explain.perturbation import Patches, Question, Tokens, kept_before, make_background
from attnlab.analysis.explain.runs import open_explained
from attnlab.analysis.explain.verdict import explain_many
from attnlab.errors import InputError, LabError
from attnlab.model import Model
from attnlab.models import Classifier, Seq2Seq, build_model
from attnlab.problems.sorting import Sorting
from attnlab.runs import open_run
from attnlab.sets import Examples
from attnlab.specs import PatchSeq2SeqModel, Seq2SeqModel, TokensModel, VitModel
from pointers import LENGTH, SURE, ask, pointer

SUM = Seq2SeqModel(width=6, heads=3, encoder_layers=1, decoder_layers=1, hidden=5)


def drawn_vit() -> tuple[Classifier, Examples]:
    model = build_model(
        VitModel(width=12, heads=3, layers=2, hidden=7, patch=14, pooling="cls"), vocabulary=10
    ).eval()
    return model, Examples((torch.rand(11, 28, 28),), torch.arange(11) % 10)


def drawn_adder() -> tuple[Seq2Seq, Examples]:
    model = build_model(SUM, vocabulary=11).eval()
    source, target = torch.randint(11, (13, 7)), torch.randint(11, (13, 4))
    return model, Examples((source, target), target)


def test_parts_put_back_give_the_logits_of_the_model() -> None:
    vit, images = drawn_vit()
    image = images.inputs[0][:1]
    question = Question(vit, (image,), Patches(14), 3)
    assert torch.equal(question.logits(question.parts[None]), vit(image))
    adder, sums = drawn_adder()
    inputs = tuple(each[:1] for each in sums.inputs)
    question = Question(adder, inputs, Tokens("source_embed"), 3, place=2)
    assert torch.equal(question.logits(question.parts[None]), adder(*inputs)[:, 2])
    chance = adder(*inputs)[0, 2].softmax(dim=0)[3].item()
    assert question.chance(question.parts[None]).item() == pytest.approx(chance)
    assert question.evidence(question.parts[None]).item() == pytest.approx(math.log(chance / (1 - chance)))


def test_a_token_in_front_is_no_part() -> None:
    model = build_model(
        TokensModel(width=12, heads=3, layers=1, pooling="cls"), vocabulary=2, tokens=Sorting.tokens
    ).eval()
    assert input_space(model, (torch.tensor([[3, 5]]),)) == Tokens("embed", 1)
    bare = build_model(
        TokensModel(width=12, heads=3, layers=1, pooling="mean"), vocabulary=2, tokens=Sorting.tokens
    )
    assert input_space(bare, (torch.tensor([[3, 5]]),)) == Tokens("embed", 0)
    numbers = torch.tensor([[3, 5, 5, 9, 8]])
    question = Question(model, (numbers,), Tokens("embed", 1), 1)
    assert question.parts.shape == (5, 12)
    assert torch.equal(question.logits(question.parts[None]), model(numbers))
    assert raw_attention(see(question)).shape == (5,)


def test_integrated_gradients_are_complete() -> None:
    vit, images = drawn_vit()
    question = Question(vit, (images.inputs[0][:1],), Patches(14), 3)
    background = make_background(vit, Patches(14), images)
    scored = score(question, background)
    here, there = question.evidence(torch.stack((question.parts, background.mean(4)))).tolist()
    assert scored.scores[INTEGRATED].sum().item() == pytest.approx(here - there, abs=1e-3)
    assert scored.gap < 1e-3
    assert abs(here - there) > 0.01
    assert set(scored.scores) == set(METHODS)
    assert all(each.shape == (4,) and each.isfinite().all() for each in scored.scores.values())


def test_integrated_gradients_of_a_trained_adder_are_complete_at_64_steps() -> None:
    """Within 0.1 where the evidence moves by about 10; relus bend the way, so 8 steps may miss by 0.5."""
    opened = open_explained(open_run("zoo:adder"))
    mean = opened.background(opened.model).mean(7)
    for text in ("374+814", "999+1", "105+7"):
        for question in opened.read(text).questions.values():
            here, there = question.evidence(torch.stack((question.parts, mean))).tolist()
            found = integrated_gradients(question, mean, steps=64)
            assert found.sum().item() == pytest.approx(here - there, abs=0.1)
            assert completeness_gap(question, mean, found) < 0.1
    hundreds = opened.read("374+814").questions["10^2"]
    assert completeness_gap(hundreds, mean, integrated_gradients(hundreds, mean, steps=8)) > 0.5
    assert STEPS == 64


def test_what_alone_decides_is_found() -> None:
    model, examples = pointer(looks=3, reads=3)
    scores = score(ask(model, examples), make_background(model, Tokens("embed"), examples)).scores
    for name in METHODS:
        assert scores[name].argmax() == 3, name
    for name in (INTEGRATED, OCCLUSION):
        assert scores[name][[0, 1, 2, 4]].abs().max() < 1e-4, name
    assert torch.allclose(scores[ATTENTION], torch.eye(LENGTH)[3])


def test_attention_that_is_not_read_is_not_believed_by_those_who_change_something() -> None:
    model, examples = pointer(looks=1, reads=3)
    scores = score(ask(model, examples), make_background(model, Tokens("embed"), examples)).scores
    assert scores[ATTENTION].argmax() == 1
    assert scores[ROLLOUT].argmax() == 1
    assert scores[HEADS].abs().max() < 1e-5
    for name in (INTEGRATED, OCCLUSION):
        assert scores[name].argmax() == 3, name


@pytest.mark.parametrize(("looks", "answer"), [(3, "yes"), (1, "no")])
def test_the_verdict_follows_the_planted_truth(looks: int, answer: str) -> None:
    model, examples = pointer(looks=looks, reads=3)
    count = 20
    found = explain_many(
        (ask(model, examples, number) for number in range(count)),
        model,
        lambda model: make_background(model, Tokens("embed"), examples),
        count=count,
    )
    assert found.verdicts[ATTENTION].answer == answer
    assert found.verdicts[OCCLUSION].beats_chance == ["zero", "mean", "resample"]
    assert found.sentence.startswith(
        f"Is attention an explanation here? {answer.capitalize()}: raw attention"
    )
    for replacement in ("zero", "mean", "resample"):
        for gain in found.advantage[RANDOM][replacement].values():
            assert abs(gain.value) < 0.2
        assert found.advantage[OCCLUSION][replacement]["deletion"].ends[0] > 0.1
    assert found.random_p > 0.05
    assert "Beware" not in found.sentence
    rho = found.agreement[ATTENTION][OCCLUSION].value
    assert rho == pytest.approx(1 if looks == 3 else -0.25)
    assert abs(found.contrast.value) < 0.5
    above = found.above_contrast[ATTENTION]
    assert above.value == pytest.approx(rho - found.contrast.value)
    low, high = found.contrast.ends  # attention's rho is the same for every input
    assert above.ends == pytest.approx((rho - high, rho - low), abs=0.03)
    assert set(found.above_contrast) == set(METHODS) - {OCCLUSION}
    assert found.inputs == count


def test_every_input_has_shuffled_weights_of_its_own_and_a_random_order_off_chance_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, examples = pointer(looks=3, reads=3)
    seeds = []

    def shuffled(model: Model, *, seed: int) -> Model:
        seeds.append(seed)
        return shuffled_weights(model, seed=seed)

    def planted(size: int, count: int, generator: torch.Generator) -> list[torch.Tensor]:
        return [torch.tensor([3, 0, 1, 2, 4]), *random_orders(size, count - 1, generator)]

    monkeypatch.setattr("attnlab.analysis.explain.verdict.shuffled_weights", shuffled)
    monkeypatch.setattr("attnlab.analysis.explain.curves.random_orders", planted)
    found = explain_many(
        (ask(model, examples, number) for number in range(11)),
        model,
        lambda model: make_background(model, Tokens("embed"), examples),
        count=11,
        seed=7,
    )
    assert seeds == list(range(7, 18))
    assert found.random_p == pytest.approx(6 * 2 / 2**11)  # every gain is above 0, in each of six curves
    assert found.sentence == (
        "Is attention an explanation here? Too few inputs: there are 11, and 95% intervals of fewer than "
        "20 are too narrow to judge by. Warning: a random order does not come out at chance here (p = "
        "0.0059, adjusted for all curves), so advantages over chance are not to be relied on."
    )
    assert {verdict.answer for verdict in found.verdicts.values()} == {"too few inputs"}
    assert found.verdicts[ATTENTION].beats_chance is None


def test_one_input_has_no_interval() -> None:
    model, examples = pointer(looks=3, reads=3)
    with pytest.raises(InputError, match="many is 1; it must be at least 2"):
        explain_many([], model, lambda model: make_background(model, Tokens("embed"), examples), count=1)


def test_curves_by_value_and_chance_half_way() -> None:
    model, examples = pointer(looks=3, reads=3)
    question, background = ask(model, examples), make_background(model, Tokens("embed"), examples)
    full, none = 1 / (1 + 6 * math.exp(-SURE)), 1 / 7
    first, last = torch.tensor([3, 0, 1, 2, 4]), torch.tensor([0, 1, 2, 4, 3])
    deletion = curves(question, [first, last], background, "zero", "deletion")
    insertion = curves(question, [first, last], background, "zero", "insertion")
    assert torch.allclose(deletion[0], torch.tensor([full, *[none] * 5]), atol=1e-4)
    assert torch.allclose(deletion[1], torch.tensor([*[full] * 5, none]), atol=1e-4)
    assert torch.allclose(insertion, full + none - deletion, atol=1e-4)
    assert area(deletion, LENGTH)[0].item() == pytest.approx((full + none) / 10 + 0.8 * none, abs=1e-4)
    every = [torch.tensor(order) for order in permutations(range(LENGTH))]
    chance = area(curves(question, every, background, "zero", "deletion"), LENGTH).mean()
    assert chance.item() == pytest.approx((full + none) / 2, abs=1e-4)
    areas = area(deletion, LENGTH)
    assert torch.allclose(advantage(areas, chance, "deletion"), -advantage(areas, chance, "insertion"))


def test_steps_and_orders() -> None:
    assert counts_of(5) == [0, 1, 2, 3, 4, 5]
    assert counts_of(49)[0] == 0
    assert counts_of(49)[-1] == 49
    assert len(counts_of(49)) == 11
    away = gone([torch.tensor([2, 0, 1])], "deletion")
    assert away.tolist() == [[[False] * 3, [False, False, True], [True, False, True], [True] * 3]]
    assert torch.equal(gone([torch.tensor([2, 0, 1])], "insertion"), ~away)
    generator = torch.Generator().manual_seed(1)
    assert order_of(torch.tensor([0.5, -1.0, 3.0]), generator).tolist() == [2, 0, 1]
    firsts = {int(order_of(torch.zeros(3), generator)[0]) for _ in range(40)}
    assert firsts == {0, 1, 2}  # equal scores come in any order
    assert [sorted(order.tolist()) for order in random_orders(7, 2, generator)] == [list(range(7))] * 2


def test_ranks_agree_with_scipy() -> None:
    a, b = torch.randint(5, (17,)).double(), torch.randint(5, (17,)).double()
    assert spearman(a, b) == pytest.approx(float(spearmanr(a.numpy(), b.numpy()).statistic))
    assert spearman(a, a) == pytest.approx(1)
    assert spearman(a, -a) == pytest.approx(-1)
    assert spearman(a, torch.full((17,), 1 / 17)) == 0
    sizes = agreement({"one": torch.tensor([1.0, -2.0, 3.0]), "two": torch.tensor([-1.0, 2.0, -3.0])})
    assert sizes["one"]["two"] == pytest.approx(1)


def test_the_interval_of_one_rho() -> None:
    low, high = rho_interval(0.5, 49) or (0, 0)
    half = 1.96 * math.sqrt(1.06 / 46)
    assert low == pytest.approx(math.tanh(math.atanh(0.5) - half), abs=1e-4)
    assert high == pytest.approx(math.tanh(math.atanh(0.5) + half), abs=1e-4)
    assert rho_interval(0.5, 4) is None
    assert rho_interval(-1.0, 7) == (-1.0, -1.0)


def test_gradient_attention_by_the_formula() -> None:
    adder, sums = drawn_adder()
    question = Question(adder, tuple(each[:1] for each in sums.inputs), Tokens("source_embed"), 3, place=2)
    seen = see(question)
    weighted = {
        path: (seen.gradients[path] * pattern).clamp(min=0).mean(dim=0)
        for path, pattern in seen.patterns.items()
    }

    def normed(each: torch.Tensor) -> torch.Tensor:
        total = each.sum(dim=1, keepdim=True)
        return torch.eye(len(each)) + torch.where(total > 0, each / total, each)

    expected = normed(weighted["decoder.0.self"]).T @ weighted["decoder.0.cross"]
    expected = expected @ normed(weighted["encoder.0.self"])
    assert torch.allclose(gradient_attention(seen), expected[2])
    assert weighted["decoder.0.cross"][3].abs().sum() == 0  # what is said later changes nothing
    assert expected[2].sum() > 0


def test_what_every_part_has_alike_is_left_out_where_all_tokens_count() -> None:
    model = build_model(
        TokensModel(width=12, heads=3, layers=1, pooling="mean"), vocabulary=2, tokens=Sorting.tokens
    ).eval()
    seen = see(Question(model, (torch.tensor([[3, 5, 5, 9, 8]]),), Tokens("embed"), 1))
    weighted = (seen.gradients["encoder.0.self"] * seen.patterns["encoder.0.self"]).clamp(min=0)
    assert torch.allclose(gradient_attention(seen), weighted.mean(dim=0).mean(dim=0))


def test_effects_of_heads_are_those_of_ablation() -> None:
    adder, sums = drawn_adder()
    question = Question(adder, tuple(each[:1] for each in sums.inputs), Tokens("source_embed"), 3, place=2)
    baseline = mean_baseline(adder, sums)
    effects = head_effects(question, baseline)
    assert len(effects) == 9
    with torch.no_grad():
        whole = question.evidence(question.parts[None]).item()
        with masked(adder, mask_without(adder, ["decoder.0.cross.1"]), baseline):
            without = question.evidence(question.parts[None]).item()
    assert effects["decoder.0.cross.1"] == pytest.approx(whole - without, abs=1e-5)
    assert abs(whole - without) > 1e-4


def test_cells_share_what_they_get_among_their_patches() -> None:
    spec = PatchSeq2SeqModel(
        width=6, heads=3, hidden=5, patch=14, rows=1, columns=3, encoder_layers=1, bridge="cells"
    )
    model = build_model(spec, vocabulary=11).eval()
    inputs = (torch.rand(1, 28, 84), torch.randint(10, (1, 3)))
    question = Question(model, inputs, Patches(14), 3, place=1)
    given = raw_attention(see(question)).view(2, 3, 2)
    assert given.sum().item() == pytest.approx(1)
    assert torch.allclose(given, given.mean(dim=(0, 2), keepdim=True).expand_as(given))


def test_repeating_what_is_left_of_a_list() -> None:
    away = torch.tensor([[0, 0, 1, 1, 0], [1, 1, 0, 0, 1], [1, 1, 1, 1, 1]]).bool()
    assert kept_before(away).tolist() == [[0, 1, 1, 1, 4], [2, 2, 2, 3, 3], [0, 0, 0, 0, 0]]


def test_replacements_by_value() -> None:
    model, examples = pointer(looks=3, reads=3)
    background = make_background(model, Tokens("embed"), examples)
    parts, away = ask(model, examples).parts, torch.tensor([[True, False, False, True, False]])
    for name, expected in (("zero", torch.zeros(LENGTH, 12)), ("mean", background.parts.mean(dim=0))):
        (changed,) = background.replaced(name, parts, away)[0]  # type: ignore[arg-type]
        assert torch.equal(changed[[1, 2, 4]], parts[[1, 2, 4]])
        assert torch.allclose(changed[[0, 3]], expected[[0, 3]])
    drawn = background.replaced("resample", parts, away, draws=3, seed=7)[:, 0]
    assert torch.equal(drawn[:, 1], parts[1].expand(3, -1))
    for each in drawn:  # both parts come from one and the same example
        assert any(torch.equal(each[[0, 3]], other[[0, 3]]) for other in background.parts)
    lists = make_background(model, Tokens("embed"), examples, own=torch.ones(23, LENGTH, dtype=torch.bool))
    assert lists.replacements == ("zero", "mean", "repeat")
    assert torch.equal(lists.replaced("repeat", parts, away)[0, 0], parts[[1, 1, 2, 2, 4]])


def test_an_image_of_one_patch_is_occluded_by_others() -> None:
    model = build_model(VitModel(width=12, heads=3, layers=1, hidden=7, patch=28), vocabulary=10).eval()
    images = Examples((torch.rand(11, 28, 28),), torch.arange(11) % 10)
    background = make_background(model, Patches(28), images)
    assert background.replacements == ("zero", "mean", "resample")
    question = Question(model, (images.inputs[0][:1],), Patches(28), 3)
    (lost,) = occlusion(question, background, draws=5, seed=2).tolist()
    chosen = torch.randint(11, (5,), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        whole = question.evidence(question.parts[None])
        others = question.evidence(background.parts[chosen])
    assert lost == pytest.approx((whole - others.mean()).item(), abs=1e-5)
    assert abs(lost) > 1e-4


def test_only_digits_can_be_said() -> None:
    adder, sums = drawn_adder()
    inputs = tuple(each[:1] for each in sums.inputs)
    question = Question(adder, inputs, Tokens("source_embed"), 3, place=2, classes=10)
    with torch.no_grad():
        chance = adder(*inputs)[0, 2, :10].softmax(dim=0)[3].item()
        assert question.chance(question.parts[None]).item() == pytest.approx(chance)


def test_models_that_look_at_no_part_are_refused() -> None:
    blind = replace(SUM, head_counts=(3, 3, 0))
    with pytest.raises(LabError, match="the decoder has no cross attention left, so its answers are the"):
        require_sight(build_model(blind, vocabulary=11))
    require_sight(build_model(replace(SUM, head_counts=(0, 0, 3)), vocabulary=11))
    spec = PatchSeq2SeqModel(
        width=6, heads=3, hidden=5, patch=14, rows=1, columns=3, encoder_layers=1, bridge="cells"
    )
    require_sight(build_model(spec, vocabulary=11))
    none = replace(spec, head_counts=(0, *[3] * (spec.attentions - 1)))
    with pytest.raises(
        LabError, match="the encoder has no attention left, so what its bridge joins is not"
    ):
        require_sight(build_model(none, vocabulary=11))


def test_shuffled_weights_keep_their_numbers_and_lose_their_order() -> None:
    model = Model()
    model.inner = nn.Linear(11, 7)
    before = model.get_parameter("inner.weight").clone()
    other, again = (shuffled_weights(model, seed=3).get_parameter("inner.weight") for _ in range(2))
    assert torch.equal(model.get_parameter("inner.weight"), before)
    assert not torch.equal(other, before)
    assert torch.equal(other.flatten().sort().values, before.flatten().sort().values)
    assert torch.equal(again, other)


def test_ranks_on_shuffled_weights_are_those_of_the_model_that_is_asked() -> None:
    vit, images = drawn_vit()
    question, background = Question(vit, (images.inputs[0][:1],), Patches(14), 3), make_background
    scored = score(question, background(vit, Patches(14), images))
    same = shuffled_ranks(scored, question, background(vit, Patches(14), images))
    assert same == pytest.approx(dict.fromkeys(METHODS, 1.0))
    other = shuffled_weights(vit, seed=3)
    blank = background(other, Patches(14), images)
    found = shuffled_ranks(scored, question.of(other), blank, seed=5)
    asked = score(question.of(other), blank, seed=5).scores
    assert found == {name: spearman(scored.scores[name].abs(), asked[name].abs()) for name in METHODS}
    assert min(found.values()) < 1
