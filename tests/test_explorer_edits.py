"""Edits of the explorer do what the analyses do, and what does nothing changes nothing."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.analysis.patch import Patching, head_site
from attnlab.errors import InputError, LabError
from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Edit, Off, Paint, Parts, Scale, Swap, changed, read_edit, write_edit
from attnlab.explorer.scene import ExampleInput, Question, Scene, TextInput, Want
from attnlab.front.loading import load
from attnlab.front.run import Run
from attnlab.model import Model
from attnlab.sets import shifted
from attnlab.taps import record
from every_model import CASES, Case

SUM, OTHER = "999+1", "374+814"
WRONG_ROW = {"0": [0.5, 0.25, 0.25]}


@pytest.fixture(scope="module")
def run() -> Run:
    return load("zoo:adder")


@pytest.fixture(scope="module")
def bench(run: Run) -> Bench:
    return Bench.of_run(run)


def look(bench: Bench, *edits: Edit, text: str = SUM, other: str | None = None, **want: Any) -> Scene:
    given = None if other is None else TextInput(other)
    return bench.look(Question(TextInput(text), given, edits, want=Want(**want)))


def alike(a: Scene, b: Scene, *, patterns: bool = True) -> None:
    """Both scenes show the same, up to rounding."""
    assert a.answer.text == b.answer.text
    for mine, yours in zip(a.answer.tokens, b.answer.tokens, strict=True):
        assert mine.probability == pytest.approx(yours.probability, abs=1e-5)
    for guess, wanted in zip(a.guesses, b.guesses, strict=True):
        np.testing.assert_allclose(guess.values.array, wanted.values.array, atol=1e-5)
    for path in a.patterns if patterns else ():
        np.testing.assert_allclose(a.patterns[path].array, b.patterns[path].array, atol=1e-5)


@pytest.mark.parametrize("to", ["zero", "mean"])
@pytest.mark.parametrize(
    ("at", "heads"),
    [
        ("encoder.1.self.2", ["encoder.1.self.2"]),
        ("decoder.0.cross", [f"decoder.0.cross.{n}" for n in range(4)]),
    ],
)
def test_off_is_what_without_measures(
    to: Any, at: str, heads: Sequence[str], run: Run, bench: Bench
) -> None:
    with run.without(*heads, to=to):
        predicted, recorded = run.predict(SUM), run.record(SUM, "*.pattern")
    scene = look(bench, Off(at, to))
    assert scene.answer.text == predicted.output
    assert scene.answer.probability == pytest.approx(predicted.probability, abs=1e-5)
    for path, pattern in scene.patterns.items():
        wanted = recorded[f"{path}.pattern"][0].as_subclass(Tensor)
        torch.testing.assert_close(torch.from_numpy(pattern.array), wanted)


@pytest.mark.parametrize(
    "edits",
    [
        (Off("encoder.0.self.0", "mean"), Scale("decoder.0.cross", 0.0)),
        (Swap("decoder.1"), Off("encoder.1.feed")),
        (Paint("decoder.1.cross.2", {"1": [0, 0, 0, 1, 0, 0, 0]}), Off("encoder.0", "resample")),
    ],
)
def test_the_line_of_python_does_what_the_page_shows(
    edits: tuple[Edit, ...], run: Run, bench: Bench
) -> None:
    scene = look(bench, *edits, other=OTHER)
    with run.changed(*map(write_edit, edits), other=OTHER) as changed_run:
        predicted = changed_run.predict(SUM)
        assert changed_run.edited
    assert not run.edited
    assert (predicted.output, predicted.correct) == (scene.answer.text, scene.answer.correct)
    assert predicted.probability == pytest.approx(scene.answer.probability, abs=1e-5)


def test_off_at_a_feed_leaves_its_bias(bench: Bench) -> None:
    parts = Parts.of(bench.inputs.model)
    example = bench.inputs.read(TextInput(SUM))
    stand_ins = {"encoder.0.feed.hidden": torch.zeros(1, 1, 512)}
    with (
        torch.no_grad(),
        changed(parts, [Off("encoder.0.feed")], lambda _: lambda: stand_ins),
        record(bench.inputs.model, "encoder.0.*residual.out") as seen,
    ):
        bench.inputs.model.encode(example.inputs[0])  # type: ignore[operator]
    before, after = (seen[f"encoder.0.{name}_residual.out"] for name in ("self", "feed"))
    bias = bench.inputs.model.encoder[0].feed.down.bias  # type: ignore[index, union-attr]
    torch.testing.assert_close(after, before + bias)


def test_a_layer_is_all_its_parts(bench: Bench) -> None:
    parts = ("decoder.0.self", "decoder.0.cross", "decoder.0.feed")
    for to in ("zero", "mean", "resample"):
        alike(look(bench, Off("decoder.0", to)), look(bench, *(Off(part, to) for part in parts)))


def test_what_does_nothing_changes_nothing(bench: Bench) -> None:
    clean = look(bench)
    alike(look(bench, Scale("encoder.0.self", 1), Scale("decoder.1.self.3", 1)), clean)
    rows = {str(n): row.tolist() for n, row in enumerate(clean.patterns["decoder.0.cross"].array[1])}
    own = {str(n): row.tolist() for n, row in enumerate(clean.patterns["decoder.1.self"].array[2])}
    alike(look(bench, Paint("decoder.0.cross.1", rows), Paint("decoder.1.self.2", own)), clean)
    alike(look(bench, Swap("encoder.0"), Swap("decoder.1.cross.0"), other=SUM), clean)
    alike(look(bench), clean)


def test_scores_times_zero_are_uniform_over_what_is_seen(bench: Bench) -> None:
    pattern = look(bench, Scale("decoder.0.self.1", 0)).patterns["decoder.0.self"].array
    for query in range(5):
        np.testing.assert_allclose(pattern[1, query, : query + 1], 1 / (query + 1), rtol=1e-6)
        assert not pattern[1, query, query + 1 :].any()
    np.testing.assert_allclose(pattern[0], look(bench).patterns["decoder.0.self"].array[0], atol=1e-6)


def test_scores_times_two_square_the_odds(bench: Bench) -> None:
    clean = look(bench).patterns["encoder.0.self"].array[3].astype(float)
    twice = look(bench, Scale("encoder.0.self.3", 2)).patterns["encoder.0.self"].array[3]
    np.testing.assert_allclose(twice, clean**2 / (clean**2).sum(axis=-1, keepdims=True), atol=1e-5)


def test_a_painted_row_is_what_the_head_looks_at(bench: Bench) -> None:
    row = [0.0, 0.25, 0.0, 0.5, 0.25, 0.0, 0.0]
    found = look(bench, Paint("encoder.0.self.2", {"3": row})).patterns["encoder.0.self"].array
    clean = look(bench).patterns["encoder.0.self"].array
    assert found[2, 3].tolist() == row
    found[2, 3] = clean[2, 3]
    np.testing.assert_allclose(found, clean, atol=1e-6)


def test_swapping_everything_gives_the_other_answer(bench: Bench) -> None:
    every = [Swap(layer.path) for layer in bench.describe().model.layers]
    scene = look(bench, *every, other=OTHER)
    assert (scene.answer.text, scene.input.truth, scene.answer.correct) == ("1188", "1000", False)
    other = look(bench, text=OTHER)
    for mine, yours in zip(scene.answer.tokens, other.answer.tokens, strict=True):
        assert mine.probability == pytest.approx(yours.probability, abs=1e-4)


def test_a_swapped_head_is_a_patched_head(run: Run, bench: Bench) -> None:
    """The decoder is fed what it says; the donor here says what patching feeds it."""
    task, heads = run.task, ("encoder.1.self.0", "decoder.0.cross.3")
    scene = look(bench, *map(Swap, heads), other=OTHER)
    fed = [task.symbols(torch.arange(14)).index(label) for label in scene.labels.answer]
    base, donor = task.parse(SUM), task.parse(OTHER)
    patching = Patching.between(
        run.model,
        (base.inputs[0], torch.tensor([fed])),
        (donor.inputs[0], shifted(donor.targets, 12)),
        lambda given: given[:, 0, 0],
    )
    wanted = patching.given([head_site(head) for head in heads])[0].softmax(dim=-1)
    assert scene.guesses[-1].values.array == pytest.approx(wanted.numpy(), abs=1e-5)


def test_edits_need_not_know_how_the_decoder_is_run(run: Run) -> None:
    """With a source encoded once, and with cached keys where only the encoder is edited."""
    source, model = run.task.parse(SUM).inputs[0], run.model
    for edit in (Off("encoder.1.self"), Off("decoder.1.cross.2", "mean"), Scale("decoder.0.self", 3)):
        with run.changed(edit):
            fast, slow = (model.greedy(source, start=12, length=5, cached=each) for each in (True, False))  # type: ignore[operator]
        assert torch.equal(fast, slow)


def test_inputs_of_other_lengths_are_swapped_as_far_as_they_go() -> None:
    bench = Bench.of_run(load("zoo:sorter"))
    values = {length: " ".join(map(str, range(1, length + 1))) for length in (5, 9)}
    model, parts = bench.inputs.model, Parts.of(bench.inputs.model)
    for mine, yours in ((5, 9), (9, 5)):
        given, other = (bench.inputs.read(TextInput(values[n])).inputs for n in (mine, yours))
        with torch.no_grad(), record(model, "encoder.0.self.z") as donor:
            model(*other)
        with torch.no_grad(), record(model, "encoder.0.self.z") as own:
            model(*given)
        edits = changed(parts, [Swap("encoder.0.self")], lambda _: dict, donor)
        with torch.no_grad(), edits, record(model, "encoder.0.self.z") as seen:
            model(*given)
        wanted = own["encoder.0.self.z"].clone()
        wanted[:, :, : min(mine, yours)] = donor["encoder.0.self.z"][:, :, :mine]
        assert torch.equal(seen["encoder.0.self.z"], wanted)
        scene = look(bench, Swap("encoder.0.self"), text=values[mine], other=values[yours])
        assert len(scene.labels.input) == mine


def test_resample_is_another_example_as_long() -> None:
    bench = Bench.of_run(load("zoo:sorter"))
    text = " ".join(map(str, range(11)))
    stand_ins = bench.answerer.stand_ins
    other = stand_ins.other(11)
    assert other.inputs[0].shape == (1, 11)
    rows = bench.inputs.split("valid").inputs[0]
    first = next(row for row in rows if int((row != bench.inputs.task.padding).sum()) == 11)
    assert torch.equal(other.inputs[0][0], first[:11])
    as_text = " ".join(map(str, first[:11].tolist()))
    swapped = look(bench, Swap("encoder.0.self.1"), text=text, other=as_text)
    alike(look(bench, Off("encoder.0.self.1", "resample"), text=text), swapped)


def test_python_resamples_by_the_length_of_each_input() -> None:
    run = load("zoo:sorter")
    bench = Bench.of_run(run)
    edit = Off("encoder.1", "resample")
    for text in ("3 5 5 9 8", "1 2 3 4 5 6 7 8 9", "1 2"):
        with run.changed(edit):
            predicted = run.predict(text)
        scene = look(bench, edit, text=text)
        assert predicted.output == scene.answer.text
        assert predicted.probability == pytest.approx(scene.answer.probability, abs=1e-5)


def test_examples_go_by_their_number(run: Run, bench: Bench) -> None:
    edit = Swap("encoder.0.self")
    known = bench.inputs.read(ExampleInput("test", 7)).shown.name
    scene = look(bench, edit, other=known)
    with run.changed(edit, other="test:7"):
        assert run.predict(SUM).output == scene.answer.text
    assert run.predict("test:7") == run.predict(known)
    with pytest.raises(InputError, match="there is no test example 2000; they go from 0 to 1,999"):
        run.predict("test:2000")
    with pytest.raises(InputError, match="'test:' is not a sum"):
        run.predict("test:")
    with pytest.raises(InputError, match="an input of the task 'addition' is a text"), run.changed(other=7):
        pass


def test_a_place_beyond_the_known_takes_the_last(bench: Bench) -> None:
    parts, values = Parts.of(bench.inputs.model), torch.arange(6.0).reshape(1, 1, 3, 2).expand(1, 4, 3, 2)
    tap = parts.taps["encoder.0.self.z"]
    with changed(parts, [Off("encoder.0.self.1")], lambda _: lambda: {"encoder.0.self.z": values}):
        moved = tap(torch.full((2, 4, 5, 2), -1.0))
    assert moved[0, 1].tolist() == [[0, 1], [2, 3], [4, 5], [4, 5], [4, 5]]
    assert (moved[:, [0, 2, 3]] == -1).all()


def test_later_edits_of_one_output_come_later(bench: Bench) -> None:
    both = look(bench, Swap("encoder.0.self.1"), Off("encoder.0.self.1"), other=OTHER)
    alike(both, look(bench, Off("encoder.0.self.1")))


REFUSED: list[tuple[Edit, str]] = [
    (Off("encoder.0.slef.1"), "no head, site, feed or layer 'encoder.0.slef.1'; did you mean"),
    (Off("encoder.0.self.4"), "no head, site, feed or layer 'encoder.0.self.4'"),
    (Off("encoder.0.self.01"), "no head, site, feed or layer"),
    (Scale("encoder.0", 1), "no head or site 'encoder.0'"),
    (Paint("encoder.0.self", WRONG_ROW), "encoder.0.self is a site"),
    (Paint("encoder.0.self.0", WRONG_ROW), "painted row 0 of encoder.0.self.0 has 3 weights for 7 keys"),
    (Paint("decoder.0.self.0", WRONG_ROW), "looks at tokens that come later"),
    (Swap("encoder.0.self.0"), "to swap encoder.0.self.0, another input is needed"),
]


@pytest.mark.parametrize(("edit", "message"), REFUSED)
def test_an_edit_that_cannot_be_is_refused(edit: Edit, message: str, bench: Bench) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        look(bench, edit)
    assert not any(tap.active for tap in Parts.of(bench.inputs.model).taps.values())


def test_edits_are_read_as_they_are_written() -> None:
    for edit in (Off("a.0", "resample"), Scale("a", 2), Paint("a.0", {"3": [0.5, 0.5]}), Swap("a")):
        assert read_edit(write_edit(edit)) == read_edit(edit) == edit
    with pytest.raises(InputError, match="no 'op'"):
        read_edit({"at": "a"})


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_model_can_be_edited_and_read_early(case: Case) -> None:
    model, inputs = case.build().eval(), case.inputs()
    parts = Parts.of(model)
    early = model.early_streams()
    with torch.no_grad(), record(model, *parts.outputs(), *early) as seen:
        logits = model(*inputs)
        if early:
            torch.testing.assert_close(model.early(seen[early[-1]], *inputs), logits)
    every = [Swap(layer) for layer in parts.layers]
    with torch.no_grad(), changed(parts, every, lambda _: dict, seen):
        torch.testing.assert_close(model(*inputs), logits)
    assert {part for inside in parts.layers.values() for part in inside} == {*parts.sites, *parts.feeds}
    read = [name.rsplit(".", 2)[0] for name in early]
    last = list(parts.layers)[-1:]
    assert read == [each for each in parts.layers if each.split(".")[0] == last[0].split(".")[0]]


class Plain(Model):
    """A model that says nothing about itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_model_that_knows_no_early_readout_says_so() -> None:
    with pytest.raises(LabError, match="the model Plain has no readout that can be applied early"):
        Plain().early(torch.zeros(1, 2, 3))


