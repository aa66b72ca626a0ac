"""Patching of wrapped models: what each site restores is what one finds by editing taps by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.analysis.patch import carriers, plain
from attnlab.analysis.patch.contrasts import PatchResult
from attnlab.errors import InputError, LabError
from attnlab.front.any_model import AnyModel, examples, wrap
from attnlab.sets import Pairs
from attnlab.taps import edit, record
from foreign_models import MODELS, ROWS, TOKENS, PlainStack, timm_vit


def loud(module: nn.Module) -> nn.Module:
    """With weights so large that answers depend on inputs."""
    torch.manual_seed(0)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.5)
    return module.eval()


@torch.no_grad()
def opened(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[AnyModel, list[Tensor], list[Tensor]]:
    """A model with two inputs that it answers differently: its mean logits are taken off, and of a hundred
    inputs the last is farthest from the first.
    """
    chance = torch.Generator().manual_seed(1)
    whole = wrap(loud(module), inputs=inputs)
    first = whole.batch_first()
    shapes = [each.transpose(0, 1) if not whole._call.batch_first else each for each in inputs]
    rows = [
        torch.randn(100, *each.shape[1:], generator=chance)
        if each.is_floating_point()
        else torch.randint(11, (100, each.shape[1]), generator=chance)
        for each in shapes
    ]
    centre = first(*rows).mean(dim=0)

    def centred(given: Any) -> Tensor:
        return whole._call.logits(given) - (centre if whole._call.batch_first else centre[:, None])

    logits = (first(*rows) - centre).reshape(100, -1, centre.shape[-1])[:, 0]
    best = int((logits.max(dim=1).values - logits[:, logits[0].argmax()]).argmax())
    model = wrap(module, inputs=inputs, output=centred)
    return model, [each[:1] for each in rows], [each[best : best + 1] for each in rows]


def by_hand(model: AnyModel, inputs: list[Tensor], donor: dict[str, Tensor], tap: str, at: int) -> Tensor:
    """Logits of the base with the donor's values at one head, or at one position."""

    def put(value: Tensor) -> Tensor:
        mixed = value.clone()
        mixed[:, at] = donor[tap][:, at]
        return mixed

    with torch.no_grad(), edit(model, {tap: put}):
        return model(*inputs)


@pytest.mark.parametrize("name", MODELS)
def test_shares_are_those_of_edits_by_hand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, inputs = MODELS[name]
    monkeypatch.setattr(carriers, "TRIED", 20)
    monkeypatch.setattr(plain, "SITES", 0)
    model, base, donor = opened(make(), inputs)
    first = model.batch_first()
    found = model.patch(base, donor)
    (contrast,) = found.columns
    with torch.no_grad(), record(first, "*.z", "*.out") as seen:
        there = first(*donor)
    here = first(*base).detach()
    less, more = (each.argmax(dim=-1)[0].reshape(-1) for each in (here, there))
    place = int((less != more).long().argmax())

    def read(logits: Tensor) -> float:
        row = logits[0].reshape(-1, logits.shape[-1])[place]
        return float(row[more[place]] - row[less[place]])

    def share(tap: str, at: int) -> float:
        return (read(by_hand(first, base, seen, tap, at)) - read(here)) / (read(there) - read(here))

    assert contrast.difference == pytest.approx({"base": read(here), "donor": read(there)}, rel=1e-3)
    grids = {grid.quantity: grid for grid in contrast.denoising}
    for site in model.sites():
        index = grids["heads"].rows.index(f"{site.path}.{site.heads - 1}")
        wanted = share(f"{site.path}.z", site.heads - 1)
        assert grids["heads"].share[index][0] == pytest.approx(wanted, abs=2e-3)
    if model.streams():
        stream = grids["residual stream"]
        assert stream.share[-1][1] == pytest.approx(share(model.streams()[-1], 1), abs=2e-3)
    assert (contrast.pairs, contrast.held_out, found.carriers[0].held_out) == (1, 0, [])
    assert contrast.warning == (
        "there is one pair, so there are no intervals; give more pairs that differ in this"
    )
    assert PatchResult.from_json(found.to_json()) == found


