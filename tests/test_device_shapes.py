"""Every model on torch's device ``meta``, which has shapes and no values: nothing needs the CPU."""

import pytest
import torch
from torch import Tensor

from attnlab.attention import padding_mask
from attnlab.devices import device_of, place
from attnlab.model import Model
from attnlab.specs import SGD, AdamW, Muon, OptimiserSpec
from attnlab.training.measuring import cross_entropy
from attnlab.training.optimisers import WeightAverage, build_optimisers
from every_model import ANSWER, CASES, ROWS, Case

META = torch.device("meta")
OPTIMISERS: list[OptimiserSpec] = [AdamW(), SGD(momentum=0.9), Muon()]


@pytest.fixture(autouse=True)
def _no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an exported graph, nothing is asked about values: there is a mask whether needed or not."""
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)


def there(case: Case) -> tuple[Model, tuple[Tensor, ...]]:
    return place(case.build(), META), tuple(each.to(META) for each in case.inputs())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_step_of_every_model(case: Case) -> None:
    model, inputs = there(case)
    assert device_of(model) == META
    logits = model(*inputs)
    assert logits.shape == case.logits
    assert logits.is_meta
    targets = torch.zeros(logits.shape[:-1], dtype=torch.long, device=META)
    cross_entropy(logits, targets).backward()  # type: ignore[no-untyped-call]
    assert all(
        weight.grad is not None and weight.grad.is_meta
        for weight in model.parameters()
        if weight.requires_grad
    )


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=lambda each: each.kind)
@pytest.mark.parametrize("kind", ["seq2seq", "tokens", "vit", "patch-seq2seq"])
def test_optimisers_and_averages(kind: str, optimiser: OptimiserSpec) -> None:
    model, inputs = there(next(case for case in CASES if case.spec.kind == kind))
    average = WeightAverage(model, 0.9)
    optimisers = build_optimisers(model, optimiser, 0.01)
    model(*inputs).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimisers.step(0.5)
    average.update(1)
    assert device_of(average.model) == META
    remembered = optimisers.tensors()
    assert {value.device for name, value in remembered.items() if not name.endswith(".step")} == {META}
    optimisers.restore({name: torch.zeros(value.shape) for name, value in remembered.items()})
    again = optimisers.tensors()
    assert {name: (value.shape, value.device) for name, value in again.items()} == {
        name: (value.shape, value.device) for name, value in remembered.items()
    }


@pytest.mark.parametrize("case", [case for case in CASES if case.decodes], ids=lambda case: case.name)
def test_greedy_decoding(case: Case) -> None:
    model, (source, _) = there(case)
    said = model.answer(source, start=10, length=ANSWER)
    assert (said.shape, said.device) == ((ROWS, ANSWER), META)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_masks_and_weights_of_tokens(case: Case) -> None:
    model, inputs = there(case)
    mask = model.input_mask(*inputs)
    assert mask is None or mask.is_meta
    if model.sites():
        weights = model.read_weights(*inputs)
        assert (weights.device, weights.dtype, len(weights)) == (META, torch.float32, ROWS)


def test_padding_of_tokens() -> None:
    mask = padding_mask(torch.zeros(3, 5, dtype=torch.long, device=META), 0)
    assert mask is not None
    assert (mask.shape, mask.device) == ((3, 5), META)
