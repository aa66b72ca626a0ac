from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.models import Seq2Seq, build_model
from attnlab.models.vit import ConvStem
from attnlab.specs import SGD, AdamW, Learned, Muon, OptimiserSpec, Seq2SeqModel
from attnlab.training.optimisers import Optimisers, StackedMuon, build_optimisers, hidden_matrices

EVERY: list[OptimiserSpec] = [
    AdamW(weight_decay=0.1),
    SGD(),
    SGD(momentum=0.9, weight_decay=0.1),
    Muon(weight_decay=0.1, rest=0.5),
]
every_optimiser = pytest.mark.parametrize("spec", EVERY, ids=["adamw", "sgd", "momentum", "muon"])


def make() -> Seq2Seq:
    spec = Seq2SeqModel(
        width=6, heads=3, hidden=5, encoder_layers=1, decoder_layers=1, positions=Learned(length=7)
    )
    return build_model(spec, vocabulary=11)


def names(model: nn.Module, part: torch.optim.Optimizer) -> list[str]:
    by_id = {id(parameter): name for name, parameter in model.named_parameters()}
    return [by_id[id(p)] for group in part.param_groups for p in group["params"]]


def walk(model: nn.Module, optimisers: Optimisers, steps: range) -> None:
    """Steps with gradients that are a function of the step's number and lie as their weights do."""
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        for parameter in model.parameters():
            slope = torch.randn(parameter.shape, generator=generator)
            parameter.grad = torch.empty_like(parameter).copy_(slope)
        optimisers.step(1 / (1 + step))


def copies(tensors: dict[str, Any]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in tensors.items()}


@every_optimiser
def test_every_parameter_exactly_once(spec: OptimiserSpec) -> None:
    model = make()
    found = [name for part in build_optimisers(model, spec, 0.1).parts for name in names(model, part)]
    assert sorted(found) == sorted(name for name, _ in model.named_parameters())


def test_muon_gets_exactly_the_hidden_matrices() -> None:
    model = make()
    muon, adamw = build_optimisers(model, Muon(), 0.1).parts
    projections = [f"{side}.weight" for side in ("query", "key", "value", "output")]
    feed = ["feed.up.weight", "feed.down.weight"]
    expected = [f"encoder.0.self.{p}" for p in projections] + [f"encoder.0.{f}" for f in feed]
    expected += [f"decoder.0.{kind}.{p}" for kind in ("self", "cross") for p in projections]
    expected += [f"decoder.0.{f}" for f in feed]
    assert isinstance(muon, StackedMuon)
    assert isinstance(adamw, torch.optim.AdamW)
    assert sorted(names(model, muon)) == sorted(expected)
    rest = names(model, adamw)
    for name in (
        "source_embed.weight",
        "target_positions.add.table",
        "readout.weight",
        "encoder_norm.bias",
    ):
        assert name in rest
    assert len(hidden_matrices(model)) == len(expected) == 16


def torchs_muon(weights: list[nn.Parameter]) -> torch.optim.Muon:
    return torch.optim.Muon(weights, lr=0.1, momentum=0.9, weight_decay=0.3, adjust_lr_fn="match_rms_adamw")


def our_muon(weights: list[nn.Parameter]) -> StackedMuon:
    return StackedMuon(weights, lr=0.1, momentum=0.9, weight_decay=0.3)


