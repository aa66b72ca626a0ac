"""The engine in JavaScript computes what torch computes: every model, and the shipped runs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.data.mnist import load_sample
from attnlab.explorer.description import EngineDescription, describe_engine
from attnlab.model import Model
from attnlab.models import build_model
from attnlab.runs import open_run
from attnlab.specs import (
    Alibi,
    CNNModel,
    GridRotary,
    ModelSpec,
    PatchAttentionModel,
    PatchSeq2SeqModel,
    Relative,
    Rotary,
    Seq2SeqModel,
    Tokens,
    TokensModel,
    VitModel,
)
from engine_twins import COLOUR, EDITED, GREY, SMALL, START, Shape, agree, close, edited_twin, make_twin
from every_model import CASES, WORDS, Case
from js_engine import Engine, EngineError, EngineModel, engine, pixels
from tiny_digits import untrained_digits


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_model_is_computed_as_torch_does(case: Case) -> None:
    agree(make_twin(case.name, case.spec))


MORE: dict[str, tuple[ModelSpec, Shape]] = {
    "colour": (
        VitModel(patch=6, layers=1, stem="conv", pooling="cls", positions=GridRotary(), **SMALL),
        COLOUR,
    ),
    "odd": (VitModel(patch=3, layers=1, stem="conv", activation="gelu", norm="post", **SMALL), COLOUR),
    "eights": (VitModel(patch=8, layers=1, stem="conv", pooling="attention", **SMALL), (1, 16, 24)),
    "grid": (
        PatchSeq2SeqModel(
            rows=3, columns=2, patch=4, stem="conv", bridge="cells", activation="gelu", **SMALL
        ),
        GREY,
    ),
    "memory": (
        PatchSeq2SeqModel(rows=2, columns=1, patch=6, decoder_layers=2, norm="post", **SMALL),
        COLOUR,
    ),
    "filters": (CNNModel(filters=3, kernel=5), (3, 11, 13)),
    "squares": (PatchAttentionModel(width=12, heads=2, patch=3), COLOUR),
    "beheaded": (
        PatchAttentionModel(width=12, heads=3, patch=4, projection=True, residual=True, head_counts=(0,)),
        GREY,
    ),
    "halved": (PatchAttentionModel(width=12, heads=3, patch=4, projection=True, head_counts=(2,)), GREY),
    "deep readout": (TokensModel(layers=1, pooling="lowest", readout="mlp", log_scale=3, **SMALL), GREY),
    "pruned": (
        TokensModel(
            layers=2,
            positions=Alibi(),
            window=3,
            head_counts=(1, 2),
            head_indices=(2, 0, 2),
            norm="post",
            **SMALL,
        ),
        GREY,
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_further_models_are_computed_as_torch_does(name: str) -> None:
    spec, image = MORE[name]
    agree(make_twin(name, spec, image=image))


@pytest.mark.parametrize("length", [1, 2, 3, 40])
def test_inputs_of_any_length(length: int) -> None:
    rows = TokensModel(layers=1, positions=Rotary(), log_scale=5, window=2, **SMALL)
    words = Seq2SeqModel(positions=Relative(buckets=6, distance=5, scale=1.0), **SMALL)
    named: dict[str, ModelSpec] = {"rows": rows, "words": words}
    for name, spec in named.items():
        agree(make_twin(f"{name} {length}", spec, length=length))


def test_padding_changes_nothing() -> None:
    twin = make_twin("front", TokensModel(layers=1, pooling="cls", **SMALL))
    padded = {**twin.given, "tokens": [*twin.given["tokens"], WORDS.padding, WORDS.padding]}
    assert twin.engine.scene(padded)["patterns"] == twin.engine.scene(twin.given)["patterns"]


def test_an_input_may_be_followed_by_another() -> None:
    twin = edited_twin("vit")
    other = {"pixels": {"shape": [1, 8, 12], "data": [7] * 96}}
    first = twin.engine.logits(twin.given)
    assert not close(twin.engine.logits(other), first)
    assert torch.equal(twin.engine.logits(twin.given), first)


# what a scene says


def test_only_what_is_wanted_is_given() -> None:
    twin = edited_twin("seq2seq")
    scene = twin.engine.scene(twin.given, want={"patterns": ["decoder.0.cross"], "guesses": False})
    assert list(scene["patterns"]) == ["decoder.0.cross"]
    assert scene["guesses"] == []
    assert scene["neurons"] is None
    assert twin.engine.scene(twin.given, want={"patterns": False})["patterns"] == {}


def test_an_answer_is_compared_with_the_truth() -> None:
    twin = edited_twin("seq2seq")
    said = twin.said()
    for target, correct in ((said, True), ([*said[:-1], said[-1] + 1], False), (None, None)):
        given = {**twin.given, "target": target, "name": "it", "truth": "that"}
        scene = twin.engine.scene(given)
        assert scene["answer"]["correct"] is correct
        assert (scene["input"]["name"], scene["input"]["truth"]) == ("it", "that")
    assert scene["answer"]["text"] == " ".join(map(str, said))
    assert scene["labels"]["answer"] == [str(START), *map(str, said[:-1])]
    assert scene["labels"]["places"] == ["1", "2", "3", "4", "5"]


def test_the_tasks_words_are_used() -> None:
    twin = edited_twin("grid")
    words = {"symbols": list("abcdefghij"), "places": ["0,0", "0,1"], "text": "read"}
    few = replace(twin.described, choices=10)  # the start token is never said
    made = engine().make("words", few, twin.model.state_dict(), words=words)
    scene = made.scene(twin.given)
    said = made.answer(twin.given)
    with torch.no_grad():
        wanted = twin.model(*twin.inputs(said))[0, :, :10]
    assert wanted.argmax(dim=-1).tolist() == said
    assert close(made.logits(twin.given, said), wanted)
    assert scene["answer"]["text"] == f"read {said}"
    assert [each["label"] for each in scene["answer"]["tokens"]] == ["abcdefghij"[each] for each in said]
    assert [each["place"] for each in scene["answer"]["tokens"]] == ["0,0", "0,1", "3", "4", "5"]
    assert all(label in "abcdefghij" for each in scene["answer"]["tokens"] for label, _ in each["top"])
    assert scene["labels"]["answer"][0] == "⊢"


def test_tokens_are_named_as_they_stand() -> None:
    front = make_twin("named", TokensModel(layers=1, pooling="cls", **SMALL))
    assert front.engine.scene(front.given)["labels"]["input"] == ["cls", *front.given["labels"]]
    assert edited_twin("vit").engine.scene(edited_twin("vit").given)["labels"] == {
        "input": ["cls", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"],
        "answer": [],
        "places": ["class"],
    }


def test_logits_of_a_given_answer() -> None:
    twin = edited_twin("grid")
    answer = [7, 3, 3, 0, 9]
    with torch.no_grad():
        wanted = twin.model(*twin.inputs(answer))[0]
    assert close(twin.engine.logits(twin.given, answer), wanted)


@pytest.mark.parametrize("name", EDITED)
def test_plain_loops_do_what_instructions_do(name: str) -> None:
    twin = edited_twin(name)
    plain = engine().make(f"plain {name}", twin.described, twin.model.state_dict(), kernels="plain")
    agree(replace(twin, engine=plain))


def test_nothing_but_the_language_is_needed() -> None:
    bare = Engine("for (const name of ['WebAssembly', 'setTimeout', 'console']) delete globalThis[name]")
    twin = edited_twin("vit")
    agree(replace(twin, engine=bare.make("bare", twin.described, twin.model.state_dict())))


def test_what_cannot_be_computed_is_refused() -> None:
    twin, image = edited_twin("seq2seq"), edited_twin("vit")
    for given, complaint in (
        ({}, "the model reads tokens, and the input has none"),
        ({"tokens": [WORDS.padding]}, "the input is empty"),
        ({"tokens": [99]}, "there is no token 99; tokens go from 0 to 12"),
    ):
        with pytest.raises(EngineError, match=complaint):
            twin.engine.scene(given)
    with pytest.raises(EngineError, match="the model reads an image, and the input has none"):
        image.engine.scene({"tokens": [1]})
    with pytest.raises(EngineError, match="the image is 1 x 8 x 8; it must be 1 x 8 x 12"):
        image.engine.scene(pixels(torch.zeros(1, 8, 8, dtype=torch.uint8)))
    with pytest.raises(EngineError, match=r"there is no feed-forward part 'encoder\.9\.feed'"):
        twin.engine.scene(twin.given, want={"neurons": "encoder.9.feed"})
    with pytest.raises(EngineError, match=r"there is no site 'encoder\.9\.self'"):
        twin.engine.scene(twin.given, want={"patterns": ["encoder.9.self"]})
    far = make_twin("far", next(case.spec for case in CASES if "randomised" in case.name))
    with pytest.raises(
        EngineError, match="21 tokens cannot be placed: the model's positions reach 19 tokens"
    ):
        far.engine.scene({"tokens": [1] * 20})
    short = make_twin("short", TokensModel(layers=1, pooling="boundary", **SMALL))
    with pytest.raises(EngineError, match="boundary pooling needs 2 tokens at least"):
        short.engine.scene({"tokens": [1]})


def test_a_model_that_is_not_known_is_refused() -> None:
    spec = TokensModel(layers=1, **SMALL)
    known = EngineDescription(spec, 3, Tokens.shared(3))
    with pytest.raises(EngineError, match=r"the weights have no encoder\.0\.self\.query\.weight"):
        engine().make("bare", known, {"embed.table.weight": torch.zeros(5, 12)})
    weights = build_model(spec, vocabulary=3, tokens=Tokens.shared(3)).state_dict()
    plain = known.to_json()
    for key, complaint in (("kind", "a model of kind new is unknown"), ("pooling", "pooling of kind new")):
        with pytest.raises(EngineError, match=complaint):
            engine().make_of("new", {**plain, "model": {**plain["model"], key: "new"}}, weights)
    positions = {**plain["model"], "positions": {"kind": "new"}}
    with pytest.raises(EngineError, match="positions of kind new are unknown"):
        engine().make_of("new", {**plain, "model": positions}, weights)
    vit = edited_twin("vit")
    with pytest.raises(EngineError, match="a model of images needs the description's image"):
        engine().make("blind", replace(vit.described, image=None), vit.model.state_dict())


# shipped runs


@cache
def shipped(name: str) -> tuple[Model, EngineModel, EngineDescription]:
    """A shipped run; of images with a scaling as it may be, since all of MNIST may not be there."""
    run = open_run(f"zoo:{name}")
    task, spec = run.spec().task, run.spec().model
    described = describe_engine(run) if not task.images else EngineDescription(
        spec, task.vocabulary, None, (1, 28, 28), (0.13, 0.31), task.start, None, task.target_length
    )  # fmt: skip
    return run.model, engine().make(name, described, run.model.state_dict()), described


@torch.no_grad()
def _same_answers(name: str, inputs: Tensor, given: Sequence[dict[str, Any]]) -> None:
    """The same answers, and logits within a tenth of what is promised."""
    model, other, described = shipped(name)
    said = model.answer(inputs, start=described.start, length=described.target_length)
    fed = [] if described.start is None else [torch.full_like(said[:, :1], described.start), said[:, :-1]]
    logits = model(inputs, torch.cat(fed, dim=1)) if fed else model(inputs)[:, None]
    for one, wanted, tokens in zip(given, logits, said.tolist(), strict=True):
        assert other.answer(one) == tokens
        torch.testing.assert_close(other.logits(one, tokens), wanted, atol=1e-4, rtol=0)


def test_the_adder_adds() -> None:
    task = open_run("zoo:adder").spec().task
    examples = task.splits(0).test[slice(0, 20)]
    given = [{"tokens": row} for row in examples.inputs[0].tolist()]
    _same_answers("adder", examples.inputs[0], given)
    assert [shipped("adder")[1].answer(each) for each in given] == examples.targets.tolist()


def test_the_sorter_judges_lists_of_any_length() -> None:
    for length in (2, 3, 16, 40):
        rows = torch.randint(100, (5, length))
        rows[0] = rows[0].sort().values
        _same_answers("sorter", rows, [{"tokens": row} for row in rows.tolist()])


def test_the_digits_and_the_grids_are_read() -> None:
    images = load_sample().test_images[:9]
    _same_answers("digit", (images.float() / 255 - 0.13) / 0.31, [pixels(each) for each in images])
    rows = [torch.cat(pair, dim=-1) for pair in pairwise(images)]
    grids = torch.stack([torch.cat(pair, dim=-2) for pair in pairwise(rows)])
    _same_answers("grid", (grids.float() / 255 - 0.13) / 0.31, [pixels(each) for each in grids])


def test_a_run_is_described(tmp_path: Path) -> None:
    adder = describe_engine(open_run("zoo:adder"))
    assert (adder.vocabulary, adder.start, adder.end, adder.target_length) == (14, 12, 13, 5)
    assert (adder.tokens, adder.image, adder.scaling) == (None, None, None)
    sorter = describe_engine(open_run("zoo:sorter"))
    assert (sorter.tokens, sorter.start, sorter.target_length) == (Tokens(102, 100, 101), None, 1)
    assert sorter.to_json()["model"]["positions"] == {"kind": "rotary", "base": 10000.0}
    digits = describe_engine(untrained_digits(tmp_path))
    assert (digits.image, digits.start) == ((1, 28, 28), None)
    assert digits.scaling == (0.0, 1.0)
