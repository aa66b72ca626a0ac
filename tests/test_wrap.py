"""Wrapped models compute what the module does, and their taps see what it computes."""

import copy
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.analysis.ablate.effects import ALL
from attnlab.errors import InputError, LabError
from attnlab.front.any_model import examples, wrap
from attnlab.taps import edit, record, supply, taps
from foreign_models import (
    IMAGES,
    MEMORY,
    MODELS,
    ROWS,
    TOKENS,
    Plain,
    PlainStack,
    bert,
    gpt2,
    prepare_torchvision,
    timm_vit,
    torch_encoder,
)

EXACT: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(params=MODELS, scope="module")
def wrapped(request: pytest.FixtureRequest) -> tuple[nn.Module, Any, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    make, inputs = MODELS[request.param]
    module = make().eval()
    return module, wrap(module, inputs=inputs), inputs


def output(given: Any) -> Tensor:
    found: Tensor = getattr(given, "logits", given)
    return found


@torch.no_grad()
def test_it_gives_what_the_module_gives_also_for_other_inputs(
    wrapped: tuple[nn.Module, Any, tuple[Tensor, ...]],
) -> None:
    module, model, inputs = wrapped
    turned = tuple(each.flip(-1) for each in inputs)
    torch.testing.assert_close(model(*turned), output(module(*turned)), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_patterns_are_distributions_and_weigh_the_values(
    wrapped: tuple[nn.Module, Any, tuple[Tensor, ...]],
) -> None:
    _, model, inputs = wrapped
    with record(model, *taps(model)) as seen:
        model(*inputs)
    for site in model.sites():
        pattern, v, z = (seen[f"{site.path}.{name}"] for name in ("pattern", "v", "z"))
        assert pattern.shape[1] == site.heads
        torch.testing.assert_close(pattern.sum(dim=-1), torch.ones(pattern.shape[:-1]), **EXACT)
        torch.testing.assert_close(pattern @ v, z, **EXACT)


@torch.no_grad()
def test_an_identity_edit_changes_nothing_and_a_head_taken_out_does(
    wrapped: tuple[nn.Module, Any, tuple[Tensor, ...]],
) -> None:
    _, model, inputs = wrapped
    before = model(*inputs)
    with edit(model, {name: lambda value: value * 1 for name in taps(model)}):
        torch.testing.assert_close(model(*inputs), before, rtol=1e-5, atol=1e-5)

    def without_first(z: Tensor) -> Tensor:
        z = z.clone()
        z[:, 0] = 0
        return z

    for site in model.sites():
        with edit(model, {f"{site.path}.z": without_first}):
            assert (model(*inputs) - before).abs().max() > 1e-6
    torch.testing.assert_close(model(*inputs), before, rtol=0, atol=0)


@torch.no_grad()
def test_what_is_supplied_is_not_computed_again(
    wrapped: tuple[nn.Module, Any, tuple[Tensor, ...]],
) -> None:
    _, model, inputs = wrapped
    with record(model, "*.out", "*.z") as seen:
        before = model(*inputs)
    first, last = model.sites()[0].path, model.sites()[-1].path
    names = list(seen)
    known = {name: seen[name] for name in names[: names.index(f"{last}.z") + 1]}
    with supply(model, known), record(model, "*.q", "*.z") as again:
        torch.testing.assert_close(model(*inputs), before, rtol=1e-5, atol=1e-6)
    assert f"{last}.q" not in again
    assert f"{last}.z" in again
    if first.partition(".")[0] == last.partition(".")[0]:  # its layer was supplied as a whole
        assert f"{first}.z" not in again


def test_the_module_is_left_as_it_was() -> None:
    module = timm_vit()
    module.train()
    module.get_submodule("blocks.1").eval()
    modes = [part.training for part in module.modules()]
    before, classes = copy.deepcopy(module.state_dict()), [type(part) for part in module.modules()]
    model = wrap(module)
    with torch.no_grad():
        model(IMAGES)
    assert [part.training for part in module.modules()] == modes
    assert [type(part) for part in module.modules()] == classes
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("more", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"bias": False}])
@torch.no_grad()
def test_multihead_attention_with_all_that_it_takes(batch_first: bool, more: dict[str, bool]) -> None:
    module = nn.MultiheadAttention(35, 5, batch_first=batch_first, **more).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    model = wrap(module)
    rows, keys = (x if batch_first else x.transpose(0, 1) for x in (ROWS, MEMORY))
    hidden = torch.zeros(13, 11, dtype=torch.bool)
    hidden[3, 2:7] = True
    masks = (None, hidden, torch.randn(13, 11), hidden.expand(10, -1, -1))
    padding = torch.zeros(2, 11, dtype=torch.bool)
    padding[1, 7:] = True
    for mask, pad, mean in itertools.product(masks, (None, padding), (False, True)):
        told: dict[str, Any] = {"attn_mask": mask, "average_attn_weights": mean}
        told["key_padding_mask"] = (
            pad if pad is None or mask is None or mask.dtype is torch.bool else pad * -9.0
        )
        wanted = module(rows, keys, keys, **told)
        found = model.inner(rows, keys, keys, **told)
        torch.testing.assert_close(found[0], wanted[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found[1], wanted[1], rtol=1e-4, atol=1e-5)
    single = model.inner(rows[:, 0], keys[:, 0], keys[:, 0]) if not batch_first else None
    if single is not None:
        torch.testing.assert_close(
            single[0], module(rows[:, 0], keys[:, 0], keys[:, 0])[0], rtol=1e-4, atol=1e-5
        )


@torch.no_grad()
def test_keys_and_values_may_have_widths_of_their_own() -> None:
    module = nn.MultiheadAttention(35, 5, kdim=3, vdim=2, batch_first=True).eval()
    inputs = (ROWS, MEMORY[..., :3], MEMORY[..., :2])
    model = wrap(module, inputs=inputs)
    torch.testing.assert_close(model(*inputs), module(*inputs)[0], **EXACT)


@torch.no_grad()
def test_hugging_face_says_the_same_of_its_patterns() -> None:
    module: Any = bert().eval()
    model = wrap(module)
    padding = torch.ones_like(TOKENS)
    padding[1, 9:] = 0
    masked = wrap(module, inputs={"input_ids": TOKENS, "attention_mask": padding})
    module.set_attn_implementation("eager")
    with record(model, "*.pattern") as seen:
        model(TOKENS)
    wanted = module(TOKENS, output_attentions=True).attentions
    for pattern, each in zip(seen.values(), wanted, strict=True):
        torch.testing.assert_close(pattern, each, **EXACT)
    with record(masked, "*.pattern") as seen:
        masked(TOKENS, padding)
    assert all(pattern[1, :, :, 9:].max() < 1e-6 for pattern in seen.values())
    mask = masked.input_mask(TOKENS, padding)
    assert mask is not None
    assert torch.equal(mask, padding.bool())
    module.set_attn_implementation("sdpa")
    last = wrap(module, inputs={"input_ids": TOKENS, "attention_mask": padding}, reads="last")
    assert last.read_weights(TOKENS, padding).argmax(dim=1).tolist() == [12, 8]


@torch.no_grad()
def test_causal_models_see_nothing_that_comes_later() -> None:
    for make in (gpt2, PlainStack):
        model = wrap(make(), inputs=(TOKENS,))
        with record(model, "*.pattern") as seen:
            model(TOKENS)
        assert all(torch.equal(each, each.tril()) for each in seen.values())


def test_sites_say_what_they_are() -> None:
    model = wrap(nn.Transformer(30, 6, 2, 2, 17, batch_first=True))
    found = [
        (site.path, site.stack, site.layer, site.kind, site.queries, site.keys) for site in model.sites()
    ]
    assert found[:2] == [
        (f"encoder.layers.{n}.self_attn", "encoder.layers", n, "self", "input", "input") for n in (0, 1)
    ]
    assert found[-1] == ("decoder.layers.1.multihead_attn", "decoder.layers", 1, "cross", "answer", "input")
    assert found[2][4:] == ("answer", "answer")


@torch.no_grad()
def test_which_tokens_are_read() -> None:
    shares = {
        reads: wrap(timm_vit(), reads=reads).read_weights(IMAGES) for reads in ("cls", "mean", "last")
    }
    assert torch.equal(shares["cls"], F.one_hot(torch.zeros(2, dtype=torch.long), 17).float())
    torch.testing.assert_close(shares["mean"], torch.full((2, 17), 1 / 17))
    assert torch.equal(shares["last"].argmax(dim=1), torch.tensor([16, 16]))


def test_copies_have_taps_of_their_own() -> None:
    model = wrap(PlainStack(), inputs=(TOKENS,))
    other = copy.deepcopy(model)
    with torch.no_grad(), record(other, "*.pattern") as seen:
        model(TOKENS)
        assert not seen
        other(TOKENS)
        assert len(seen) == 3


@torch.no_grad()
def test_hidden_keys_have_no_weight_at_all_in_scores() -> None:
    """So that heads are measured among the keys that a query sees."""
    model = wrap(gpt2())
    with record(model, "*.scores") as seen:
        model(TOKENS)
    for scores in seen.values():
        assert (scores > -torch.inf).sum(dim=-1)[0, 0].tolist() == list(range(1, 14))


@torch.no_grad()
def test_an_attention_by_itself_has_a_name() -> None:
    module = nn.MultiheadAttention(35, 5, batch_first=True).eval()
    model = wrap(module)
    assert [site.head_names[-1] for site in model.sites()] == ["attention.4"]
    with record(model, "attention.pattern") as seen:
        given = model(ROWS, MEMORY, MEMORY)
    assert seen["attention.pattern"].shape == (2, 5, 13, 11)
    torch.testing.assert_close(given, module(ROWS, MEMORY, MEMORY)[0], rtol=1e-4, atol=1e-5)


class ByKeywords(nn.Module):
    """Called by keywords, without an axis for heads; the first token sees nothing."""

    def forward(self, x: Tensor) -> Tensor:
        visible = torch.ones(len(x), x.shape[1], x.shape[1], dtype=torch.bool).tril(-1)
        return F.scaled_dot_product_attention(query=x, key=x, value=x, attn_mask=visible)


class Tupled(nn.Module):
    """Gives a tuple of one."""

    def forward(self, x: Tensor) -> Any:
        return (F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])[:, 0],)


