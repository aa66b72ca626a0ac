"""What is recorded of wrapped models: the values of their taps, and what rows stand for."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.analysis.record import Recording
from attnlab.errors import InputError, LabError
from attnlab.front.any_model import examples, wrap
from attnlab.sets import Examples
from attnlab.taps import record, taps
from foreign_models import (
    IMAGES,
    MODELS,
    ROWS,
    TOKENS,
    PlainStack,
    bert,
    import_transformers,
    timm_vit,
    torch_encoder,
)


@pytest.fixture(params=MODELS, scope="module")
def made(request: pytest.FixtureRequest) -> tuple[Any, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    make, inputs = MODELS[request.param]
    model = wrap(make().eval(), inputs=inputs)
    rows = [each if model._call.batch_first else each.transpose(0, 1) for each in inputs]
    return model, tuple(rows)


def test_every_tap_has_its_value_and_labels(made: tuple[Any, tuple[Tensor, ...]]) -> None:
    """Examples are along the first axis, whatever the module takes."""
    model, inputs = made
    seen = model.record(inputs)
    assert isinstance(seen, Recording)
    first = model.batch_first()
    with torch.no_grad(), record(first, *taps(first)) as plain:
        logits = first(*inputs)
    assert seen.keys() == plain.keys()
    for name, value in plain.items():
        assert torch.equal(torch.as_tensor(seen[name]), value)
    count = len(inputs[0])
    assert seen.examples == [f"input {number}" for number in range(count)]
    assert seen.answers == [
        " ".join(map(str, row)) for row in logits.argmax(dim=-1).reshape(count, -1).tolist()
    ]
    for site in model.sites():
        pattern = seen[f"{site.path}.pattern"]
        assert pattern.heads == site.head_names
        assert [len(each) for each in pattern.queries] == [pattern.shape[2]] * count
        assert [len(each) for each in pattern.keys] == [pattern.shape[3]] * count
        assert (seen[f"{site.path}.k"].keys, seen[f"{site.path}.k"].queries) == (pattern.keys, [])
        assert seen[f"{site.path}.z"].queries == seen[f"{site.path}.out"].queries == pattern.queries
        assert seen[f"{site.path}.out"].shape[:2] == (count, pattern.shape[2])


def test_patterns_are_drawn(made: tuple[Any, tuple[Tensor, ...]]) -> None:
    model, inputs = made
    path = model.sites()[-1].path
    seen = model.record(inputs, f"{path}.pattern", f"{path}.z")
    assert set(seen) == {f"{path}.pattern", f"{path}.z"}
    (found,) = seen.patterns(path, example=1)
    assert torch.equal(found.pattern, torch.as_tensor(seen[f"{path}.pattern"])[1])
    titles = {axes.get_title(loc="left") for axes in seen.plot(example=1).axes}
    assert {f"{path}.{head}" for head in range(len(found.pattern))} <= titles
    assert f"<td>{path}.pattern</td>" in seen._repr_html_()


def test_tokens_go_by_their_numbers_and_patches_by_row_and_column() -> None:
    tokens = wrap(PlainStack(1), inputs=(TOKENS,)).record(TOKENS, "*.pattern")
    assert tokens["layers.0.pattern"].keys == [[str(each) for each in row] for row in TOKENS.tolist()]
    patches = wrap(timm_vit(depth=1), reads="cls").record(IMAGES, "*.pattern")["blocks.0.attn.pattern"]
    assert patches.keys[1][:6] == ["cls", "0,0", "0,1", "0,2", "0,3", "1,0"]
    assert patches.queries == patches.keys
    vectors = wrap(torch_encoder(norm_first=True, batch_first=True)).record(ROWS, "*.pattern")
    assert vectors["layers.1.self_attn.pattern"].keys[0][:3] == ["1", "2", "3"]


def test_named_inputs_and_labels_of_ones_own() -> None:
    mask = torch.ones_like(TOKENS)
    mask[:, 9:] = 0
    model = wrap(bert(1), inputs={"input_ids": TOKENS, "attention_mask": mask}, reads="cls")
    name = model.sites()[0].path
    seen = model.record((TOKENS, mask))[f"{name}.pattern"]
    assert seen.keys[1] == [str(each) for each in TOKENS[1].tolist()]
    assert torch.as_tensor(seen)[..., 9:].abs().max() == 0
    words = [f"word{place}" for place in range(13)]
    one = model.record((TOKENS[:1], mask[:1]), "*.pattern", labels=words)
    assert one[f"{name}.pattern"].queries == [words]
    with pytest.raises(InputError, match="there are 2 labels for 13 tokens; give one for each"):
        model.record((TOKENS[:1], mask[:1]), labels=words[:2])
    with pytest.raises(InputError, match="there are labels for 2 inputs; give labels with a single input"):
        model.record((TOKENS, mask), labels=words)


def test_both_sides_of_an_encoder_decoder_go_by_their_own_tokens() -> None:
    transformers = import_transformers()
    config = transformers.BartConfig(
        d_model=12, encoder_layers=1, decoder_layers=1, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=7, decoder_ffn_dim=5, vocab_size=17,
        max_position_embeddings=23,
    )  # fmt: skip
    source, target = torch.tensor([[3, 5, 2, 7, 11]]), torch.tensor([[2, 4, 6]])
    module = transformers.BartForConditionalGeneration(config)
    model = wrap(module, inputs={"input_ids": source, "decoder_input_ids": target})
    own, cross = (next(s for s in model.sites()[1:] if s.kind == kind) for kind in ("self", "cross"))
    seen = model.record((source, target))
    assert seen[f"{own.path}.pattern"].keys == [["2", "4", "6"]]
    pattern = seen[f"{cross.path}.pattern"]
    assert (pattern.queries, pattern.keys) == ([["2", "4", "6"]], [["3", "5", "2", "7", "11"]])
    assert len(seen.answers[0].split()) == 3


def test_what_is_taken_out_is_recorded_so() -> None:
    model = wrap(PlainStack(2), inputs=(TOKENS,))
    data = examples(TOKENS, torch.tensor([1, 2]))
    whole = model.record(data, "layers.0.*")
    with model.without("layers.0.3"):
        masked = model.record(data, "layers.0.*")
    z, less = (torch.as_tensor(each["layers.0.z"]) for each in (whole, masked))
    assert less[:, 3].abs().max() == 0
    assert torch.equal(less[:, :3], z[:, :3])


def test_nothing_can_not_be_recorded() -> None:
    model = wrap(PlainStack(1), inputs=(TOKENS,))
    with pytest.raises(InputError, match="there is nothing to record; give at least one input"):
        model.record(TOKENS[:0])
    with pytest.raises(LabError, match=r"no tap matches 'layers\.0\.patern'; did you mean"):
        model.record(TOKENS, "layers.0.patern")
    empty = Examples((TOKENS[:0],), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InputError, match="nothing to record"):
        model.record(empty)
    assert isinstance(model.as_module(), nn.Module)
