"""Explanations of wrapped models: those of a model of ours with the same weights, and of every kind."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.analysis.explain.methods import METHODS, score
from attnlab.analysis.explain.perturbation import Tokens, make_background
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.errors import InputError, LabError
from attnlab.figures.attribution import draw_explain, explain_data
from attnlab.front.any_model import AnyModel, examples, wrap
from foreign_models import IMAGES, MODELS, ROWS, TOKENS, PlainStack, bert, timm_vit
from pointers import Pointer, ask, pointer


class ForeignPointer(nn.Module):
    """What ``Pointer`` computes, written by hand."""

    def __init__(self, own: Pointer) -> None:
        super().__init__()
        self.reads, self.through = own.reads, own.through
        self.embed, self.place = own.embed, own.place
        self.maps = nn.ModuleList([own.self.query, own.self.key, own.self.value, own.self.output])

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.place
        q, k, v = (make(x)[:, None] for make in self.maps[:3])
        seen = self.maps[3](F.scaled_dot_product_attention(q, k, v)[:, 0])
        found: Tensor = (seen[:, 0] if self.through else x[:, self.reads] + 0 * seen[:, 0])[:, :7]
        return found


def one(model: AnyModel, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The first example."""
    first = (each if model._call.batch_first else each.transpose(0, 1) for each in inputs)
    return tuple(each[:1] for each in first)


@pytest.mark.parametrize(("looks", "reads"), [(3, 3), (1, 4)])
def test_it_says_what_is_said_of_a_model_of_ours_with_the_same_weights(looks: int, reads: int) -> None:
    own, data = pointer(looks=looks, reads=reads)
    wanted = score(ask(own, data), make_background(own, Tokens("embed"), data))
    model = wrap(ForeignPointer(own), inputs=data[:2].inputs)
    found = model.explain(data[:1], data=data)
    assert isinstance(found, Explanation)
    (place,) = found.places
    for name in METHODS:
        assert place.scores[name] == pytest.approx(wanted.scores[name].tolist(), abs=1e-4), name
    best = torch.tensor(place.scores["occlusion"]).argmax()
    assert best == reads
    assert (found.output, found.truth, found.correct) == (str(int(data.targets[0])),) * 2 + (True,)
    assert found.parts == [str(token) for token in data.inputs[0][0].tolist()]


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_is_explained(name: str) -> None:
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    model = wrap(make().eval(), inputs=inputs)
    given = one(model, inputs)
    logits = model.batch_first()(*given)[0]
    place = "" if logits.dim() == 1 else "2"
    found = model.explain(given, place=place)
    assert isinstance(found, Explanation)
    (only,) = found.places
    row = logits if logits.dim() == 1 else logits[1]
    assert only.answer == str(int(row.argmax()))
    assert only.probability == pytest.approx(row.softmax(dim=0).max().item(), rel=1e-3)
    images = name in ("timm", "timm, pooled", "hugging face vit")
    decodes = name in ("torch decoder, post-norm", "torch decoder, pre-norm", "torch transformer")
    count = 16 if images else 11 if decodes else given[0].shape[1]
    assert len(found.parts) == count
    assert (found.image is not None) == images
    assert found.parts[-1] == ("3,3" if images else found.parts[-1])
    assert list(only.scores) == list(METHODS)
    assert all(len(each) == count for each in only.scores.values())
    assert only.completeness_gap < 0.01
    assert set(only.heads) == {head for site in model.sites() for head in site.head_names}
    assert Explanation.from_json(found.to_json()) == found


def test_an_explanation_can_be_drawn_in_colour_and_in_grey() -> None:
    torch.manual_seed(0)
    for channels in (1, 2, 3):
        model = wrap(timm_vit(in_chans=channels, depth=1), reads="cls")
        found = model.explain(IMAGES[:1, :channels])
        assert isinstance(found, Explanation)
        assert found.image is not None
        assert torch.tensor(found.image).shape == ((16, 16, 3) if channels == 3 else (16, 16))
        assert torch.tensor(found.image).min() >= 0
        assert torch.tensor(found.image).max() <= 1
        assert draw_explain(explain_data(found)).get_axes()


def test_parts_come_from_data_or_from_the_input_itself() -> None:
    torch.manual_seed(0)
    model = wrap(timm_vit(depth=1), reads="cls")
    images = torch.rand(11, 3, 16, 16)
    data = examples(images, torch.arange(11))
    alone, among = model.explain(images[:1]), model.explain(images[:1], data=data)
    assert isinstance(alone, Explanation)
    assert isinstance(among, Explanation)
    assert alone.places[0].scores["attention"] == among.places[0].scores["attention"]
    assert alone.places[0].scores["occlusion"] != among.places[0].scores["occlusion"]
    assert any(abs(effect) > 1e-6 for effect in alone.places[0].heads.values())


