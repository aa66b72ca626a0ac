"""The explorer with tasks and models of one's own, snapshots, models without attention, several askers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab import registry
from attnlab.defaults import default_spec
from attnlab.errors import InputError
from attnlab.explorer.bench import Bench
from attnlab.explorer.edits import Edit, Off, Paint, Scale, Swap
from attnlab.explorer.scene import ExampleInput, Job, LayerForm, Question, SnapshotForm, TextInput, Want
from attnlab.explorer.tasks import Inputs
from attnlab.models import build_for
from attnlab.runs import RunFolder, keep_snapshot
from attnlab.specs import CNNModel, PatchSeq2SeqModel, Seq2SeqModel, Task, TokensModel
from tiny import tiny
from tiny_digits import VIT, untrained, untrained_digits, untrained_grids

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    monkeypatch.setattr(registry, "_sources", dict(registry._sources))


def own_run(folder: Path, name: str, **fields: int) -> RunFolder:
    """A run of an example's task, with its first weights."""
    (kind,) = registry.tasks_in(str(EXAMPLES / f"{name}.py")).values()
    spec = default_spec(kind(train=60, valid=20, test=20, **fields))
    model: Seq2SeqModel | TokensModel
    if name == "reverse":
        model = Seq2SeqModel(width=12, heads=3, encoder_layers=1, decoder_layers=2, hidden=5)
    else:
        model = TokensModel(width=12, heads=3, layers=2, hidden=5, pooling="cls")
    return untrained(folder / name, replace(spec, model=model))


def test_rows_are_reversed(tmp_path: Path) -> None:
    run = own_run(tmp_path, "reverse", length=5)
    bench = Bench.of_run(run)
    subject = bench.describe()
    assert (subject.task.kind, subject.task.input, subject.task.answer) == ("reverse", "text", "sequence")
    assert subject.title == "Saying a row of digits from its end to its beginning"
    assert len(subject.task.suggestions) == 3
    assert subject.task.labels == [*"0123456789", "⊣", "⊢"]
    known = bench.look(Question(TextInput(subject.task.suggestions[0])))
    assert known.input.truth == subject.task.suggestions[0][::-1]
    scene = bench.look(Question(TextInput("314")))
    assert (scene.input.truth, scene.answer.correct) == (None, None)
    assert scene.labels.input == ["3", "1", "4"]
    assert [label[0] for label in scene.labels.answer] == [
        "⊢",
        *(t.label for t in scene.answer.tokens[:-1]),
    ]
    assert [token.label for token in scene.answer.tokens[-2:]] != ["⊣", "⊣"]  # what fills up is not shown
    assert scene.patterns["decoder.1.cross"].shape == (3, len(scene.answer.tokens), 3)
    assert bench.work(Job("heads", input=TextInput("314"))).tables
    with pytest.raises(InputError, match="'x' is not one of the symbols"):
        bench.look(Question(TextInput("3x4")))


def test_brackets_have_a_token_in_front(tmp_path: Path) -> None:
    bench = Bench.of_run(own_run(tmp_path, "brackets", pairs=4))
    subject, scene = bench.describe(), bench.look(Question(TextInput("(()")))
    assert scene.labels.input == ["cls", "(", "(", ")"]
    assert scene.patterns["encoder.0.self"].shape == (3, 4, 4)
    assert (subject.task.labels, subject.task.answer) == (["no", "yes"], "class")
    assert [each.name for each in subject.task.splits["valid"]][-3:] == ["wrong", "wrong: no", "wrong: yes"]
    edits = (Off("encoder.0", "mean"), Off("encoder.1.self.0", "resample"), Scale("encoder.1.self", 2))
    assert (
        bench.look(Question(TextInput("(()"), edits=edits)).answer.tokens[0].top
        != scene.answer.tokens[0].top
    )
    longer = TextInput("(((())))")
    assert bench.look(Question(TextInput("(()"), longer, (Swap("encoder.0.feed"),))).answer.correct is None


