"""What holds for every method of a run that returns a result, and for the command that asks the same."""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

import attnlab as al
from attnlab.errors import InputError, RunError
from attnlab.front.run import Run
from attnlab.results import Result
from attnlab.runs import RunFolder, keep_snapshot, open_run
from commands import attnlab
from planted import ALIGN, planted_run

HEADS = {
    "adder": ["encoder.0.self.0"],
    "planted": [ALIGN],
    "sorter": [f"encoder.1.self.{head}" for head in range(4)],
}
"""The runs that are asked, each with heads that it needs."""
OWN = {"adder": {"verify"}, "sorter": {"lengths"}}
"""Commands that are analyses of one task."""
NO_RESULT = {
    "analyses": "names",
    "changed": "a context",
    "classifier": "of images; tests/test_front_images.py",
    "explore": "a page; tests/test_explorer_widget.py",
    "ensemble": "of images; tests/test_front_images.py",
    "maps": "of images; tests/test_front_images.py",
    "show": "of images; tests/test_front_images.py",
    "export": "a file",
    "handout": "a file; tests/test_handout.py",
    "predict_lines": "an iterator; tests/test_analysis.py",
    "pruning": "what prune found, kept",
    "record": "tensors",
    "report": "a page",
    "resume": "the run",
    "tables": "its card",
    "task": "its task",
    "without": "a context",
}
"""What is public of a run but gives no result to look at."""


def _as_it_is(data: Any) -> Any:
    return data


def _first_run(data: Any) -> Any:
    return data["runs"][0]


def _lasting(data: Any) -> Any:
    """What pruning twice gives twice: not the folder, nor the time that a pass takes."""
    cost = {when: {**data["cost"][when], "seconds": 0} for when in ("before", "after")}
    return {**data, "run": "", "cost": {**data["cost"], **cost}}


def _timeless(data: Any) -> Any:
    return {**data, "seconds": 0}


def _pruned(run: Run) -> Result:
    found = run.prune(keep=3, repair="mean", examples=23, out=run.path.with_name("smaller")).pruning
    assert found is not None
    return found


@dataclass(frozen=True)
class Call:
    """A method, the words of the command that asks the same, and what of its JSON is the result.

    ``inside`` says what comes of it while a head is taken out: another result, the same, or a refusal.
    ``of`` is the run that is asked.
    """

    ask: Callable[[Run], Result]
    words: str = ""
    printed: Callable[[Any], Any] = _as_it_is
    lasting: Callable[[Any], Any] = _as_it_is
    drawn: bool = True
    inside: str = "another"
    of: str = "adder"


CALLS = {
    "ablate": Call(
        lambda run: run.ablate(baselines=["zero"], examples=23), "ablate RUN --baselines zero --examples 23"
    ),
    "calibrate": Call(
        lambda run: run.calibrate(),
        "calibrate RUN",
        drawn=False,
        inside="calibrate() works on saved weights",
    ),
    "diagnose": Call(
        lambda run: run.diagnose(),
        "doctor RUN",
        lasting=_timeless,
        drawn=False,
        inside="diagnose() works on saved weights",
    ),
    "evaluate": Call(lambda run: run.evaluate(split="valid"), "evaluate RUN --split valid"),
    "explain": Call(lambda run: run.explain("74+814", place="10^1"), "explain RUN 74+814 --place 10^1"),
    "explain many": Call(lambda run: run.explain(many=2, seed=3), "explain RUN --many 2 --seed 3"),
    "heads": Call(lambda run: run.heads(examples=23), "heads RUN --examples 23"),
    "lengths": Call(
        lambda run: run.lengths(lengths="16,64", negatives="swap", examples=50),
        "lengths RUN --lengths 16,64 --negatives swap --examples 50",
        of="sorter",
    ),
    "patch": Call(lambda run: run.patch(column=1, pairs=3), "patch RUN --column 1 --pairs 3"),
    "patterns": Call(
        lambda run: run.patterns(example="74+814"), "patterns RUN --example 74+814", inside="the same"
    ),
    "patterns of a head": Call(
        lambda run: run.patterns(head="decoder.1.cross.2", examples=3),
        "patterns RUN --head decoder.1.cross.2 --examples 3",
        inside="the same",
    ),
    "positions": Call(lambda run: run.positions(length=7), "positions RUN --length 7", inside="the same"),
    "predict": Call(
        lambda run: run.predict("74+814"), "predict RUN 74+814", printed=lambda data: data[0], drawn=False
    ),
    "project": Call(
        lambda run: run.project(method="pca-kmeans", samples=31),
        "project RUN --method pca-kmeans --samples 31",
        printed=_first_run,
    ),
    "prune": Call(
        _pruned,
        "prune RUN --keep 3 --repair mean --examples 23 --out pruned",
        lasting=_lasting,
        inside="prune() works on saved weights",
        of="planted",
    ),
    "taps": Call(
        lambda run: run.taps(),
        "project RUN --tap list",
        printed=_first_run,
        drawn=False,
        inside="the same",
    ),
    "timelapse": Call(
        lambda run: run.timelapse(samples=31, examples=23),
        "timelapse RUN --samples 31 --examples 23",
        inside="timelapse() works on saved weights",
    ),
    "verify": Call(lambda run: run.verify(), "verify RUN", lasting=_timeless, of="planted"),
}
"""Every method that gives a result; a word behind it tells two calls of one method apart."""

Answers = Callable[[str], Result]
every_call = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contract")


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """A trained adder with few examples and two snapshots; it is not shipped, so it keeps what is found."""
    path = home / "adder"
    shutil.copytree(open_run("zoo:adder").path, path)
    spec = json.loads((path / "spec.json").read_text())
    spec["task"] |= {"train": 997, "valid": 101, "test": 103}
    RunFolder(path).write({"spec.json": json.dumps(spec).encode()})
    found = al.load(path)
    weights = found.model.state_dict()
    for step, scale in ((0, 0.5), (11, 1.0)):
        keep_snapshot(found, step, {name: scale * weight for name, weight in weights.items()})
    return found