def test_padding_is_no_part_and_changes_nothing() -> None:
    torch.manual_seed(0)
    padding = torch.ones_like(TOKENS)
    padding[:, 9:] = 0
    model = wrap(bert().eval(), inputs={"input_ids": TOKENS, "attention_mask": padding}, reads="cls")
    found = model.explain((TOKENS[:1], padding[:1]))
    short = model.explain((TOKENS[:1, :9], padding[:1, :9]), labels=list("abcdefghi"))
    assert isinstance(found, Explanation)
    assert isinstance(short, Explanation)
    assert short.parts == list("abcdefghi")
    assert len(found.parts) == 9
    assert found.places == short.places
    others = examples((TOKENS.repeat(4, 1), padding.repeat(4, 1)), torch.arange(8) % 7)
    repeated = model.explain((TOKENS[:1], padding[:1]), data=others)
    assert isinstance(repeated, Explanation)
    assert repeated.replacements == ["zero", "mean", "repeat"]


class Turned(nn.Module):
    """Tokens (T, B), as in torch's early tutorials."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.readout = nn.Embedding(11, 35), nn.Linear(35, 7)
        layer = nn.TransformerEncoderLayer(35, 5, dim_feedforward=17)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.readout(self.encoder(self.embed(tokens), mask=mask))
        return found


def test_batch_second_is_the_same_as_batch_first() -> None:
    torch.manual_seed(0)
    module = Turned().eval()
    mask = nn.Transformer.generate_square_subsequent_mask(13)
    model = wrap(module, inputs=(TOKENS.T,), fixed={"mask": mask}, batch_first=False)
    with torch.no_grad():
        torch.testing.assert_close(model(TOKENS.T), module(TOKENS.T, mask), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.batch_first()(TOKENS), model(TOKENS.T).transpose(0, 1))
    for part in module.modules():
        if isinstance(part, nn.MultiheadAttention):
            part.batch_first = True
    first = wrap(module, inputs=(TOKENS,), fixed={"mask": mask})
    found, wanted = (each.explain(TOKENS[:1], place="4") for each in (model, first))
    assert isinstance(found, Explanation)
    assert isinstance(wanted, Explanation)
    for name in METHODS:
        assert found.places[0].scores[name] == pytest.approx(wanted.places[0].scores[name], abs=1e-4)
        if name != "heads":  # it counts other queries too
            assert found.places[0].scores[name][4:] == pytest.approx([0] * 9, abs=1e-6)  # hidden
    data = examples(TOKENS, TOKENS % 7)
    rows = [each.ablate(data, baselines=("mean",)).singles for each in (model, first)]
    for head, row in rows[0].items():
        assert row.loss == pytest.approx(rows[1][head].loss, abs=1e-5)


def test_methods_are_judged_by_many_inputs() -> None:
    torch.manual_seed(0)
    model = wrap(PlainStack(1), inputs=(TOKENS,))
    data = examples(torch.randint(11, (7, 5)), torch.arange(7))
    found = model.explain(data, many=3)
    assert isinstance(found, Judgement)
    assert (found.run, found.split, found.inputs) == ("PlainStack", None, 3)
    assert set(found.verdicts) == set(METHODS)
    with pytest.raises(InputError, match="many is 8, but there are 7 examples"):
        model.explain(data, many=8)
    with pytest.raises(InputError, match="many is 3, so the inputs need labels; make them by exa"):
        model.explain(data.inputs, many=3)


def test_what_cannot_be_explained_is_refused() -> None:
    model = wrap(PlainStack(1), inputs=(TOKENS,))
    with pytest.raises(InputError, match="there are 2 inputs; give one, or say how many to judge by"):
        model.explain(TOKENS)
    with pytest.raises(InputError, match="there are 3 labels for 13 tokens; give one for each"):
        model.explain(TOKENS[:1], labels=["a", "b", "c"])
    with pytest.raises(InputError, match="the input has 130 tokens; at most 128 can be explained"):
        model.explain(TOKENS[:1].repeat(1, 10))
    with pytest.raises(InputError, match="the input has no place '3'"):
        model.explain(TOKENS[:1], place="3")
    single = wrap(PlainStack(1), inputs=(TOKENS,), output=lambda given: given[:, :1])
    with pytest.raises(InputError, match=r"of the shape \(1\) for an example, but logits of at least two"):
        single.explain(TOKENS[:1])
    attention = nn.MultiheadAttention(35, 5, batch_first=True, add_zero_attn=True)
    with pytest.raises(LabError, match="the attention attention adds keys that are no part of the input"):
        wrap(attention).explain((ROWS[:1], ROWS[:1], ROWS[:1]), place="1")


def test_an_attention_by_itself_is_explained_by_what_it_looks_at() -> None:
    torch.manual_seed(0)
    attention: Any = nn.MultiheadAttention(35, 5, batch_first=True)
    keys = torch.randn(1, 11, 35)
    found = wrap(attention, inputs=(ROWS, ROWS, ROWS)).explain((ROWS[:1],) * 3, place="2")
    across = wrap(attention).explain((ROWS[:1], keys, keys), place="2")
    assert isinstance(found, Explanation)
    assert isinstance(across, Explanation)
    assert (len(found.parts), len(across.parts)) == (13, 11)
    pattern = attention(ROWS[:1], keys, keys)[1][0, 1]
    assert across.places[0].scores["attention"] == pytest.approx(pattern.tolist(), abs=1e-5)