def test_snapshots_are_other_weights(tmp_path: Path) -> None:
    spec = tiny()
    run = untrained(tmp_path / "run", spec)
    for step in (3, 7):
        torch.manual_seed(step)
        keep_snapshot(run, step, build_for(spec).state_dict())
    bench = Bench.of_run(run)
    assert bench.describe().snapshots == [SnapshotForm(3, None, None), SnapshotForm(7, None, None)]
    assert bench.describe().abilities.snapshots
    question = Question(TextInput("1+2"))
    first, third = bench.look(question), bench.look(replace(question, snapshot=3))
    assert first.answer.probability != third.answer.probability
    again = Bench.of_run(untrained(tmp_path / "other", spec))
    torch.manual_seed(3)
    again.inputs.model.load_state_dict(build_for(spec).state_dict())
    assert again.look(question).answer == third.answer
    assert bench.work(Job("heads", examples=5, snapshot=7)).tables
    with pytest.raises(InputError, match="no snapshot 4; known: 3, 7"):
        bench.look(replace(question, snapshot=4))


def test_python_answers_with_the_weights_of_a_snapshot(tmp_path: Path) -> None:
    run = attnlab.load(untrained(tmp_path / "run", tiny()).path)
    torch.manual_seed(3)
    keep_snapshot(run, 3, build_for(tiny()).state_dict())
    edit = Off("encoder.0.self.0", "mean")
    bench, before = Bench.of_run(run), run.predict("1+2")
    for edits in ((), (edit,)):
        scene = bench.look(Question(TextInput("1+2"), edits=edits, snapshot=3))
        with run.changed(*edits, snapshot=3):
            assert run.edited
            predicted = run.predict("1+2")
        assert predicted.output == scene.answer.text
        assert predicted.probability == pytest.approx(scene.answer.probability, abs=1e-6)
        assert predicted.probability != before.probability
    assert run.predict("1+2") == before
    with pytest.raises(InputError, match="no snapshot 4; known: 3"), run.changed(snapshot=4):
        pass


def test_a_model_without_attention_answers(tmp_path: Path) -> None:
    bench = Bench.of_run(untrained_digits(tmp_path, CNNModel(filters=3)))
    subject, scene = bench.describe(), bench.look(Question(ExampleInput("test", 2)))
    assert (subject.model.sites, subject.model.streams, subject.model.patches) == ([], [], None)
    assert (subject.abilities.ablate, subject.abilities.heads, subject.abilities.explain) == (False,) * 3
    assert (subject.baselines, scene.patterns, scene.guesses, scene.labels.input) == ([], {}, [], [])
    assert len(scene.answer.tokens) == 1


def test_a_token_stands_in_front_of_patches(tmp_path: Path) -> None:
    bench = Bench.of_run(untrained_digits(tmp_path, VIT))
    patches = bench.describe().model.patches
    assert patches is not None
    assert (patches.rows, patches.columns, patches.front) == (4, 4, 1)
    assert bench.look(Question(ExampleInput("test", 2))).labels.input[:3] == ["cls", "0,0", "0,1"]


def test_keys_that_are_joined_are_places(tmp_path: Path) -> None:
    model = PatchSeq2SeqModel(
        rows=1, columns=2, patch=7, width=12, heads=3, hidden=5, encoder_layers=1, decoder_layers=1,
        bridge="cells",
    )  # fmt: skip
    bench = Bench.of_run(untrained_grids(tmp_path, model, test=5))
    site = next(site for site in bench.describe().model.sites if site.kind == "cross")
    scene = bench.look(Question(ExampleInput("test", 1)))
    assert (site.keys, scene.labels.places) == ("places", ["0,0", "0,1"])
    assert scene.patterns[site.path].shape == (3, 2, 2)
    assert len(scene.labels.input) == 32
    assert all(token.label in "0123456789" for token in scene.answer.tokens)