def test_a_wrapped_model_is_edited_alike() -> None:
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(10, 5, 7, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    module = nn.Sequential(nn.Embedding(13, 10), encoder, nn.Flatten(), nn.Linear(70, 3))
    data = attnlab.examples(torch.randint(13, (11, 7)), torch.randint(3, (11,)))
    model = attnlab.wrap(module.eval(), inputs=data.inputs)
    bench = Bench.of_model(model, data)
    first, second = bench.describe().model.sites
    question = Question(ExampleInput("valid", 2))
    one = data.inputs[0][2:3]
    for to in ("zero", "mean"):
        with model.without(f"{first.path}.3", to=to, data=data), torch.no_grad():
            wanted = model(one).softmax(dim=-1)[0]
        scene = bench.look(replace(question, edits=(Off(f"{first.path}.3", to),)))
        for label, chance in scene.answer.tokens[0].top:
            assert chance == pytest.approx(wanted[int(label)].item(), abs=1e-5)
    painted = bench.look(
        replace(question, edits=(Paint(f"{second.path}.0", {"6": [0, 0, 1, 0, 0, 0, 0]}),))
    )
    assert painted.patterns[second.path].array[0, 6].tolist() == [0, 0, 1, 0, 0, 0, 0]
    flat = bench.look(replace(question, edits=(Scale(first.path, 0),)))
    np.testing.assert_allclose(flat.patterns[first.path].array, 1 / 7, rtol=1e-6)