class Unusual(nn.Module):
    """Attention as people call it too; the first with its weights, which are not used."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.MultiheadAttention(35, 5, batch_first=True)
        self.second, self.third = ByKeywords(), Tupled()
        self.readout = nn.Linear(35, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x, x, x)[0]
        x = x + self.second(x)
        (y,) = self.third(x)
        found: Tensor = self.readout((x + y).mean(dim=1))
        return found


def test_unusual_ways_to_call_attention() -> None:
    torch.manual_seed(0)
    module = Unusual().eval()
    model = wrap(module, inputs=(ROWS,))
    with torch.no_grad(), record(model, "*.pattern") as seen:
        torch.testing.assert_close(model(ROWS), module(ROWS), rtol=1e-5, atol=1e-5)
    assert seen["second.pattern"][:, 0, 0].abs().max() == 0
    assert [(site.path, site.heads) for site in model.sites()] == [
        ("first", 5),
        ("second", 1),
        ("third", 1),
    ]
    data = examples(ROWS, torch.tensor([1, 2]))
    found = model.ablate(data, baselines=("optimal", "zero"))
    with model.without("third.0"), torch.no_grad():
        loss = F.cross_entropy(model(ROWS), data.targets).item()
    rise = next(row for row in found.baselines["zero"] if row.head == "third.0").loss_rise.value
    assert found.loss + rise == pytest.approx(loss, abs=1e-5)
    model(ROWS).sum().backward()  # nothing of the trial stands in the way of gradients


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = NamedInner()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)["out"]
        return found


class NamedInner(Tupled):
    def forward(self, x: Tensor) -> Any:
        return {"out": super().forward(x)[0]}


def test_what_gives_neither_a_tensor_nor_a_tuple_is_refused() -> None:
    with pytest.raises(
        LabError, match="a module that computes attention gives a dict; what can be observed"
    ):
        wrap(Named(), inputs=(ROWS,))


def test_what_cannot_be_wrapped_is_refused() -> None:
    with pytest.raises(
        LabError, match="the module Linear computes no attention that can be seen; what can are"
    ):
        wrap(nn.Linear(3, 2), inputs=(torch.ones(1, 3),))
    with pytest.raises(
        InputError, match=r"what a PlainStack takes is not known; give a few examples: wrap"
    ):
        wrap(PlainStack())
    twice = nn.Sequential(*[Plain()] * 2)
    with pytest.raises(LabError, match="the module 0 computes attention 2 times in one pass"):
        wrap(twice, inputs=(ROWS,))


def test_a_wrong_copy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.foreign import observed

    honest = observed.AttentionTaps.attend
    monkeypatch.setattr(
        observed.AttentionTaps,
        "attend",
        lambda self, q, k, v, *, scale, **more: honest(self, q, k, v, scale=2 * scale, **more),
    )
    with pytest.raises(LabError, match=r"the wrapped PlainStack differs from the module by .*; at most"):
        wrap(PlainStack(), inputs=(TOKENS,))


def test_an_output_of_ones_own_can_be_made() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stack = PlainStack()

        def forward(self, tokens: Tensor) -> dict[str, Tensor]:
            return {"classes": self.stack(tokens)}

    with pytest.raises(InputError, match="the module gives a dict; output= must make a tensor of it"):
        wrap(Bag(), inputs=(TOKENS,))
    model = wrap(Bag(), inputs=(TOKENS,), output=lambda given: given["classes"])
    assert model(TOKENS).shape == (2, 7)


def labelled(count: int = 40) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(0)
    return torch.rand(count, 3, 16, 16, generator=chance), torch.randint(7, (count,), generator=chance)


@pytest.mark.parametrize("name", ["timm", "bert", "llama", "torch encoder, pre-norm", "by hand"])
def test_what_is_lost_is_what_a_plain_hook_says(name: str) -> None:
    """Each head taken out by hand, one pass each, against ``ablate``."""
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    module = nn.Sequential(make().eval(), Last()) if name.startswith(("llama", "torch")) else make().eval()
    model = wrap(module, inputs=inputs)
    with torch.no_grad():
        truth = model(*inputs).argmax(dim=-1)
        data = examples(inputs, truth)
        found = model.ablate(data, baselines=("zero",))
        assert found.exact_match == 1.0
        for site in model.sites():
            for index, head in enumerate(site.head_names):

                def out(z: Tensor, index: int = index) -> Tensor:
                    z = z.clone()
                    z[:, index] = 0
                    return z

                with edit(model, {f"{site.path}.z": out}):
                    logits = model(*inputs)
                with model.without(head):
                    torch.testing.assert_close(model(*inputs), logits, rtol=0, atol=0)
                right = (logits.argmax(dim=-1) == truth).double().mean().item()
                single = found.singles[head]
                assert single.lost[ALL].value == pytest.approx(1 - right)
                rise = (F.cross_entropy(logits, truth) - F.cross_entropy(model(*inputs), truth)).item()
                assert single.loss_rise.value == pytest.approx(rise, abs=1e-5)


class Last(nn.Module):
    """The last token's numbers, or logits, as those of a class."""

    def forward(self, given: Any) -> Tensor:
        return output(given)[:, -1]


