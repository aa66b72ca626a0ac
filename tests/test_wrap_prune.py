"""Heads of wrapped models really removed: what is left computes what the masked model does."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.analysis.ablate.baselines import mask_without, masked, mean_baseline
from attnlab.analysis.prune.runs import PruningResult
from attnlab.errors import InputError, LabError
from attnlab.front.any_model import AnyModel, examples, wrap
from attnlab.sets import Examples
from attnlab.taps import edit, record, supply
from foreign_models import (
    MODELS,
    ROWS,
    TOKENS,
    Plain,
    PlainStack,
    bert,
    import_transformers,
    llama,
    timm_vit,
    torch_encoder,
)
from test_wrap_patch import First, loud

CUT = [name for name in MODELS if name not in ("llama", "by hand")]


def with_answers(model: AnyModel, inputs: tuple[Tensor, ...]) -> Examples:
    """A dozen inputs like these with what the model answers."""
    chance = torch.Generator().manual_seed(1)
    first = [each if model._call.batch_first else each.transpose(0, 1) for each in inputs]
    rows = tuple(
        torch.randn(12, *each.shape[1:], generator=chance)
        if each.is_floating_point()
        else torch.randint(11, (12, each.shape[1]), generator=chance)
        for each in first
    )
    with torch.no_grad():
        return examples(rows, model.batch_first()(*rows).argmax(dim=-1))


@pytest.mark.parametrize("name", CUT)
@torch.no_grad()
def test_what_is_left_computes_what_the_masked_model_does(name: str) -> None:
    make, inputs = MODELS[name]
    model = wrap(loud(make()), inputs=inputs)
    data = with_answers(model, inputs)
    before = model(*inputs)
    heads = [head for site in model.sites() for head in site.head_names]
    gone = [*model.sites()[0].head_names, *heads[-2:], *heads[7:8]]  # the first attention loses all
    first = model.batch_first()
    towards = mean_baseline(first, data, by_place=False)
    with masked(first, mask_without(first, gone), towards):
        expected = first(*data.inputs)
    small = first.cut(gone, {path: value[0, :, 0] for path, value in towards.values.items()})
    scale = expected.abs().max().item()
    torch.testing.assert_close(small(*data.inputs), expected, rtol=1e-3, atol=1e-4 * max(1, scale))
    assert (expected - first(*data.inputs)).abs().max() > 1e-3 * scale
    sites = {site.path: site.heads for site in small.sites()}
    assert sum(sites.values()) == len(heads) - len(set(gone))
    assert model.sites()[0].path not in sites
    torch.testing.assert_close(model(*inputs), before, rtol=0, atol=0)  # the whole one stays


@pytest.mark.parametrize("name", ["torch encoder, batch second", "torch transformer", "timm", "bert"])
def test_heads_are_chosen_and_removed(name: str) -> None:
    make, inputs = MODELS[name]
    module = loud(make())
    model = wrap(module, inputs=inputs)
    data = with_answers(model, inputs)
    total = sum(site.heads for site in model.sites())
    found = model.prune(data, keep=total - 3)
    assert (found.heads, len(found.kept), len(found.removed)) == (total, total - 3, 3)
    assert sum(site.heads for site in found.model.sites()) == total - 3
    assert found.logit_difference <= 1e-5
    assert [point.kept for point in found.valid_curve] == [total, total - 1, total - 2, total - 3]
    assert found.valid_curve[0].exact_match == found.test.before.exact_match == 1.0
    assert found.valid_curve[-1].exact_match == found.test.after.exact_match
    site = model.sites()[0]
    width = next(iter(model.get_submodule(site.path).parameters())).shape[-1] // site.heads
    weights = 3 * (4 * width * site.heads * width + 3 * width)  # of q, k, v and output, and biases of three
    assert found.cost.before.parameters - found.cost.after.parameters == weights
    assert found.cost.after.multiply_adds < found.cost.before.multiply_adds
    assert PruningResult.from_json(found.to_json()).to_json() == found.to_json()
    again = found.model.prune(data, keep=total - 4)
    assert again.heads == total - 3
    assert found.model.ablate(data, baselines=("zero",)).exact_match == found.test.after.exact_match


def test_heads_that_do_nothing_go_first() -> None:
    tokens = torch.randint(7, (20, 5), generator=torch.Generator().manual_seed(0))
    data = examples(tokens, tokens[:, 0])
    model = wrap(First(), inputs=(tokens[:2],))
    for choice in ({"keep": 1}, {"loss": 0.01}, {"loss": 0.01, "method": "gates"}):
        found = model.prune(data, test=examples(tokens[:7], tokens[:7, 0]), **choice)
        assert found.kept == ["mix.0"]
        assert (found.test.after.examples, found.test.after.exact_match) == (7, 1.0)
    mean, best = (model.prune(data, keep=0, repair=repair) for repair in ("mean", "optimal"))
    assert mean.model.sites() == best.model.sites() == []
    assert best.valid_curve[-1].loss < mean.valid_curve[-1].loss
    with pytest.raises(LabError, match="the model First has no attention, so it has no heads to look at"):
        mean.model.ablate(data)


@torch.no_grad()
def test_a_pruned_module_of_torch_works_by_itself() -> None:
    """Torch's fast path knows nothing of fewer heads; it is not taken."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(36, 6, dim_feedforward=17, batch_first=True)
    model = wrap(nn.TransformerEncoder(layer, 2), inputs=(torch.randn(2, 13, 36),))
    rows = torch.randn(12, 13, 36)
    data = examples(rows, model(rows).argmax(dim=-1))
    for keep in (5, 0):
        small = model.prune(data, keep=keep).model
        torch.testing.assert_close(small.inner(rows), small(rows), rtol=1e-5, atol=1e-5)
        padded = torch.zeros(12, 13, dtype=torch.bool)
        assert small.inner(rows, src_key_padding_mask=padded).shape == rows.shape


