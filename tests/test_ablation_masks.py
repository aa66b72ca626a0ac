"""Masks and baselines: what stands in a head's place, to the last bit."""

from typing import final

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlab.analysis.ablate.baselines import (
    Baseline,
    head_names,
    mask_without,
    masked,
    mean_baseline,
    optimal_baseline,
    others,
    recorded_z,
    resample_baseline,
    zero_baseline,
)
from attnlab.analysis.subjects import judge
from attnlab.attention import Attention
from attnlab.errors import InputError, LabError
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions, build_model
from attnlab.problems.addition import Addition
from attnlab.sets import Examples, shifted
from attnlab.specs import Learned, Seq2SeqModel
from attnlab.taps import edit, record, taps
from twins import randomise

TASK = Addition(digits=2, train=31, valid=7, test=5)
N, H = 31, 3


@pytest.fixture(scope="module")
def model() -> Model:
    """Random weights everywhere, biases too."""
    torch.manual_seed(0)
    spec = Seq2SeqModel(
        width=15, heads=H, hidden=11, encoder_layers=1, decoder_layers=1, positions=Learned(length=5)
    )
    found = build_model(spec, vocabulary=TASK.vocabulary)
    randomise(found)
    return found.eval()


@pytest.fixture(scope="module")
def examples() -> Examples:
    return TASK.examples(torch.randint(100, (N, 2), generator=torch.Generator().manual_seed(1)))


@pytest.fixture(scope="module")
def baselines(model: Model, examples: Examples) -> list[Baseline]:
    return [
        zero_baseline(model),
        mean_baseline(model, examples),
        resample_baseline(model, examples),
        optimal_baseline(model, examples, steps=10),
    ]


def quiet(model: Model) -> bool:
    return not any(tap.active or tap.supplied is not None for tap in taps(model).values())


def test_a_mask_of_one_changes_no_bit(model: Model, examples: Examples, baselines: list[Baseline]) -> None:
    logits = model(*examples.inputs)
    for baseline in baselines:
        whole = mask_without(model, [])
        gates = {path: mask.clone().requires_grad_() for path, mask in whole.items()}
        for mask in (whole, gates, {path: kept.expand(N, H) for path, kept in gates.items()}):
            with masked(model, mask, baseline):
                assert torch.equal(model(*examples.inputs), logits)


def test_a_mask_of_zero_is_the_baseline_and_others_stay(
    model: Model, examples: Examples, baselines: list[Baseline]
) -> None:
    z = recorded_z(model, examples)
    for baseline in baselines:
        for path in ("encoder.0.self", "decoder.0.self"):  # what comes first does not change what follows
            with (
                masked(model, mask_without(model, [f"{path}.1"]), baseline),
                record(model, f"{path}.z") as seen,
            ):
                model(*examples.inputs)
            after = seen[f"{path}.z"]
            assert torch.equal(after[:, 1], baseline.values[path].expand_as(after)[:, 1])
            assert torch.equal(after[:, [0, 2]], z[path][:, [0, 2]])


def test_a_mask_between_moves_so_far(model: Model, examples: Examples) -> None:
    mean, z, path = mean_baseline(model, examples), recorded_z(model, examples), "encoder.0.self"
    kept = torch.rand(N, H)
    with masked(model, {path: kept}, mean), record(model, f"{path}.z") as seen:
        model(*examples.inputs)
    m = kept[:, :, None, None]
    torch.testing.assert_close(seen[f"{path}.z"], m * z[path] + (1 - m) * mean.values[path])


def test_gradients_reach_mask_and_baseline(model: Model, examples: Examples) -> None:
    mean, path = mean_baseline(model, examples), "decoder.0.cross"
    kept, value = torch.full((H,), 0.3, requires_grad=True), mean.values[path].clone().requires_grad_()
    with masked(model, {path: kept}, Baseline("mine", {path: value})):
        loss = judge(model(*examples.inputs), examples.targets).loss.sum()
    for gradient in torch.autograd.grad(loss, (kept, value)):
        assert (gradient.flatten() != 0).all()


def test_the_mean_is_that_of_z(model: Model, examples: Examples) -> None:
    z = recorded_z(model, examples)
    by_place, flat = (mean_baseline(model, examples, by_place=by).values for by in (True, False))
    assert list(z) == list(by_place) == list(attentions(model))
    for path, value in z.items():
        torch.testing.assert_close(by_place[path], value.mean(dim=0, keepdim=True))
        torch.testing.assert_close(flat[path], value.mean(dim=(0, 2), keepdim=True))


