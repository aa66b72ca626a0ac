"""What is changed in a model of the engine changes it as the same edit of torch's taps does."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.explorer.description import EngineDescription
from attnlab.models import build_model
from attnlab.specs import PatchAttentionModel, Tokens, TokensModel
from attnlab.taps import record
from engine_twins import (
    ANSWER,
    EDITED,
    EXAMPLE,
    GREY,
    SMALL,
    Change,
    Twin,
    agree,
    edited_twin,
    make_input,
    make_twin,
    outputs,
)
from js_engine import EngineError, engine


def put(given: Tensor, head: int | None = None, *, keep: bool = False) -> Change:
    """``given`` in the place of a value; beyond its places its last one, or what was there."""

    def change(value: Tensor) -> Tensor:
        count, known = value.shape[-2], given.shape[-2]
        new = given[..., torch.arange(count).clamp(max=known - 1), :].expand_as(value).clone()
        if keep:
            new[..., known:, :] = value[..., known:, :]
        if head is None:
            return new
        mixed = value.clone()
        mixed[:, head] = new[:, head]
        return mixed

    return change


def times(by: float, heads: Sequence[int]) -> Change:
    def change(scores: Tensor) -> Tensor:
        new = scores.clone()
        for head in heads:
            new[:, head] = torch.where(scores.isinf(), scores, by * scores)[:, head]
        return new

    return change


def paint(head: int, rows: dict[int, list[float]]) -> Change:
    def change(pattern: Tensor) -> Tensor:
        new = pattern.clone()
        for query, weights in rows.items():
            if query < pattern.shape[2]:
                new[:, head, query] = torch.tensor(weights)[: pattern.shape[3]]
        return new

    return change


ZERO = torch.zeros(1, 1, 1)


def off(at: str, to: str) -> dict[str, str]:
    return {"op": "off", "at": at, "to": to}


@pytest.fixture(params=EDITED)
def twin(request: pytest.FixtureRequest) -> Twin:
    return edited_twin(request.param)


def test_heads_sites_feeds_and_layers_can_be_zero(twin: Twin) -> None:
    first, last = twin.model.sites()[0].path, twin.model.sites()[-1].path
    layer = last.rpartition(".")[0]
    whole = {f"{layer}.*.z": put(ZERO), f"{layer}.feed.hidden": put(ZERO[0])}
    agree(twin, {f"{first}.z": put(ZERO, 0)}, edits=[off(f"{first}.0", "zero")])
    agree(twin, {f"{last}.z": put(ZERO)}, edits=[off(last, "zero")])
    agree(twin, {f"{layer}.feed.hidden": put(ZERO[0])}, edits=[off(f"{layer}.feed", "zero")])
    agree(twin, whole, edits=[off(layer, "zero")])


def test_means_stand_at_their_places_and_the_last_one_beyond(twin: Twin) -> None:
    sites, means = twin.model.sites(), twin.means
    first, last, head = sites[0].path, sites[-1].path, sites[-1].heads - 1
    layer = {name: put(means[name]) for name in ("encoder.0.self.z", "encoder.0.feed.hidden")}
    agree(twin, {f"{last}.z": put(means[f"{last}.z"], head)}, edits=[off(f"{last}.{head}", "mean")])
    agree(twin, {f"{first}.z": put(means[f"{first}.z"])}, edits=[off(first, "mean")])
    agree(twin, layer, edits=[off("encoder.0", "mean")])


def test_resampled_values_are_those_of_the_example(twin: Twin) -> None:
    source, _ = make_input(twin.spec, image=GREY, length=5, seed=EXAMPLE)
    values = outputs(twin.model, *twin.inputs(ANSWER, source))
    path = twin.model.sites()[-1].path
    feed = f"{path.rpartition('.')[0]}.feed"
    changes = {f"{path}.z": put(values[f"{path}.z"], 0), f"{feed}.hidden": put(values[f"{feed}.hidden"])}
    agree(twin, changes, edits=[off(f"{path}.0", "resample"), off(feed, "resample")])


def test_an_example_of_the_same_length_is_resampled_from() -> None:
    twin = edited_twin("tokens")
    examples = [{"tokens": [5, 6, 7]}, {"tokens": [9, 8, 7, 6, 5, 4, 3]}, {"tokens": [1] * 7}]
    made = engine().make("lengths", twin.described, twin.model.state_dict(), examples=examples)
    values = outputs(twin.model, torch.tensor([examples[1]["tokens"]]))
    found = made.look(twin.given, ["encoder.1.self.z"], [off("encoder.1.self", "resample")])
    torch.testing.assert_close(found["encoder.1.self.z"], values["encoder.1.self.z"], atol=1e-5, rtol=0)


def test_swapped_values_are_those_of_the_other_input(twin: Twin) -> None:
    source, other = make_input(twin.spec, image=GREY, length=5, seed=4)
    values = outputs(twin.model, *twin.inputs(twin.said(source), source))
    sites = twin.model.sites()
    first, last, head = f"{sites[0].path}.z", f"{sites[-1].path}.z", sites[0].heads - 1
    layer = {name: put(values[name], keep=True) for name in ("encoder.0.self.z", "encoder.0.feed.hidden")}
    for at, changes in (
        (f"{sites[0].path}.{head}", {first: put(values[first], head, keep=True)}),
        (sites[-1].path, {last: put(values[last], keep=True)}),
        ("encoder.0", layer),
    ):
        agree(twin, changes, edits=[{"op": "swap", "at": at}], other=other)


@pytest.mark.parametrize("by", [0, 0.25, 3])
def test_scores_are_scaled_where_a_key_is_seen(twin: Twin, by: float) -> None:
    for site in (twin.model.sites()[0], twin.model.sites()[-1]):
        name, last = f"{site.path}.scores", site.heads - 1
        agree(
            twin, {name: times(by, range(site.heads))}, edits=[{"op": "scale", "at": site.path, "by": by}]
        )
        agree(
            twin, {name: times(by, [last])}, edits=[{"op": "scale", "at": f"{site.path}.{last}", "by": by}]
        )


def test_painted_rows_take_the_place_of_the_pattern(twin: Twin) -> None:
    for site in twin.model.sites():
        name = f"{site.path}.pattern"
        with torch.no_grad(), record(twin.model, name) as seen:
            twin.model(*twin.inputs(ANSWER))
        _, _, queries, keys = seen[name].shape
        rows = {0: [1.0, *[0.0] * (keys - 1)], queries - 1: [0.25, *[0.0] * (keys - 2), 0.75]}
        painted = {str(row): weights for row, weights in rows.items()}
        edits = [{"op": "pattern", "at": f"{site.path}.0", "rows": painted}]
        agree(twin, {name: paint(0, rows)}, edits=edits)


def test_scores_come_first_then_the_pattern_then_outputs() -> None:
    twin, rows = edited_twin("seq2seq"), {2: [0.5, 0.5, 0, 0, 0, 0, 0]}
    agree(
        twin,
        {
            "decoder.1.cross.scores": times(2.0, [1]),
            "decoder.1.cross.pattern": paint(1, rows),
            "decoder.0.self.z": put(ZERO, 2),
            "encoder.1.feed.hidden": put(twin.means["encoder.1.feed.hidden"]),
        },
        edits=[
            off("encoder.1.feed", "mean"),
            {"op": "pattern", "at": "decoder.1.cross.1", "rows": {"2": rows[2]}},
            {"op": "scale", "at": "decoder.1.cross.1", "by": 2},
            off("decoder.0.self.2", "zero"),
        ],
    )


def test_an_attention_without_heads_has_nothing_to_switch_off() -> None:
    bare = PatchAttentionModel(width=12, heads=3, patch=4, projection=True, head_counts=(0,))
    agree(make_twin("no heads", bare), edits=[off("encoder.0.self", "zero")])


HEAD, LATER = "encoder.0.self.0", "decoder.0.self.0"


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (off("encoder.2.self", "zero"), r"no head, site, feed or layer 'encoder\.2\.self'"),
        (off("encoder.0.self.3", "zero"), r"no head, site, feed or layer 'encoder\.0\.self\.3'"),
        ({"op": "scale", "at": "encoder.0.feed", "by": 1}, r"no head or site 'encoder\.0\.feed'"),
        ({"op": "scale", "at": HEAD, "by": -1}, "by is -1; it must be from 0 to 100"),
        ({"op": "scale", "at": HEAD, "by": 101}, "by is 101; it must be from 0 to 100"),
        ({"op": "swap", "at": HEAD}, "to swap, another input is needed; give one as other"),
        ({"op": "pattern", "at": "encoder.0.self", "rows": {}}, "a pattern is painted for one head, but"),
        ({"op": "pattern", "at": HEAD, "rows": {"x": [1]}}, "a painted row is named 'x'"),
        (
            {"op": "pattern", "at": HEAD, "rows": {"0": [1]}},
            "the painted row 0 .* has 1 weights for 7 keys",
        ),
        ({"op": "pattern", "at": HEAD, "rows": {"0": [0.5] * 7}}, r"the painted row 0 sums to 3\.500"),
        ({"op": "pattern", "at": HEAD, "rows": {"0": [2, -1]}}, r"sums to 1\.000; its weights must be"),
        ({"op": "pattern", "at": LATER, "rows": {"0": [0, 1, 0, 0, 0]}}, "looks at tokens that come later"),
    ],
)
def test_an_edit_that_makes_no_sense_is_refused(edit: dict[str, Any], complaint: str) -> None:
    twin = edited_twin("seq2seq")
    with pytest.raises(EngineError, match=complaint):
        twin.engine.scene(twin.given, edits=[edit])


def test_what_is_put_in_a_places_value_must_be_known() -> None:
    spec, tokens = TokensModel(layers=1, **SMALL), Tokens.shared(3)
    weights = build_model(spec, vocabulary=3, tokens=tokens).state_dict()
    bare = engine().make("weights alone", EngineDescription(spec, 3, tokens), weights)
    for to, complaint in (
        ("mean", "the means of training examples are not known"),
        ("resample", "no example"),
    ):
        with pytest.raises(EngineError, match=complaint):
            bare.scene({"tokens": [1, 2]}, edits=[off("encoder.0", to)])
    some = {"encoder.0.self.z": torch.zeros(3, 1, 4)}
    part = engine().make("a part", EngineDescription(spec, 3, tokens), weights, means=some)
    with pytest.raises(EngineError, match=r"no values to put in the place of encoder\.0\.feed\.hidden"):
        part.scene({"tokens": [1, 2]}, edits=[off("encoder.0.feed", "mean")])