def test_heads_pairs_and_shapley_values_of_a_wrapped_model() -> None:
    torch.manual_seed(0)
    images, labels = labelled()
    model = wrap(timm_vit(depth=2), reads="cls")
    data = examples(images, labels)
    found = model.heads(data)
    assert [row.head for row in found.heads] == [f"blocks.{n}.attn.{h}" for n in (0, 1) for h in range(5)]
    assert {row.kind for row in found.heads} == {"blocks self"}
    assert all(0 <= row.metrics["diagonal"].value <= 1 for row in found.heads)
    assert found.heads[0].metrics["diagonal"].uniform == pytest.approx(1 / 17)
    everything = model.ablate(
        data, baselines=("optimal", "mean", "zero", "resample"), pairs=True, shapley=3, training=data
    )
    assert list(everything.baselines) == ["optimal", "mean", "zero", "resample"]
    assert len(everything.pairs or []) == 45
    shapley = everything.shapley
    assert shapley is not None
    assert sum(row.value for row in shapley.ranked) == pytest.approx(shapley.whole - shapley.none)
    assert everything.strata == {str(each): int((labels == each).sum()) for each in range(7)}


def test_examples_of_tensors_datasets_and_loaders() -> None:
    images, labels = labelled(11)
    dataset = torch.utils.data.TensorDataset(images, labels)
    loader = torch.utils.data.DataLoader(dataset, batch_size=3)
    for made in (examples(images, labels), examples(dataset), examples(loader)):
        assert torch.equal(made.inputs[0], images)
        assert torch.equal(made.targets, labels)
    with pytest.raises(InputError, match="there are no labels; give inputs and labels, a Dataset or"):
        examples(images)
    with pytest.raises(InputError, match="there are 11 inputs for 10 labels; give one label for each"):
        examples(images, labels[:10])


