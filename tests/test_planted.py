"""The planted models do what their description says; all tests that use them rest on this."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnlab.analysis.subjects import judge
from attnlab.model import Model
from attnlab.models import heads
from attnlab.runs import load_model
from attnlab.taps import Edit, edit, record
from planted import ACTIVE, ALIGN, CARRY, COPY, OWN, READ, SOURCE, planted, planted_module, planted_run

PAIRS = torch.cartesian_prod(torch.arange(100), torch.arange(100))


def exact(model: Model, inputs: tuple[Tensor, ...], targets: Tensor, *without: str) -> Tensor:
    """Which examples are right with the z of some heads set to zero."""
    with torch.no_grad(), edit(model, {f"{name.rpartition('.')[0]}.z": _zero(name) for name in without}):
        return judge(model(*inputs), targets).exact


def _zero(name: str) -> Edit:
    index = int(name.rpartition(".")[2])
    return lambda z: z.index_fill(1, torch.tensor([index]), 0)


def test_without_carries_exactly_the_sums_in_which_no_column_sends_a_carry_are_right() -> None:
    task, model = planted()
    examples = task.examples(PAIRS)
    carryless = ~task.carries(PAIRS).any(dim=1)
    assert carryless.sum() == 55**2
    assert torch.equal(exact(model, examples.inputs, examples.targets), carryless)
    for name in (COPY, ALIGN):
        assert torch.equal(exact(model, examples.inputs, examples.targets, name), PAIRS.sum(dim=1) == 0)


def test_with_carries_every_sum_is_right_and_carry_and_own_bring_the_carry() -> None:
    task, model = planted(carries=True)
    examples = task.examples(PAIRS)
    assert exact(model, examples.inputs, examples.targets).all()
    answers = model.greedy(examples.inputs[0], start=task.start, length=task.target_length)
    assert torch.equal(answers, examples.targets)
    without = exact(model, examples.inputs, examples.targets, CARRY, OWN)
    assert torch.equal(without, task.chains(PAIRS) == 0)
    for name in ACTIVE[True]:
        assert exact(model, examples.inputs, examples.targets, name).float().mean() < 0.5


@pytest.mark.parametrize("carries", [False, True])
def test_the_other_heads_change_no_bit_of_the_logits(carries: bool) -> None:
    task, model = planted(carries=carries)
    inputs = task.examples(PAIRS[::97]).inputs
    idle = [head for head in map(str, heads(model)) if head not in ACTIVE[carries]]
    assert len(idle) == 18 - len(ACTIVE[carries])
    with torch.no_grad(), record(model, "*.z") as seen:
        logits = model(*inputs)
    for name in idle:
        path, _, index = name.rpartition(".")
        assert seen[f"{path}.z"][:, int(index)].abs().max() > 0.01
        with torch.no_grad(), edit(model, {f"{path}.z": _zero(name)}):
            assert torch.equal(model(*inputs), logits)


def test_patterns_are_as_described() -> None:
    task, model = planted(carries=True)
    with torch.no_grad(), record(model, "*.pattern") as seen:
        model(*task.examples(PAIRS[::97]).inputs)

    def of(name: str) -> Tensor:
        path, _, index = name.rpartition(".")
        return seen[f"{path}.pattern"][:, int(index)]

    def near(name: str, rows: list[list[float]]) -> None:
        torch.testing.assert_close(of(name), torch.tensor(rows).expand_as(of(name)), atol=1e-3, rtol=0)

    column = [[0.5, 0, 0, 0.5, 0], [0, 0.5, 0, 0, 0.5]]
    plus = [0.0, 0, 1, 0, 0]
    near(COPY, torch.eye(SOURCE).tolist())
    near(OWN, torch.eye(4).tolist())
    near(ALIGN, [*column, plus, plus])
    near(CARRY, [plus, *column, plus])
    assert torch.equal(of("encoder.1.self.0"), torch.full_like(of("encoder.1.self.0"), 0.2))
    near("decoder.1.self.2", (torch.ones(4, 4).tril() / torch.arange(1, 5)[:, None]).tolist())


def test_as_a_run_it_has_the_same_weights(tmp_path: Path) -> None:
    task, model = planted(carries=True)
    loaded = load_model(planted_run(tmp_path / "planted", carries=True))
    inputs = task.examples(PAIRS[::97]).inputs
    with torch.no_grad():
        assert torch.equal(model(*inputs), loaded(*inputs))


def test_the_module_reads_the_first_token_through_one_head() -> None:
    model, examples = planted_module()
    right = exact(model, examples.inputs, examples.targets)
    assert right.all()
    tokens = examples.inputs[0]
    with torch.no_grad(), record(model, "*.pattern") as seen:
        logits = model(tokens)
    torch.testing.assert_close(
        seen["encoder.0.self.pattern"][:, 1, :, 0], torch.ones(len(tokens), 5), atol=1e-6, rtol=0
    )
    assert torch.equal(exact(model, examples.inputs, examples.targets, READ), tokens[:, 0] == tokens[:, -1])
    with torch.no_grad(), edit(model, {"encoder.0.self.z": _zero("encoder.0.self.0")}):
        assert torch.equal(model(tokens), logits)