def test_a_mean_of_many_batches_is_one_mean(
    model: Model, examples: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mean_baseline(model, examples)
    moved = resample_baseline(model, examples)
    monkeypatch.setattr("attnlab.analysis.subjects.BATCH", 7)
    for path, value in mean_baseline(model, examples).values.items():
        torch.testing.assert_close(value, whole.values[path])
    for path, value in resample_baseline(model, examples).values.items():
        torch.testing.assert_close(value, moved.values[path])


def test_resampling_gives_everybody_another_one(model: Model, examples: Examples) -> None:
    source = others(N, seed=5)
    assert sorted(source.tolist()) == list(range(N))
    assert not (source == torch.arange(N)).any()
    assert torch.equal(source, others(N, seed=5))
    assert not torch.equal(source, others(N, seed=6))
    z = recorded_z(model, examples)
    found = resample_baseline(model, examples, seed=5)
    for path, value in found.values.items():
        assert torch.equal(value, z[path][source])
        assert torch.equal(found.rows(slice(2, 9)).values[path], value[2:9])
    zero = zero_baseline(model)
    assert zero.rows(slice(2, 9)).values == zero.values


def test_the_optimal_constant_is_one_vector_a_head_and_better_than_zero_and_mean(
    model: Model, examples: Examples, baselines: list[Baseline]
) -> None:
    options = {
        "zero": zero_baseline(model),
        "mean": mean_baseline(model, examples, by_place=False),
        "optimal": baselines[-1],
    }
    assert [value.shape for value in baselines[-1].values.values()] == [(1, H, 1, 5)] * 3
    for head in head_names(model):
        loss = {}
        for name, baseline in options.items():
            with masked(model, mask_without(model, [head]), baseline), torch.no_grad():
                loss[name] = judge(model(*examples.inputs), examples.targets).loss.mean().item()
        assert loss["optimal"] < min(loss["zero"], loss["mean"])


@final
class Speaker(Model):
    """A head whose z is all that the model says."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = Attention(width=5, heads=1, head_width=5, output=nn.Identity())

    def forward(self, x: Float[Tensor, "B T 5"]) -> Float[Tensor, "B 5"]:
        return self.talk(x, x)[:, -1]


def test_the_optimal_constant_of_a_head_that_says_all_are_the_frequencies() -> None:
    """A constant can do no better than say how often each class comes: its loss is their entropy."""
    model, targets = Speaker(), torch.randint(31, (499,)).div(2, rounding_mode="floor").sqrt().long()
    examples = Examples((torch.randn(499, 3, 5),), targets)
    with masked(model, mask_without(model, ["talk.0"]), optimal_baseline(model, examples)), torch.no_grad():
        loss = judge(model(*examples.inputs), targets).loss.mean().item()
    shares = targets.bincount() / len(targets)
    assert len(shares) == 4
    entropy = -(shares * shares.log()).sum().item()
    assert entropy <= loss < entropy + 0.01
    once, twice = (optimal_baseline(model, examples, steps=3).values["talk"] for _ in range(2))
    assert torch.equal(once, twice)


def test_contributions_of_heads_and_bias_sum_to_the_output(model: Model, examples: Examples) -> None:
    with record(model, "*.z", "*.out") as seen, torch.no_grad():
        model(*examples.inputs)
    for path, attention in attentions(model).items():
        assert isinstance(attention, Attention)
        total: Tensor = attention.output.get_parameter("bias")
        for index, z in enumerate(seen[f"{path}.z"].unbind(dim=1)):
            own = slice(index * attention.head_width, (index + 1) * attention.head_width)
            total = total + z @ attention.output.get_parameter("weight")[:, own].T
        torch.testing.assert_close(total, seen[f"{path}.out"])


def test_an_identity_edit_changes_nothing(model: Model, examples: Examples) -> None:
    logits = model(*examples.inputs)
    with edit(model, {"*.z": lambda z: z, "*.out": lambda out: out}):
        assert torch.equal(model(*examples.inputs), logits)


def test_the_model_is_left_as_it_was_also_after_an_exception(
    model: Model, examples: Examples, baselines: list[Baseline]
) -> None:
    def fail() -> None:
        assert not quiet(model)
        raise ZeroDivisionError

    weights = {name: value.clone() for name, value in model.state_dict().items()}
    logits = model(*examples.inputs)
    with (
        pytest.raises(ZeroDivisionError),
        masked(model, mask_without(model, head_names(model)), baselines[0]),
    ):
        fail()
    assert quiet(model)
    assert torch.equal(model(*examples.inputs), logits)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


REFUSED: list[tuple[dict[str, Tensor], str]] = [
    ({"encoder.0.slef": torch.ones(3)}, "the model has no attention 'encoder.0.slef'; did you mean"),
    ({"encoder.0.self": torch.zeros(2)}, "the mask of encoder.0.self has 2 values for 3 heads"),
    (
        {"encoder.0.self": torch.tensor([1, 2.0, 1])},
        r"is \[1.0, 2.0, 1.0\], but it must lie between 0 and 1",
    ),
]


@pytest.mark.parametrize(("mask", "text"), REFUSED)
def test_masks_that_do_not_fit_are_refused(model: Model, mask: dict[str, Tensor], text: str) -> None:
    with pytest.raises(LabError, match=text), masked(model, mask, zero_baseline(model)):
        pass


def test_a_baseline_without_the_attention_is_refused(model: Model) -> None:
    mask = mask_without(model, ["encoder.0.self.1"])
    with (
        pytest.raises(LabError, match=r"the baseline mine has no value for encoder.0.self"),
        masked(model, mask, Baseline("mine", {})),
    ):
        pass


def test_baselines_that_do_not_fit_are_refused(model: Model, examples: Examples) -> None:
    """Each place takes its own value, also while decoding token by token; beyond the last there is none."""
    assert isinstance(model, Seq2Seq)
    mean, source = mean_baseline(model, examples), examples.inputs[0]
    with masked(model, mask_without(model, ["decoder.0.self.1"]), mean):
        said = model.greedy(source, start=TASK.start, length=TASK.target_length)
        assert torch.equal(model(source, shifted(said, TASK.start)).argmax(dim=-1), said)
        with pytest.raises(
            LabError, match=r"mean of decoder.0.self has the shape \(1, 3, 4, 5\), which does not fit"
        ):
            model.greedy(source, start=TASK.start, length=TASK.target_length + 1)


def test_heads_that_are_not_there_are_refused(model: Model) -> None:
    with pytest.raises(LabError, match=r"no head 'decoder.0.cross.9'; did you mean 'decoder.0"):
        mask_without(model, ["decoder.0.cross.9"])


def test_too_few_examples_are_refused(model: Model, examples: Examples) -> None:
    with pytest.raises(InputError, match="there is 1 example; to resample, there must be at least 2"):
        resample_baseline(model, examples[slice(0, 1)])
    with pytest.raises(InputError, match="there are no examples to look at; give at least 1"):
        mean_baseline(model, examples[slice(0, 0)])