def test_inputs_without_labels_are_refused_and_one_tensor_is_one_input() -> None:
    module = nn.Sequential(nn.Embedding(7, 8), nn.TransformerEncoderLayer(8, 2, 8, batch_first=True))
    tokens = torch.randint(7, (3, 5))
    model = wrap(module, inputs=tokens)
    assert [site.path for site in model.sites()] == ["1.self_attn"]
    unlabelled: Any = tokens
    for ask in (model.heads, model.ablate):
        with pytest.raises(
            InputError, match=r"data is a Tensor; give .* attnlab.examples\(inputs, labels\)"
        ):
            ask(unlabelled)


def test_examples_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="there are no examples to look at; give at least 1"):
        examples(iter([]))


def test_heads_go_only_towards_what_can_be_made() -> None:
    model = wrap(timm_vit(depth=1))
    with pytest.raises(InputError, match="to is 'mean', which is made from examples; give them as data"):
        model.without("blocks.0.attn.0", to="mean").__enter__()
    with pytest.raises(LabError, match=r"the model has no head 'blocks.0.attn.9'"):
        model.without("blocks.0.attn.9").__enter__()
    data = examples(*labelled(7))
    before = model(data.inputs[0])
    with model.without("blocks.0.attn.0", to="mean", data=data), torch.no_grad():
        assert not torch.equal(model(data.inputs[0]), before)