@pytest.mark.parametrize("more", [{"add_bias_kv": True}, {"bias": False}, {"kdim": 3, "vdim": 2}])
@torch.no_grad()
def test_multihead_attention_of_every_form_is_cut(more: dict[str, Any]) -> None:
    model = wrap(loud(nn.MultiheadAttention(35, 5, batch_first=True, **more)))
    widths = more.get("kdim", 35), more.get("vdim", 35)
    inputs = (ROWS, *(torch.randn(2, 11, width) for width in widths))
    constants = {"attention": torch.randn(5, 7)}

    def put(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, [1, 4]] = constants["attention"][[1, 4], None]
        return z

    with edit(model, {"attention.z": put}):
        expected = model(*inputs)
    small = model.cut(["attention.1", "attention.4"], constants)
    torch.testing.assert_close(small(*inputs), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_llama_whose_heads_share_nothing_is_cut() -> None:
    transformers = import_transformers()
    config = transformers.LlamaConfig(
        hidden_size=60, num_attention_heads=6, num_hidden_layers=1, intermediate_size=17, vocab_size=101
    )
    model = wrap(loud(transformers.LlamaForCausalLM(config)), inputs=(TOKENS,))
    found = model.prune(with_answers(model, (TOKENS,)), keep=4)
    assert found.model.sites()[0].heads == 4


class Counting(nn.Module):
    """Has timm's names, but counts heads by itself."""

    def __init__(self, width: int = 105) -> None:
        super().__init__()
        self.own = 5
        self.qkv, self.proj = nn.Linear(35, width), nn.Linear(35, 35)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, self.own, 7).permute(2, 0, 3, 1, 4)
        found: Tensor = self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return found


class Shared(Counting):
    """All heads share one key and one value."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).split([35, 7, 7], dim=-1)
        q = q.view(*x.shape[:2], 5, 7).transpose(1, 2)
        z = F.scaled_dot_product_attention(q, k[:, None], v[:, None], enable_gqa=True)
        found: Tensor = self.proj(z.transpose(1, 2).flatten(2))
        return found


class Telling(nn.Module):
    """Uses the pattern of its one attention, too."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(35, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, pattern = self.attention(x, x, x)
        return out + pattern.sum()


@pytest.mark.parametrize(
    ("module", "inputs", "words"),
    [
        (
            llama,
            TOKENS,
            r"heads of model.layers.0.self_attn \(LlamaAttention\) share keys and values",
        ),
        (
            PlainStack,
            TOKENS,
            r"how layers.0 \(Plain\) keeps the weights of its heads is not known",
        ),
        (Counting, ROWS, r"the heads of Counting cannot be cut, since it does not run with fewer \(shape "),
        (
            lambda: Shared(49),
            ROWS,
            r"attention \(Shared\) does not make as many queries, keys and",
        ),
        (
            Telling,
            ROWS,
            "the attention attention gives its patterns too, so it cannot lose its last",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused_and_can_still_be_taken_out(
    module: Any, inputs: Tensor, words: str
) -> None:
    model = wrap(module().eval(), inputs=(inputs,))
    with torch.no_grad():
        whole = model(inputs)
    with pytest.raises(LabError, match=words):
        model.prune(examples(inputs, whole.argmax(dim=-1)), keep=0)
    with model.without(model.sites()[0].head_names[0]), torch.no_grad():
        assert not torch.equal(model(inputs), whole)


def test_choices_that_cannot_be_made() -> None:
    model = wrap(timm_vit(depth=1))
    data = examples(torch.rand(3, 3, 16, 16), torch.arange(3))
    with pytest.raises(
        InputError, match="repair is 'refit', which refits the linear maps of attnlab's own"
    ):
        model.prune(data, keep=1, repair="refit")
    with pytest.raises(LabError, match="keep is 5, but VisionTransformer has 5 heads; keep 0 to 4 of them"):
        model.prune(data, keep=5)


@pytest.mark.parametrize(
    ("name", "values"), [("timm", "qkv"), ("bert", "value"), ("gpt2", "c_attn"), ("llama", "v_proj")]
)
@torch.no_grad()
def test_supplied_heads_cost_no_queries_keys_and_values(name: str, values: str) -> None:
    """What the ablation of a layer need not compute again is not."""
    make, inputs = MODELS[name]
    model = wrap(make().eval(), inputs=inputs)
    path = model.sites()[-1].path
    with record(model, f"{path}.z") as seen:
        expected = model(*inputs)
    weight: Any = model.get_submodule(f"{path}.{values}").weight
    weight.fill_(torch.nan)
    assert model(*inputs).isnan().all()
    with supply(model, seen):
        torch.testing.assert_close(model(*inputs), expected, rtol=1e-5, atol=1e-5)


def test_modules_that_attnlab_knows_are_still_modules() -> None:
    model = wrap(bert().eval(), inputs=(TOKENS,))
    assert {type(part).__name__ for part in model.inner.modules()} >= {"BertSelfAttention", "Linear"}
    assert isinstance(wrap(torch_encoder(norm_first=True, batch_first=True)).inner, nn.TransformerEncoder)
    assert Plain().heads == 5
