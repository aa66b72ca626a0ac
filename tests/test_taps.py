import pytest
import torch
from torch import Tensor, nn

from attnlab.errors import LabError
from attnlab.models import build_model
from attnlab.specs import Seq2SeqModel
from attnlab.taps import Tap, edit, record, supply, taps


class Chain(nn.Module):
    """x -> 2x at ``first`` -> 2x + 3 at ``second``."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Tap()
        self.second = Tap()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x * 2) + 3)


X = torch.tensor([1.0, 2.0])


def active(model: nn.Module) -> list[str]:
    return [name for name, tap in taps(model).items() if tap.active]


def test_taps_by_pattern() -> None:
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5, encoder_layers=2), vocabulary=7)
    found = ["encoder.0.self.pattern", "encoder.1.self.pattern"]
    assert list(taps(model, "encoder.?.self.pattern")) == found
    assert len(taps(model)) == 2 * (7 + 1 + 2) + 2 * (14 + 1 + 3)


def test_record_gives_the_values() -> None:
    model = Chain()
    with record(model, "first", "sec*") as seen:
        model(X)
    assert seen["first"].tolist() == [2.0, 4.0]
    assert seen["second"].tolist() == [5.0, 7.0]
    assert active(model) == []


def test_recording_holds_copies() -> None:
    model, x = nn.Sequential(Tap()), X.clone()
    with record(model, "0") as seen:
        out = model(x)
    seen["0"].zero_()
    assert out.tolist() == x.tolist() == [1.0, 2.0]


def test_recording_is_detached_unless_asked() -> None:
    model, x = Chain(), X.clone().requires_grad_()
    with record(model, "first") as seen:
        model(x)
    assert not seen["first"].requires_grad
    with record(model, "first", detach=False) as seen:
        out = model(x)
    assert torch.autograd.grad(out.sum(), seen["first"])[0].tolist() == [1.0, 1.0]


def test_firing_twice_is_an_error() -> None:
    model = Chain()
    with record(model, "first"):
        model(X)
        with pytest.raises(LabError, match="tap 'first' fired twice; record one forward pass at a time"):
            model(X)
    assert active(model) == []


def test_edit_replaces_the_value_only_inside() -> None:
    model = Chain()
    with edit(model, {"first": lambda v: v * 10}):
        assert model(X).tolist() == [23.0, 43.0]
        assert active(model) == ["first"]
    assert model(X).tolist() == [5.0, 7.0]


def test_edits_apply_in_the_order_they_are_opened() -> None:
    model = Chain()
    with edit(model, {"first": lambda v: v + 1, "fi*": lambda v: v * 10}):
        assert model(X).tolist() == [33.0, 53.0]
    with edit(model, {"first": lambda v: v * 10}), edit(model, {"first": lambda v: v + 1}):
        assert model(X).tolist() == [24.0, 44.0]


def test_the_same_edit_twice_is_taken_off_in_order() -> None:
    def tenfold(v: Tensor) -> Tensor:
        return v * 10

    model = Chain()
    with edit(model, {"first": tenfold}), edit(model, {"first": lambda v: v + 1}):
        with edit(model, {"first": tenfold}):
            assert model(X).tolist() == [213.0, 413.0]
        assert model(X).tolist() == [24.0, 44.0]


def test_record_sees_what_edits_before_it_made() -> None:
    model = Chain()
    with edit(model, {"first": lambda v: v * 10}), record(model, "first") as seen:
        model(X)
    assert seen["first"].tolist() == [20.0, 40.0]


@pytest.mark.parametrize("way", ["record", "edit"])
def test_clean_up_after_an_exception(way: str) -> None:
    model = Chain()
    context = record(model, "*") if way == "record" else edit(model, {"*": lambda v: v * 0})
    inside = []
    with pytest.raises(ZeroDivisionError), context:
        inside.append(1 / (len(active(model)) - 2))  # both taps are active, so this divides by zero
    assert inside == []
    assert active(model) == []
    assert model(X).tolist() == [5.0, 7.0]


def test_an_edit_that_raises_is_removed() -> None:
    def fail(_: Tensor) -> Tensor:
        raise ZeroDivisionError

    model = Chain()
    with pytest.raises(ZeroDivisionError), edit(model, {"second": fail}):
        model(X)
    assert model(X).tolist() == [5.0, 7.0]


def test_unknown_pattern_names_the_nearest_and_leaves_nothing() -> None:
    model = Chain()
    with (
        pytest.raises(LabError, match="no tap matches 'frist'; did you mean 'first'"),
        record(model, "frist"),
    ):
        pass
    with (
        pytest.raises(LabError, match="no tap matches 'zz'; known: first, second"),
        edit(model, {"first": lambda v: v * 0, "zz": lambda v: v}),
    ):
        pass
    assert active(model) == []


@pytest.mark.parametrize("tap", ["q", "k", "v", "z", "out"])
def test_identity_edit_changes_no_bit(tap: str) -> None:
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=7)
    source, target = torch.randint(7, (2, 7)), torch.randint(7, (2, 5))
    plain = model(source, target)
    with edit(model, {f"*.{tap}": lambda v: v}):
        assert torch.equal(model(source, target), plain)
    assert torch.equal(model(source, target), plain)


@pytest.mark.parametrize("tap", ["scores", "pattern"])
def test_identity_edit_of_the_explicit_form_changes_no_bit(tap: str) -> None:
    """Looking at scores or pattern switches to the explicit form; editing there adds nothing to that."""
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=7)
    source, target = torch.randint(7, (2, 7)), torch.randint(7, (2, 5))
    with record(model, "*.scores", "*.pattern"):
        explicit = model(source, target)
    with edit(model, {f"*.{tap}": lambda v: v}):
        assert torch.equal(model(source, target), explicit)


def test_what_is_supplied_is_not_computed_again() -> None:
    torch.manual_seed(0)
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5, encoder_layers=2), vocabulary=7).eval()
    source, target = torch.randint(0, 7, (2, 5)), torch.randint(0, 7, (2, 3))
    with record(model, "*.out", "*.z") as seen:
        expected = model(source, target)
    other = torch.randint(0, 7, (2, 5))
    for name in ("encoder.1.feed_residual.out", "decoder.1.feed_residual.out"):
        with supply(model, {name: seen[name]}):
            assert torch.equal(model(other if name.startswith("encoder") else source, target), expected)
    z = {f"decoder.{layer}.cross.z": seen[f"decoder.{layer}.cross.z"] for layer in (0, 1)}
    with supply(model, z):
        assert torch.equal(model(other, target), expected)  # nobody asks the memory any more
    out = {name.replace(".z", ".out"): seen[name.replace(".z", ".out")] for name in z}
    with supply(model, out):
        assert torch.equal(model(other, target), expected)
    assert torch.equal(model(source, target), expected)
    assert not torch.equal(model(other, target), expected)


def test_what_is_supplied_can_be_edited_and_is_taken_back() -> None:
    torch.manual_seed(0)
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=7).eval()
    source, target = torch.randint(0, 7, (2, 5)), torch.randint(0, 7, (2, 3))
    with record(model, "encoder.0.self.z") as seen:
        model(source, target)
    with edit(model, {"encoder.0.self.z": torch.zeros_like}):
        expected = model(source, target)
    with supply(model, seen), edit(model, {"encoder.0.self.z": torch.zeros_like}):
        assert torch.equal(model(source, target), expected)
    with pytest.raises(RuntimeError), supply(model, seen):
        raise RuntimeError
    assert all(tap.supplied is None for tap in taps(model).values())


def test_only_places_that_take_a_value_can_be_supplied() -> None:
    model = build_model(Seq2SeqModel(width=6, heads=3, hidden=5), vocabulary=7)
    with pytest.raises(LabError, match="cannot be supplied"), supply(model, {"encoder.0.self.q": X}):
        pass