@pytest.fixture(scope="module")
def runs(home: Path, run: Run) -> dict[str, Run]:
    """With a trained sorter, and with an adder of which every answer is known."""
    shutil.copytree(open_run("zoo:sorter").path, home / "sorter")
    planted_run(home / "planted")
    return {"adder": run, **{name: al.load(home / name) for name in ("sorter", "planted")}}


def state(run: Run) -> tuple[dict[str, torch.Tensor], list[object]]:
    """The weights, and everything else of a model that an analysis might leave changed."""
    model = run.model
    flags: list[object] = [module.training for module in model.modules()]
    flags += [(each.requires_grad, each.grad is None) for each in model.parameters()]
    flags += [len(module._forward_hooks) for module in model.modules()]
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    return weights, [*flags, run.edited, torch.get_num_threads()]


@pytest.fixture(scope="module")
def answers(runs: dict[str, Run]) -> Answers:
    """What each call gives, asked once; the model must be as it was afterwards."""
    known: dict[str, Result] = {}

    def answer(name: str) -> Result:
        if name not in known:
            run = runs[CALLS[name].of]
            weights, flags = state(run)
            known[name] = CALLS[name].ask(run)
            after, flags_after = state(run)
            assert flags_after == flags
            assert after.keys() == weights.keys()
            assert all(torch.equal(after[key], weight) for key, weight in weights.items())
        return known[name]

    return answer


def test_every_method_is_here(runs: dict[str, Run]) -> None:
    public = {name for name in vars(Run) if not name.startswith("_")}
    own = {name for names in OWN.values() for name in names}
    assert {name.split()[0] for name in CALLS} == public - NO_RESULT.keys() | own
    for name, names in OWN.items():
        assert names <= set(runs[name].analyses())
        assert names <= set(dir(runs[name]))


@every_call
def test_the_model_is_left_as_it_was_and_rows_are_tidy(name: str, answers: Answers) -> None:
    found = answers(name)
    frame, rows = found.frame(), found.records()
    assert len(frame) == len(rows) > 0
    assert {tuple(row) for row in rows} == {tuple(frame.columns)}
    kinds = {type(each) for row in rows for each in row.values()}
    assert kinds <= {str, int, float, bool, type(None)}
    assert not frame.duplicated().any()


class Balanced(HTMLParser):
    """Refuses a tag that is closed out of turn; ``open`` are those that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@every_call
def test_a_result_is_a_table_in_a_notebook(name: str, answers: Answers) -> None:
    page = Balanced()
    page.feed(answers(name)._repr_html_())
    page.close()
    assert page.open == []
    assert {"table", "tr", "td"} <= page.seen


@every_call
def test_a_result_is_drawn(name: str, answers: Answers) -> None:
    found = answers(name)
    if not CALLS[name].drawn:
        assert found.figures() == {}
        return
    assert isinstance(found.plot(), Figure)
    for each in found.figures().values():
        assert isinstance(each.draw(each.data), Figure)


@every_call
def test_the_command_prints_the_same(
    name: str, runs: dict[str, Run], answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.figures.style.write_picture", lambda path, data, drawn: [path])
    call = CALLS[name]
    run = runs[call.of]
    words = [str(run.path) if word == "RUN" else word for word in shlex.split(call.words)]
    run.file("figures").mkdir(exist_ok=True)
    printed = call.printed(json.loads(attnlab(*words, "--json", cwd=run.path.parent).stdout))
    if isinstance(printed, dict):
        printed.pop("files", None)
    own = json.loads(json.dumps(answers(name).to_json()))
    assert call.lasting(printed) == call.lasting(own)


def folder(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@every_call
def test_inside_of_without_nothing_is_kept(name: str, runs: dict[str, Run], answers: Answers) -> None:
    call, whole = CALLS[name], answers(name)
    run = runs[call.of]
    before = folder(run.path)
    with run.without(*HEADS[call.of]):
        if call.inside in ("another", "the same"):
            found = call.ask(run)
            same = call.lasting(found.to_json()) == call.lasting(whole.to_json())
            assert same is (call.inside == "the same")
        else:
            with pytest.raises(InputError) as refusal:
                call.ask(run)
            assert str(refusal.value).startswith(call.inside)
    assert folder(run.path) == before
    assert not run.edited


def test_a_page_of_a_changed_model_is_not_kept_with_the_run(run: Run, tmp_path: Path) -> None:
    with run.without(*HEADS["adder"]):
        with pytest.raises(InputError, match="out is empty, but the page of a model without some heads is"):
            run.report()
        run.report(tmp_path / "page.html", samples=23, sections=["good"])
    assert not run.file("report.html").exists()
    assert (tmp_path / "page.html").exists()


def test_a_training_is_not_taken_up_inside_of_without(run: Run) -> None:
    with (
        run.without(*HEADS["adder"]),
        pytest.raises(InputError, match=r"resume\(\) works on saved weights"),
    ):
        run.resume()


def test_a_pruned_run_knows_where_it_comes_from(run: Run, answers: Answers) -> None:
    answers("prune")
    smaller = al.load(run.path.with_name("smaller"))
    found = smaller.pruning
    assert found is not None
    assert (found.parent, len(found.kept), found.heads) == ("planted", 3, 18)
    assert run.pruning is None
    card = smaller._repr_html_()
    assert "3 of 18 heads of planted kept" in card
    with pytest.raises(RunError, match="smaller exists already and is not empty"):
        run.prune(keep=3, out=smaller.path)