def test_several_askers_do_not_disturb_each_other(tmp_path: Path) -> None:
    bench = Bench.of_run(untrained(tmp_path / "run", tiny()))
    edits: list[tuple[Edit, ...]] = [
        (),
        (Off("encoder.0.self.1"),),
        (Scale("decoder.0.cross", 0),),
        (Paint("encoder.0.self.0", {"1": [1, 0, 0]}),),
        (Off("decoder.0", "mean"), Swap("encoder.0")),
    ]
    questions = [Question(TextInput("1+2"), TextInput("9+8"), each) for each in edits]
    alone = [bench.look(each).answer for each in questions]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: bench.look(questions[n % 5]).answer, range(40)))
    assert answers == [alone[n % 5] for n in range(40)]


def test_guesses_and_neurons_follow_edits(tmp_path: Path) -> None:
    bench = Bench.of_run(untrained(tmp_path / "run", tiny()))
    want = Want(neurons="encoder.0.feed")
    off = bench.look(Question(TextInput("1+2"), edits=(Off("encoder.0.feed"),), want=want))
    assert off.neurons is not None
    assert not off.neurons.values.array.any()
    clean = bench.look(Question(TextInput("1+2"), want=want))
    assert not np.allclose(off.guesses[0].values.array, clean.guesses[0].values.array)


@attnlab.task(symbols="ab", classes=["no", "yes"])
def unwritten(rng: Random, length: int = 5) -> tuple[str, str]:
    """Whether it begins with an a."""
    row = "".join(rng.choice("ab") for _ in range(length))
    return row, "yes" if row[0] == "a" else "no"


class Silent(registry._tasks.pop("unwritten")):  # type: ignore[misc]  # a base that is made
    """A task whose inputs cannot be written as text."""

    kind = "silent"
    parse = Task.parse


def test_inputs_that_cannot_be_written_are_chosen() -> None:
    model = build_for(default_spec(Silent(train=6, valid=5, test=5)))
    inputs = Inputs(Silent(train=6, valid=5, test=5), model.eval(), 0, None, typed=True)
    bench = Bench("silent", "silent", inputs, facts=list)
    form = bench.describe().task
    assert (form.input, form.suggestions, form.placeholder) == ("examples", [], "")
    assert bench.look(Question(ExampleInput("valid", 1))).input.truth in ("no", "yes")


class Masked(nn.Module):
    """Tokens with a mask of padding, to a class."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(13, 10)
        self.layer = nn.TransformerEncoderLayer(10, 5, 7, batch_first=True, norm_first=True)
        self.out = nn.Linear(10, 3)

    def forward(self, tokens: Tensor, src_key_padding_mask: Tensor) -> Tensor:
        x = self.layer(self.table(tokens), src_key_padding_mask=src_key_padding_mask)
        own = ~src_key_padding_mask[..., None]
        found: Tensor = self.out((x * own).sum(dim=1) / own.sum(dim=1))
        return found


def test_padding_of_a_wrapped_model_is_left_away() -> None:
    torch.manual_seed(2)
    tokens, mask = torch.randint(13, (11, 7)), torch.zeros(11, 7, dtype=torch.bool)
    mask[4, 5:], mask[6, 5:], mask[:4, 6:] = True, True, True
    data = attnlab.examples((tokens, mask), torch.randint(3, (11,)))
    model = attnlab.wrap(Masked().eval(), inputs={"tokens": tokens, "src_key_padding_mask": mask})
    bench = Bench.of_model(model, data)
    question = Question(ExampleInput("test", 6), edits=(Off("layer.self_attn.3", "resample"),))
    scene = bench.look(replace(question, edits=()))
    assert scene.labels.input == [str(token) for token in tokens[6, :5].tolist()]
    assert scene.patterns["layer.self_attn"].shape == (5, 5, 5)
    swap = replace(question, other=ExampleInput("test", 4), edits=(Swap("layer.self_attn.3"),))
    assert bench.look(question).answer == bench.look(swap).answer != scene.answer
    assert bench.describe().model.layers == [LayerForm("layer", ["layer.self_attn"])]
    assert bench.examples("valid", "wrong").total == sum(
        bench.look(Question(ExampleInput("valid", n))).answer.correct is False for n in range(11)
    )