def muon_walk(
    build: Callable[[list[nn.Parameter]], torch.optim.Optimizer], first: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Weights and momenta after four steps, as matrices; slopes are functions of the step's number."""
    weights = [nn.Parameter(each.clone()) for each in first]
    muon = build(weights)
    for step in range(4):
        generator = torch.Generator().manual_seed(step)
        for weight in weights:
            slope = torch.randn(weight.numel(), generator=generator).view(weight.shape)
            weight.grad = torch.empty_like(weight).copy_(slope)
        muon.step()
    momenta = [muon.state[each]["momentum_buffer"] for each in weights]
    return [each.detach().flatten(1) for each in weights], [each.flatten(1) for each in momenta]


def test_muon_steps_as_torchs_own_does() -> None:
    """Matrices of several shapes, wide and tall, some of them alone with theirs: every bit is the same."""
    shapes = [(7, 13), (13, 7), (7, 13), (11, 11), (11, 11), (5, 3), (64, 64), (64, 256), (256, 64)]
    torch.manual_seed(0)
    first = [torch.randn(shape) for shape in shapes]
    for ours, theirs in zip(muon_walk(our_muon, first), muon_walk(torchs_muon, first), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_muon_takes_kernels_for_matrices(layout: torch.memory_format) -> None:
    """From all that a filter sees to its output channels, however they lie in memory; wide and tall."""
    torch.manual_seed(0)
    kernels = [torch.randn(5, 3, 3, 2), torch.randn(17, 2, 1, 3), torch.randn(5, 3, 3, 2)]
    ours = muon_walk(our_muon, [each.contiguous(memory_format=layout) for each in kernels])
    theirs = muon_walk(torchs_muon, [each.flatten(1) for each in kernels])
    for mine, reference in zip(ours, theirs, strict=True):
        for one, other in zip(mine, reference, strict=True):
            assert torch.equal(one, other)


def test_muon_gets_kernels_between_channels_and_not_those_over_pixels() -> None:
    stem = ConvStem(patch=4, width=8)
    kernels = [each for each in stem.parameters() if each.ndim == 4]
    assert [id(each) for each in hidden_matrices(stem)] == [id(each) for each in kernels[1:]]
    assert len(kernels) >= 3


@pytest.mark.parametrize("spec", [AdamW(), SGD(momentum=0.9)], ids=["adamw", "momentum"])
def test_restored_memory_lies_as_its_weight_does(spec: OptimiserSpec) -> None:
    """Weights of convolutions have their channels last, files do not; fused kernels walk through memory."""
    walked = []
    for stopped in (False, True):
        torch.manual_seed(0)
        model = nn.Conv2d(3, 5, 3)
        model.weight.data = model.weight.data.contiguous(memory_format=torch.channels_last)
        optimisers = build_optimisers(model, spec, 0.1)
        walk(model, optimisers, range(2))
        if stopped:
            kept = {name: value.contiguous() for name, value in copies(optimisers.tensors()).items()}
            optimisers = build_optimisers(model, spec, 0.1)
            optimisers.restore(kept)
        walk(model, optimisers, range(2, 4))
        walked.append(model.weight)
    assert torch.equal(*walked)


@every_optimiser
def test_restored_optimiser_goes_on_bit_by_bit(spec: OptimiserSpec) -> None:
    model = make()
    optimisers = build_optimisers(model, spec, 0.1)
    walk(model, optimisers, range(3))
    weights, memory = copies(model.state_dict()), copies(optimisers.tensors())
    walk(model, optimisers, range(3, 6))

    again = make()
    again.load_state_dict(weights)
    fresh = build_optimisers(again, spec, 0.1)
    fresh.restore(memory)
    assert fresh.tensors().keys() == memory.keys()
    walk(again, fresh, range(3, 6))
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    for name, value in optimisers.tensors().items():
        assert torch.equal(fresh.tensors()[name], value), name


@pytest.mark.parametrize("spec", [EVERY[0], EVERY[2], EVERY[3]], ids=["adamw", "momentum", "muon"])
def test_memory_matters(spec: OptimiserSpec) -> None:
    """Without what was remembered the walk goes elsewhere, so the test above tests something."""
    model = make()
    optimisers = build_optimisers(model, spec, 0.1)
    walk(model, optimisers, range(3))
    again = make()
    again.load_state_dict(copies(model.state_dict()))
    walk(model, optimisers, range(3, 6))
    walk(again, build_optimisers(again, spec, 0.1), range(3, 6))
    assert not torch.equal(again.readout.weight, model.readout.weight)


def test_what_is_remembered() -> None:
    model = nn.Linear(3, 2)
    assert build_optimisers(model, AdamW(), 0.1).tensors() == {}
    for spec, kept in (
        (AdamW(), {"step", "exp_avg", "exp_avg_sq"}),
        (SGD(momentum=0.9), {"momentum_buffer"}),
        (SGD(), set()),
    ):
        optimisers = build_optimisers(model, spec, 0.1)
        walk(model, optimisers, range(1))
        assert set(optimisers.tensors()) == {f"0.{index}.{key}" for index in (0, 1) for key in kept}


def test_factor_multiplies_the_learning_rate() -> None:
    model = nn.Linear(3, 2)
    optimisers = build_optimisers(model, SGD(), 0.5)
    before = model.weight.detach().clone()
    for factor, total in ((0.1, 0.05), (2.0, 1.05), (0.0, 1.05)):
        model.weight.grad = torch.ones(2, 3)
        model.bias.grad = torch.zeros(2)
        optimisers.step(factor)
        torch.testing.assert_close(model.weight.detach(), before - total)
        assert model.weight.grad is None


def test_rest_multiplies_the_rate_of_what_muon_does_not_train() -> None:
    model = make()
    optimisers = build_optimisers(model, Muon(rest=0.25), 0.5)
    walk(model, optimisers, range(1, 2))
    assert [part.param_groups[0]["lr"] for part in optimisers.parts] == [0.25, 0.0625]


def test_first_step_of_adamw() -> None:
    """Adam's first step is lr in the gradient's direction, after decay has shrunk the weights."""
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    optimisers = build_optimisers(model, AdamW(weight_decay=0.1), 0.01)
    model.weight.grad = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
    optimisers.step(1.0)
    expected = before * (1 - 0.01 * 0.1) - 0.01 * torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
    torch.testing.assert_close(model.weight.detach(), expected)


def test_settings_reach_torch() -> None:
    model = make()
    adamw = build_optimisers(model, AdamW(beta1=0.7, beta2=0.8, weight_decay=0.3), 0.1).parts[0]
    sgd = build_optimisers(model, SGD(momentum=0.7, weight_decay=0.3), 0.1).parts[0]
    spec = Muon(momentum=0.7, weight_decay=0.3, beta1=0.5, beta2=0.6)
    muon, rest = build_optimisers(model, spec, 0.1).parts
    assert (adamw.defaults["betas"], adamw.defaults["weight_decay"]) == ((0.7, 0.8), 0.3)
    assert (sgd.defaults["momentum"], sgd.defaults["weight_decay"]) == (0.7, 0.3)
    assert (muon.defaults["momentum"], muon.defaults["weight_decay"]) == (0.7, 0.3)
    assert (rest.defaults["betas"], rest.defaults["weight_decay"]) == ((0.5, 0.6), 0.0)