class First(nn.Module):
    """Says the first token: its one head looks there, from everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 14)
        self.mix = nn.MultiheadAttention(14, 1, batch_first=True, bias=False)
        self.idle = nn.MultiheadAttention(14, 2, batch_first=True)
        with torch.no_grad():
            self.embed.weight.copy_(torch.eye(7, 14) * 5)
            self.mix.in_proj_weight[:28].zero_()
            self.mix.in_proj_weight[28:].copy_(torch.eye(14))
            self.mix.out_proj.weight.copy_(torch.eye(14))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        blind = torch.ones(5, 5, dtype=torch.bool)
        blind[:, 0] = False
        seen = self.mix(x, x, x, attn_mask=blind, need_weights=False)[0]
        found: Tensor = (seen + 0 * self.idle(x, x, x, need_weights=False)[0]).mean(dim=1)[:, :7]
        return found


def test_a_head_that_is_known_to_carry_the_difference_is_found() -> None:
    tokens = torch.randint(7, (20, 5), generator=torch.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[:, 0] = (tokens[:, 0] + 3) % 7
    model = wrap(First(), inputs=(tokens[:2],))
    pairs = Pairs(examples(tokens, tokens[:, 0]), examples(changed, changed[:, 0]), "the first token")
    found = model.patch(pairs)
    (contrast,), (chosen,) = found.columns, found.carriers
    assert (contrast.name, contrast.pairs, contrast.held_out) == ("the first token", 10, 10)
    assert contrast.warning is None
    assert chosen.heads == ("mix.0",)
    assert chosen.smallest
    assert chosen.held_out[0].denoising.flipped == 1
    values = next(grid for grid in contrast.denoising if grid.quantity == "v")
    assert values.columns == ["1", "2", "3", "4", "5"]
    assert values.share[values.rows.index("mix.0")] == pytest.approx([1, 0, 0, 0, 0], abs=1e-4)
    labelled = model.patch(examples(tokens, tokens[:, 0]), examples(changed, changed[:, 0]), pairs=3)
    assert labelled.columns[0].pairs == 3


def test_patches_go_by_row_and_column_and_many_positions_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = (torch.zeros(1, 3, 16, 16),)
    model, *pair = opened(timm_vit(depth=1, patch_size=8), shape)
    small = {grid.quantity: grid for grid in model.patch(*pair).columns[0].denoising}
    assert small["residual stream"].columns == ["cls", "0,0", "0,1", "1,0", "1,1"]
    assert "q" in small
    monkeypatch.setattr(plain, "SITES", 5 * 5 * 5 - 1)  # heads, quantities and positions
    grids = model.patch(*pair).columns[0].denoising
    assert [grid.quantity for grid in grids] == ["residual stream", "attention out", "heads"]


def test_what_cannot_be_patched_is_refused() -> None:
    model, *pair = opened(PlainStack(1), (TOKENS,))
    with pytest.raises(InputError, match="there is no donor; give base and donor, or pairs of both"):
        model.patch(TOKENS)
    with pytest.raises(
        InputError, match="base and donor have the same answers, so there is nothing to compare"
    ):
        model.patch(TOKENS, TOKENS)
    with pytest.raises(InputError, match=r"base has inputs of the shape \[\(2, 13\)\], donor of \[\(1, "):
        model.patch(TOKENS, TOKENS[:1])
    with pytest.raises(InputError, match="pairs is 0; it must be from 1 to 1,000"):
        model.patch(*pair, pairs=0)
    wrong = (model(TOKENS).argmax(dim=1) + 1) % 7
    base, donor = examples(TOKENS, wrong), examples(TOKENS, (wrong + 1) % 7)
    with pytest.raises(LabError, match="of 2 pairs that differ in the donor the model gets 0 right"):
        model.patch(base, donor)


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(35, 5)


def test_only_a_model_without_attention_is_said_to_have_none() -> None:
    from attnlab.analysis.subjects import require_attention
    from attnlab.model import Model

    class Own(Model):
        def __init__(self, part: nn.Module) -> None:
            super().__init__()
            self.part = part

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(LabError, match="the model Own has no attention, so it has no heads to look at"):
        require_attention(Own(nn.Linear(3, 2)))
    with pytest.raises(LabError, match=r"the model Own computes attention in part.attention that"):
        require_attention(Own(Hidden()))
    require_attention(wrap(nn.TransformerEncoderLayer(35, 5, batch_first=True), inputs=(ROWS,)))
