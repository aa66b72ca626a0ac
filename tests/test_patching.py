"""Patching: values of one run in another, for any model."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnlab.analysis.patch import Patching, Site, find_carriers, grids, head_site, measure_grids
from attnlab.analysis.patch.carriers import _drop_needless, _exhaust, _greedy
from attnlab.analysis.patch.runs import Copies, shares
from attnlab.errors import LabError
from attnlab.model import Model
from attnlab.models import Seq2Seq, attentions, build_model
from attnlab.specs import MLPModel, PatchAttentionModel, Rotary, Seq2SeqModel
from attnlab.taps import edit, record, taps
from planted import READ, planted_module

# Outputs of untrained models for other inputs differ by chance.
pytestmark = pytest.mark.filterwarnings("ignore::attnlab.analysis.patch.runs.SmallDifferenceWarning")

N = 11


def total(logits: Tensor) -> Tensor:
    """A number for each example that all logits have a part in."""
    return (logits.flatten(1) * torch.arange(logits[0].numel())).sum(dim=1)


def seq2seq() -> Seq2Seq:
    torch.manual_seed(0)
    spec = Seq2SeqModel(width=6, heads=3, hidden=5, encoder_layers=2, positions=Rotary())
    return build_model(spec, vocabulary=7).eval()


def inputs(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(7, (N, 5), generator=generator), torch.randint(7, (N, 3), generator=generator)


def between(model: Model) -> Patching:
    return Patching.between(model, inputs(1), inputs(2), total)


def every_site(patching: Patching) -> list[Site]:
    return [site for grid in grids(patching) for row in grid.sites for site in row]


def some_sites(patching: Patching) -> list[Site]:
    """One at every tap."""
    return list({site.tap: site for site in every_site(patching)}.values())


def by_hand(model: Model, site: Site, donor: Tensor) -> Tensor:
    """A patched run by its definition: everything is computed, one value is replaced."""

    def put(value: Tensor) -> Tensor:
        value = value.clone()
        heads = slice(None) if site.head is None else slice(site.head, site.head + 1)
        where = slice(None) if site.position is None else slice(site.position, site.position + 1)
        place = (slice(None), heads, where) if value.ndim == 4 else (slice(None), where)
        value[place] = donor[place]
        return value

    with torch.no_grad(), edit(model, {site.tap: put}):
        return model(*inputs(1))


def untouched(model: Model) -> bool:
    return not any(tap.active or tap.supplied is not None for tap in taps(model).values())


def test_a_patched_run_is_what_it_is_by_definition_at_every_site() -> None:
    model = seq2seq()
    patching = between(model)
    sites = some_sites(patching)
    assert {site.tap for site in sites} == patching.base.seen.keys()
    with torch.no_grad(), record(model, *patching.base.seen) as donor:
        model(*inputs(2))
    changed = 0
    for site in sites:
        given = patching.given([site])
        torch.testing.assert_close(given, by_hand(model, site, donor[site.tap]), atol=1e-5, rtol=1e-5)
        changed += not torch.equal(given, patching.base.given)
    assert changed > len(sites) / 2
    assert untouched(model)


def test_many_patches_in_one_pass_are_the_patches_one_by_one() -> None:
    patching = between(seq2seq())
    patches = [[site] for site in every_site(patching)[::17]]
    patches.append([head_site("encoder.0.self.2"), head_site("decoder.1.cross.0")])
    at_once = Copies(patching, len(patches) + 2).values(patches)
    for values, sites in zip(at_once, patches, strict=True):
        torch.testing.assert_close(values, patching.values(sites), atol=1e-4, rtol=1e-4)


def test_a_run_patched_into_itself_changes_nothing() -> None:
    model = seq2seq()
    patching = Patching.between(model, inputs(1), inputs(1), total)
    for site in some_sites(patching)[::3]:
        torch.testing.assert_close(patching.given([site]), patching.base.given, atol=1e-5, rtol=1e-5)
    with pytest.raises(LabError, match="do not differ in what is read, so there is nothing to restore"):
        patching.share([head_site("encoder.0.self.0")])


def test_the_whole_stream_at_the_last_layer_restores_all_and_nothing_restores_nothing() -> None:
    patching = between(seq2seq())
    whole = patching.share([Site("decoder.1.feed_residual.out")])
    assert whole.value == pytest.approx(1, abs=1e-5)
    assert whole.interval == pytest.approx((1, 1), abs=1e-5)
    assert patching.share([]).value == 0
    assert patching.turned().share([Site("decoder.1.feed_residual.out")]).value == pytest.approx(
        1, abs=1e-5
    )
    encoder = Patching.between(seq2seq(), (inputs(1)[0], inputs(1)[1]), (inputs(2)[0], inputs(1)[1]), total)
    assert encoder.share([Site("encoder.1.feed_residual.out")]).value == pytest.approx(1, abs=1e-5)


def test_the_model_is_left_as_it_was_also_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    model = seq2seq()
    patching = between(model)

    def fail(_: Tensor) -> Tensor:
        raise ZeroDivisionError

    monkeypatch.setattr(model.readout, "forward", fail)
    with pytest.raises(ZeroDivisionError):
        patching.given([head_site("decoder.0.self.1")])
    with pytest.raises(ZeroDivisionError):
        between(model)
    monkeypatch.undo()
    assert untouched(model)
    assert torch.equal(between(model).base.given, patching.base.given)


def test_a_share_is_a_ratio_of_means_with_an_interval_over_pairs() -> None:
    base = torch.zeros(97)
    donor = torch.ones(97) * 2
    patched = torch.stack((torch.zeros(97), torch.arange(97) % 2 * 2.0, donor, -donor))
    nothing, half, all_of_it, away = shares(patched, base, donor)
    assert (nothing.value, nothing.interval) == (0, (0, 0))
    assert half.value == pytest.approx(48 / 97)
    low, high = half.interval
    assert half.value - low == pytest.approx(1.96 * 0.5 / 97**0.5, abs=0.02)
    assert high - half.value == pytest.approx(1.96 * 0.5 / 97**0.5, abs=0.02)
    assert (all_of_it.value, all_of_it.interval) == (1, (1, 1))
    assert away.value == -1
    weighted = shares(torch.tensor([[1.0, 0.0]]), torch.zeros(2), torch.tensor([1.0, 3.0]))
    assert weighted[0].value == 0.25


def test_one_head_of_a_module_of_ones_own_is_found() -> None:
    """Base and donor differ in the first of five tokens, which only READ reads, through v."""
    model, examples = planted_module()
    (base,) = examples.inputs
    donor = base.clone()
    donor[:, 0] = (base[:, 0] + 3) % 7

    def difference(logits: Tensor, more: Tensor, less: Tensor) -> Tensor:
        return logits.gather(1, more[:, None])[:, 0] - logits.gather(1, less[:, None])[:, 0]

    known = (donor[:, 0], base[:, 0])
    patching = Patching.between(model, (base,), (donor,), difference, known=known)
    found = {grid.quantity: grid for grid in measure_grids(patching, grids(patching))}
    heads = found["heads"]
    assert heads.rows == ["encoder.0.self.0", READ]
    assert heads.columns == ["z", "q", "k", "v", "pattern"]
    assert heads.share[0] == pytest.approx([0, 0, 0, 0, 0], abs=1e-5)
    assert heads.share[1] == pytest.approx([1, 0, 0, 1, 0], abs=1e-5)
    assert found["v"].share[1] == pytest.approx([1, 0, 0, 0, 0], abs=1e-5)
    assert found["z"].share[1] == pytest.approx([0, 0, 0, 0, 1], abs=1e-5)
    assert "residual stream" not in found
    carriers = find_carriers([patching])
    assert (carriers.heads, carriers.smallest, carriers.others) == ((READ,), True, ())


def test_a_classifier_can_be_patched() -> None:
    torch.manual_seed(0)
    spec = PatchAttentionModel(width=6, heads=3, hidden=5, patch=14, residual=True)
    model = build_model(spec, vocabulary=10).eval()
    images = torch.rand(2, N, 28, 28)
    patching = Patching.between(model, (images[0],), (images[1],), total)
    found = measure_grids(
        patching, grids(patching, lambda tap, length: [f"patch {i}" for i in range(length)])
    )
    stream = next(grid for grid in found if grid.quantity == "residual stream")
    assert stream.rows == ["encoder.0.self", "encoder.0.feed"]
    assert stream.columns == ["patch 0", "patch 1", "patch 2", "patch 3"]
    # The readout is linear in the mean over tokens, so the parts of the last stream sum to the whole.
    assert sum(stream.share[1]) == pytest.approx(1, abs=1e-4)


def test_grids_hold_every_head_and_position_once() -> None:
    model = seq2seq()
    patching = between(model)
    found = grids(patching)
    sizes = [(grid.quantity, len(grid.rows), len(grid.columns)) for grid in found]
    heads = sum(each.heads for each in attentions(model).values())
    assert heads == 18
    assert sizes == [
        ("residual stream", 4, 5),
        ("residual stream", 6, 3),
        ("attention out", 2, 5),
        ("attention out", 4, 3),
        ("heads", 18, 5),
        ("z", 6, 5),
        ("z", 12, 3),
        ("q", 6, 5),
        ("q", 12, 3),
        ("k", 12, 5),
        ("k", 6, 3),
        ("v", 12, 5),
        ("v", 6, 3),
        ("pattern", 6, 5),
        ("pattern", 12, 3),
    ]
    sites = every_site(patching)
    assert len(set(sites)) == len(sites)
    told: list[tuple[int, int]] = []
    measure_grids(patching, found[:2], progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (38, 38)


def test_a_pruned_model_can_be_patched() -> None:
    """Heads of unequal number, and attentions without any."""
    torch.manual_seed(0)
    spec = Seq2SeqModel(width=6, heads=3, hidden=5, encoder_layers=2, head_counts=(0, 2, 1, 3, 0, 1))
    patching = between(build_model(spec, vocabulary=7).eval())
    found = grids(patching)
    rows = {grid.quantity: sum(len(g.rows) for g in found if g.quantity == grid.quantity) for grid in found}
    assert rows == {
        "residual stream": 10, "attention out": 4, "heads": 7, "z": 7, "q": 7, "k": 7, "v": 7, "pattern": 7,
    }  # fmt: skip
    whole = patching.share([Site("decoder.1.feed_residual.out")])
    assert whole.value == pytest.approx(1, abs=1e-5)
    assert patching.share([head_site("decoder.0.cross.2")]).value != 0


def test_what_cannot_be_patched_is_told_in_a_sentence() -> None:
    model = seq2seq()
    patching = between(model)
    for site, message in (
        (Site("encoder.0.self.x"), "no tap 'encoder.0.self.x' was recorded; did you mean 'encoder.0.self."),
        (
            Site("encoder.0.self.z", head=3),
            "tap 'encoder.0.self.z' has 3 heads from 0 on, so none is head 3",
        ),
        (Site("encoder.0.self.z", position=5), "has 5 positions from 0 on, so none is position 5"),
        (Site("encoder.0.self.out", head=0), "tap 'encoder.0.self.out' has no heads to choose head 0 from"),
    ):
        with pytest.raises(LabError, match=message):
            patching.given([site])
    with pytest.raises(LabError, match="in training mode, where no two runs are alike"):
        between(seq2seq().train())
    with pytest.raises(LabError, match="there are no pairs of inputs to patch; give at least 1"):
        Patching.between(model, tuple(x[:0] for x in inputs(1)), tuple(x[:0] for x in inputs(2)), total)
    with pytest.raises(LabError, match="base and donor must have the same shapes"):
        Patching.between(model, inputs(1), (inputs(2)[0][:, :3], inputs(2)[1]), total)
    mlp = build_model(MLPModel(), vocabulary=10).eval()
    with pytest.raises(LabError, match="the model MLP has no attention, so it has no heads to look at"):
        Patching.between(mlp, (torch.rand(2, 28, 28),), (torch.rand(2, 28, 28),), total)
    assert untouched(model)


def test_heads_alone_do_not_bring_what_comes_with_the_tokens() -> None:
    found = find_carriers([between(seq2seq())])
    assert found.heads is None
    assert not found.smallest
    assert max(found.of_all_heads) < 0.9


class Table:
    """Sets of heads with shares that are made up; those that are not told of restore 0."""

    def __init__(self, known: dict[str, float]) -> None:
        self._known = known

    def each(self, sets: list[tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[float]]]:
        return [(heads, [self._known.get("".join(sorted(heads)), 0.0)]) for heads in sets]


Search = Callable[..., tuple[str, ...]]


def test_what_greed_took_and_is_not_needed_is_dropped() -> None:
    table = Table({"a": 0.6, "b": 0.5, "ab": 0.7, "ac": 0.75, "abc": 1.0, "bc": 0.95})
    greedy: Search = _greedy
    drop: Search = _drop_needless
    assert greedy(table, tuple("abc"), 0.9) == ("a", "b", "c")
    assert drop(table, tuple("abc"), 0.9) == ("b", "c")


def test_a_smaller_set_than_greeds_is_found_and_equals_are_told() -> None:
    table = Table({"acd": 0.95, "bc": 0.92, "bd": 0.97, "cd": 0.97, "a": 0.89})
    assert _exhaust(table, table, tuple("abcd"), tuple("acd"), 0.9) == (  # type: ignore[arg-type]
        ("c", "d"),
        2,
        (("b", "d"), ("b", "c")),
    )
    many = tuple(f"{number:03}" for number in range(100))
    assert _exhaust(table, table, many, many[:3], 0.9) == (many[:3], 1, ())  # type: ignore[arg-type]


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs/explanation/patching.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {"__name__": "example"})
    first, second, third, fourth, *rest = capsys.readouterr().out.splitlines()
    assert first == "z of look.1: 1.00, from 1.00 to 1.00"
    assert second == "its v at the first token: 1.00"
    assert third == "head 0: 0.00"
    assert fourth == "smallest set: ('look.1',)"
    assert rest[0] == "attention out ['look'] ['0', '1', '2', '3', '4']"
