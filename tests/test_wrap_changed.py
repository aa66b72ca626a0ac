"""Edits of a wrapped model in Python do what the explorer does with them."""

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.errors import InputError, LabError
from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Edit, Off, Paint, Scale, Swap, write_edit
from attnlab.explorer.scene import ExampleInput, Question
from attnlab.front.any_model import AnyModel
from attnlab.sets import Examples

HEAD = "first.1"


class Two(nn.Module):
    """Two attentions; the second takes examples along its second axis."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 12)
        self.first = nn.MultiheadAttention(12, 3, batch_first=True)
        self.second = nn.MultiheadAttention(12, 2)
        self.out = nn.Linear(12, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        x = x + self.first(x, x, x)[0]
        turned = x.transpose(0, 1)
        x = x + self.second(turned, turned, turned)[0].transpose(0, 1)
        return self.out(x.mean(dim=1))


@pytest.fixture
def model() -> AnyModel:
    torch.manual_seed(3)
    return attnlab.wrap(Two(), inputs=(torch.zeros(2, 7, dtype=torch.long),))


@pytest.fixture
def data() -> Examples:
    torch.manual_seed(5)
    return attnlab.examples(torch.randint(11, (13, 7)), torch.arange(13) % 5)


def probabilities(model: AnyModel, data: Examples, index: int) -> list[float]:
    with torch.no_grad():
        found: list[float] = model(*data[index : index + 1].inputs)[0].softmax(dim=-1).tolist()
    return found


@pytest.mark.parametrize(
    "edit",
    [
        Off(HEAD, "zero"), Off("first", "mean"), Off("second.0", "resample"), Scale("second", 0.0),
        Swap("second.1"), Swap("first"), Paint(HEAD, {"2": [0, 0.5, 0, 0.5, 0, 0, 0]}),
    ],
)  # fmt: skip
def test_an_edit_does_what_it_does_in_the_explorer(edit: Edit, model: AnyModel, data: Examples) -> None:
    before = probabilities(model, data, 4)
    scene = Bench.of_model(model, data).look(
        Question(ExampleInput("valid", 4), ExampleInput("valid", 9), (edit,))
    )
    wanted = dict(scene.answer.tokens[0].top)
    with model.changed(write_edit(edit), data=data, other=data[9:10]) as changed:
        found = probabilities(changed, data, 4)
    assert {str(label): share for label, share in enumerate(found)} == pytest.approx(wanted, abs=1e-6)
    assert found != before
    assert probabilities(model, data, 4) == before


def test_what_is_zero_needs_no_examples_and_holds_for_many(model: AnyModel, data: Examples) -> None:
    with model.without(HEAD), torch.no_grad():
        wanted = model(*data.inputs)
    with model.changed(Off(HEAD)), torch.no_grad():
        torch.testing.assert_close(model(*data.inputs), wanted)
    with model.without(HEAD, to="mean", data=data), torch.no_grad():
        wanted = model(*data.inputs)
    with model.changed(Off(HEAD, "mean"), data=data), torch.no_grad():
        torch.testing.assert_close(model(*data.inputs), wanted)


def test_analyses_see_the_edits(model: AnyModel, data: Examples) -> None:
    with model.changed(Scale("first", 0.0)):
        row = next(each for each in model.heads(data).heads if each.head == HEAD)
    assert row.metrics["entropy"].value == pytest.approx(1.0)


def test_what_an_edit_lacks_is_said(model: AnyModel, data: Examples) -> None:
    with pytest.raises(InputError, match="to is 'mean', which is made from examples; give them as data"):
        model.changed(Off(HEAD, "mean")).__enter__()
    with pytest.raises(InputError, match="to swap first, another input is needed; give one as other"):
        model.changed(Swap("first")).__enter__()
    with pytest.raises(InputError, match="other has 13 inputs; values are swapped from one"):
        model.changed(Swap("first"), other=data).__enter__()
    with pytest.raises(LabError, match="the model has no head, site, feed or layer 'frist'"):
        model.changed(Off("frist")).__enter__()