@pytest.mark.slow
def test_all_examples_of_the_page_run() -> None:
    prepare_torchvision()
    text = (Path(__file__).parents[1] / "docs/howto/own-model.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    found: dict[str, Any] = {"__name__": "example"}
    exec(compile("\n".join(blocks), "docs/howto/own-model.md", "exec"), found)
    assert [site.path for site in found["model"].sites()] == ["blocks.0", "blocks.1"]
    seen = found["seen"]["blocks.1.pattern"]
    assert seen.shape == (3, 4, 5, 5)
    assert seen.keys == [[str(token) for token in row] for row in found["tokens"][:3].tolist()]
    assert len(found["smaller"].kept) == 30
    assert found["smaller"].logit_difference < 1e-5
    assert found["pattern"].triu(diagonal=1).abs().max() == 0
    assert found["pattern"].shape == (3, 4, 11, 11)


class Ends(nn.Module):
    """A class from the last token alone."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = torch_encoder(norm_first=True, batch_first=True)
        self.readout = nn.Linear(35, 7)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.readout(self.stack(x)[:, -1])
        return found


@pytest.mark.parametrize(
    ("make", "inputs", "reads", "layer"),
    [
        (timm_vit, IMAGES, "cls", "blocks.2"),
        (bert, TOKENS, "cls", "bert.encoder.layer.2"),
        (Ends, ROWS, "last", "stack.layers.2"),
        (timm_vit, IMAGES, "mean", None),
        (timm_vit, IMAGES, "last", None),  # not true
        (lambda: timm_vit(class_token=False, global_pool="avg"), IMAGES, "cls", None),  # not true
        (gpt2, TOKENS, "last", None),
    ],
)
def test_tokens_that_are_not_read_are_left_out_of_the_last_layer(
    make: Any, inputs: Tensor, reads: Any, layer: str | None
) -> None:
    torch.manual_seed(0)
    module = make().eval()
    model, plain = wrap(module, inputs=(inputs,), reads=reads), wrap(module, inputs=(inputs,))
    with torch.no_grad(), record(model, "*.out", "*.z") as whole:
        wanted = model(inputs)
    with torch.no_grad(), record(model, "*.out", "*.z") as seen, model.brief():
        torch.testing.assert_close(model(inputs), wanted, rtol=1e-5, atol=1e-6)
    cut = {name for name, value in seen.items() if value.shape != whole[name].shape}
    site = model.sites()[-1].path
    assert cut == (set() if layer is None else {f"{layer}.out", f"{site}.out"})
    assert all(seen[f"{layer}.out"].shape[1] == 1 for _ in cut)
    data = examples(inputs, wanted.argmax(dim=-1))
    found, expected = (each.ablate(data, baselines=("mean", "zero"), pairs=True) for each in (model, plain))
    for name, rows in expected.baselines.items():
        for mine, row in zip(found.baselines[name], rows, strict=True):
            assert mine.loss == pytest.approx(row.loss, abs=1e-5)
    assert [row.lost.value for row in found.pairs or []] == [row.lost.value for row in expected.pairs or []]
