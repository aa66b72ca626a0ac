"""Everything that computes with a model's tensors follows them to a device that is not the CPU."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnlab.devices import place
from attnlab.model import Model
from attnlab.training.measuring import cross_entropy
from every_model import CASES, Case
from pretend import PRETENDED, MisplacedError, There, pretending, strictly


class Faulty(Model):
    """Adds something to its input that is made in one of several wrong ways."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        match self.fault:
            case "created":
                return x * self.weight + torch.eye(3)
            case "created and moved":
                return x * self.weight + torch.eye(3).to(x)
            case "moved away":
                return x * self.weight + x.cpu().sum()
            case "index":
                return (x * self.weight)[torch.tensor([0, 2])]
            case "number":
                return x * self.weight + torch.tensor(2.0)
        return x * self.weight + torch.eye(3, device=x.device)


@pytest.mark.parametrize("fault", ["created", "created and moved", "moved away", "index", "number", ""])
def test_faults_are_found(fault: str) -> None:
    model, x = Faulty(fault), torch.rand(3, 3)
    expected = model(x)
    with pretending() as device:
        place(model, device)
        there = x.to(device)
        if fault:
            with pytest.raises(MisplacedError, match="creates a tensor on the CPU, or moves one"):
                model(there)
        else:
            assert torch.equal(model(there).cpu(), expected)
        assert torch.equal(torch.eye(3), torch.eye(3, device=device).cpu())  # elsewhere it may


def test_devices_are_not_mixed() -> None:
    with pretending() as device:
        here, there = torch.ones(3), torch.ones(3, device=device)
        assert isinstance(there, There)
        assert there.device == PRETENDED
        wrong: list[Callable[[], Tensor]] = [
            lambda: here + there,
            lambda: there[torch.tensor([1])],
            lambda: torch.cat((here, there)),
        ]
        for mixed in wrong:
            with pytest.raises(MisplacedError, match="mixes tensors of two devices"):
                mixed()
        with pytest.raises(MisplacedError, match="numpy takes tensors of the CPU only"):
            there.numpy()
        assert (there + 1).tolist() == [2, 2, 2]
        assert there.sum().item() == 3


def test_a_fault_of_a_backward_pass_is_found() -> None:
    class Careless(torch.autograd.Function):
        @staticmethod
        def forward(context: object, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(context: object, slope: Tensor) -> Tensor:
            return slope * torch.full((3,), 2.0).to(slope)

    with pretending() as device:
        x = torch.ones(3, device=device).requires_grad_()
        made = Careless.apply(x)  # type: ignore[no-untyped-call]
        with pytest.raises(MisplacedError, match="creates a tensor on the CPU"):
            made.sum().backward()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_model_computes_the_same(case: Case) -> None:
    """Logits, gradients and decoded answers, with the same places and dropout."""
    here, there = case.build(), case.build()
    inputs = case.inputs()
    targets = torch.zeros(case.logits[:-1], dtype=torch.long)
    torch.manual_seed(1)
    expected = here(*inputs)
    cross_entropy(expected, targets).backward()  # type: ignore[no-untyped-call]
    with pretending() as device:
        place(there, device)
        moved = [each.to(device) for each in inputs]
        torch.manual_seed(1)
        logits = there(*moved)
        cross_entropy(logits, targets.to(device)).backward()  # type: ignore[no-untyped-call]
        torch.testing.assert_close(logits.detach().cpu(), expected.detach())
        for (name, mine), yours in zip(here.named_parameters(), there.parameters(), strict=True):
            assert (yours.grad is None) == (mine.grad is None), name
            if mine.grad is not None and yours.grad is not None:
                torch.testing.assert_close(yours.grad.cpu(), mine.grad, atol=1e-5, rtol=1e-4)
        if case.decodes:
            with strictly():
                said = there.eval().answer(moved[0], start=10, length=5)
            assert torch.equal(said.cpu(), here.eval().answer(inputs[0], start=10, length=5))
        if here.sites():
            with strictly():
                weights = there.eval().read_weights(*moved)
            assert weights.device == device
            torch.testing.assert_close(weights.cpu(), here.eval().read_weights(*inputs))
