"""The front door: training, loading and asking a run from Python."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab as al
from attnlab.analysis.ablate import baselines
from attnlab.analysis.predict import answer, fed_inputs
from attnlab.errors import LabError, SpecError
from attnlab.front.training import TrainingMeter
from attnlab.problems.addition import Addition
from attnlab.taps import edit
from attnlab.training import Trainer

SMALL: dict[str, Any] = {
    "digits": 2, "train": 400, "valid": 67, "test": 61, "width": 16, "heads": 2, "hidden": 31, "batch": 32,
    "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> al.Run:
    return al.train("addition", out=tmp_path_factory.mktemp("runs") / "small", epochs=3, seed=5, **SMALL)


@pytest.fixture
def fresh(run: al.Run) -> al.Run:
    """The same run, with a model that nobody has used."""
    return al.load(run.path)


def test_a_key_goes_by_its_last_word() -> None:
    made = al.spec("addition", digits=2, heads=1, lr=0.25, positions="rotary:base=50", seed=7)
    assert made.seed == 7
    assert isinstance(made.task, Addition)
    assert made.task.digits == 2
    assert (made.model.heads, made.training.lr) == (1, 0.25)  # type: ignore[union-attr]
    assert made.model.positions.base == 50  # type: ignore[union-attr]


def test_a_key_in_full_has_two_underscores() -> None:
    assert al.spec("addition", training__lr=0.5).training.lr == 0.5
    both = al.spec("grids", task__rows=1, model__rows=1, task__columns=3, model__columns=3)
    assert (both.task.rows, both.model.rows) == (1, 1)  # type: ignore[attr-defined, union-attr]


def test_a_spec_starts_from_a_task_a_class_or_a_spec() -> None:
    assert al.spec(Addition) == al.spec("addition")
    sums = Addition(digits=2, order="least", sampling="balanced", train=20_000)
    assert al.spec(sums) == al.spec("addition", digits=2)
    assert al.spec(al.spec("addition", heads=1), seed=3) == al.spec("addition", heads=1, seed=3)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"heds": 2}, "has no key 'heds'; did you mean 'heads'"),
        ({"heads": 3}, "model.heads is 3"),
        ({"lr": "fast"}, "training.lr is 'fast'"),
        ({"preset": "tiny"}, "unknown preset .tiny. of addition"),
    ],
)
def test_a_bad_key_is_one_sentence(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        al.spec("addition", **settings)


def test_a_key_that_two_groups_have_must_be_written_in_full() -> None:
    with pytest.raises(
        SpecError, match=r"'rows' could be task\.rows or model\.rows; write one of them in full"
    ):
        al.spec("grids", rows=1)
    with pytest.raises(SpecError, match="preset is 'quick', but the given spec has all keys already"):
        al.spec(al.spec("addition"), preset="quick")


def test_interrupting_saves_and_resuming_ends_with_the_same_bytes(
    run: al.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TrainingMeter.stepped

    def interrupt(self: TrainingMeter, trainer: Trainer) -> None:
        whole(self, trainer)
        if trainer.step == 17:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TrainingMeter, "stepped", interrupt)
    stopped = al.train(run.spec(), out=tmp_path / "stopped")
    assert stopped.summary() is None
    assert "stopped after 1 of 3 epochs" in stopped._repr_html_()
    monkeypatch.setattr(TrainingMeter, "stepped", whole)
    assert stopped.resume() is stopped
    for name in ("best.safetensors", "last.safetensors"):
        assert stopped.file(name).read_bytes() == run.file(name).read_bytes()


def test_resuming_forgets_the_model_that_was_read(run: al.Run, fresh: al.Run) -> None:
    before = fresh.model
    assert fresh.model is before
    assert fresh.resume().model is not before


def test_a_finished_run_stays_as_it_is(run: al.Run, capsys: pytest.CaptureFixture[str]) -> None:
    files = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.name != ".lock"}
    run.resume()
    al.load("zoo:adder").resume()
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert capsys.readouterr().err.endswith("zoo:adder is finished already\n")


def test_what_cannot_be_trained_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="checkpoint is -1, but it must be at least 0"):
        al.train("addition", out=tmp_path / "none", checkpoint=-1)
    with pytest.raises(SpecError, match="show is 4, which needs a task with images"):
        al.train("addition", out=tmp_path / "none", show=4)
    assert not (tmp_path / "none").exists()


def test_one_input_gives_one_answer_and_a_list_a_list(run: al.Run) -> None:
    one = run.predict("12+34")
    many = run.predict(["12+34", "99+1"])
    assert replace(many[0], probability=one.probability) == one
    assert many[0].probability == pytest.approx(one.probability, rel=1e-5)  # rounded otherwise
    assert [each.input for each in many] == ["12+34", "99+1"]
    assert one.text == one.output
    assert one.correct is (one.text == "46")
    with pytest.raises(al.InputError, match="line 2: "):
        run.predict(["1+1", "one and one"])
    with pytest.raises(al.InputError, match="there is nothing to answer"):
        run.predict([])


def test_a_recording_is_what_happens_while_it_decodes(run: al.Run) -> None:
    """Token by token, the last row of what is computed so far is the recording's row of that place."""
    seen, name = run.record("57+38"), "decoder.0.cross.z"
    task, example = run.task, run.task.parse("57+38")
    source, target = fed_inputs(task, example, answer(task, run.model, example))
    for place in range(target.shape[1]):
        found: list[Tensor] = []

        def keep(z: Tensor, found: list[Tensor] = found) -> Tensor:
            found.append(z)
            return z

        with torch.no_grad(), edit(run.model, {name: keep}):
            run.model(source, target[:, : place + 1])
        torch.testing.assert_close(found[0][:, :, -1], torch.as_tensor(seen[name])[:, :, place])


def test_a_recorded_value_knows_its_labels(run: al.Run) -> None:
    seen = run.record(["57+38", "99+01"])
    pattern = seen["decoder.1.cross.pattern"]
    assert pattern.shape == (2, 2, 4, 5)
    assert pattern.heads == ["decoder.1.cross.0", "decoder.1.cross.1"]
    assert pattern.keys == [["7", "5", "+", "8", "3"], ["9", "9", "+", "1", "0"]]
    assert [len(each) for each in pattern.queries] == [4, 4]
    assert seen["encoder.0.self.k"].keys == pattern.keys
    assert seen["encoder.0.self.k"].queries == []
    assert type(pattern * 2) is Tensor
    assert torch.equal(pattern.sum(dim=-1).round(decimals=4), torch.ones(2, 2, 4))
    assert seen.answers == [each.text for each in run.predict(["57+38", "99+01"])]


def test_a_recording_can_be_drawn_and_listed(run: al.Run) -> None:
    seen = run.record("57+38", "*.pattern")
    assert {name.rpartition(".")[2] for name in seen} == {"pattern"}
    assert len(seen.plot("decoder.*.cross").axes) >= 4
    assert "<td>decoder.1.cross.pattern</td><td>(1, 2, 4, 5)</td>" in seen._repr_html_()
    with pytest.raises(
        al.InputError, match=r"nothing was recorded at 'decoder\.1\.cross\.patern'; did you"
    ):
        seen["decoder.1.cross.patern"]
    with pytest.raises(al.InputError, match=r"no attention matches 'middle"):
        seen.plot("middle.*")
    with pytest.raises(al.InputError, match="example is 1; there are 1, counted from 0"):
        seen.plot(example=1)


def test_inputs_of_different_lengths_are_not_recorded_together(run: al.Run) -> None:
    sorter = al.load("zoo:sorter")
    assert sorter.record("3 5 5 9 8")["encoder.0.self.pattern"].keys == [["3", "5", "5", "9", "8"]]
    with pytest.raises(al.InputError, match="the inputs have different lengths"):
        sorter.record(["1 2 3", "1 2 3 4"])


@pytest.mark.parametrize("to", ["zero", "mean", "optimal"])
def test_without_a_head_a_run_is_what_ablate_measures(fresh: al.Run, to: Any) -> None:
    """By greedy decoding, also towards a mean that differs from place to place."""
    whole, heads = (
        fresh.evaluate(split="valid"),
        ["encoder.0.self.1", "decoder.1.self.0", "decoder.0.cross.0"],
    )
    alone = fresh.ablate(baselines=[to], heads=heads, examples=67).singles
    for head in heads:
        with fresh.without(head, to=to) as masked:
            assert masked is fresh
            found = fresh.evaluate(split="valid")
        assert found.exact_match == alone[head].exact_match
    assert fresh.evaluate(split="valid") == whole


def test_constants_are_fitted_once(fresh: al.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    whole = baselines.make_baseline

    def counting(name: Any, *rest: Any) -> Any:
        made.append(name)
        return whole(name, *rest)

    monkeypatch.setattr(baselines, "make_baseline", counting)
    for to, seed in (("mean", 0), ("mean", 0), ("optimal", 0), ("optimal", 0), ("mean", 1)):
        outer = fresh.without("encoder.0.self.1", to=to, seed=seed)  # type: ignore[arg-type]
        with outer, fresh.without("decoder.0.self.0"):  # what is made of an edited model is not kept
            one = fresh.evaluate(split="valid")
    assert made.count("mean") == 2
    assert made.count("optimal") == 1
    assert made.count("zero") == 5
    fresh.resume()
    with fresh.without("encoder.0.self.1", to="mean", seed=1), fresh.without("decoder.0.self.0"):
        assert fresh.evaluate(split="valid") == one
    assert made.count("mean") == 3


def test_what_an_edited_model_answers_is_not_kept(fresh: al.Run) -> None:
    fresh.evaluate(split="valid")
    kept = fresh.file("analysis/evaluate-valid.json").read_bytes()
    with fresh.without("decoder.0.cross.0", "decoder.0.cross.1"):
        assert fresh.analysis("evaluate-valid") is None
        fresh.evaluate(split="valid")
    assert fresh.file("analysis/evaluate-valid.json").read_bytes() == kept


def test_what_cannot_be_taken_out_is_refused(fresh: al.Run) -> None:
    with (
        pytest.raises(al.InputError, match="to is 'resample', which only ablate"),
        fresh.without("decoder.0.cross.0", to="resample"),
    ):
        pass
    with (
        pytest.raises(LabError, match=r"no head 'decoder\.0\.cross\.9'"),
        fresh.without("decoder.0.cross.9"),
    ):
        pass


def test_a_run_shows_as_a_card() -> None:
    card = al.load("zoo:adder")._repr_html_()
    for words in ("zoo:adder", "addition", "939,790", "100.00% correct", "seed 0"):
        assert words in card


def test_a_card_counts_the_examples_that_there_are(tmp_path: Path) -> None:
    """Sums of one digit have 55 unordered pairs, whatever the spec asks for."""
    run = al.train("addition", digits=1, width=16, heads=2, epochs=1, threads=1, out=tmp_path / "few")
    summary = run.summary()
    assert summary is not None
    train, valid = (len(part) for part in (run.task.splits(0).train, run.task.splits(0).valid))
    assert summary["examples"] == {"train": train, "valid": valid}
    assert train < 55
    assert f"train {train}, valid {valid}" in run._repr_html_()


def test_pruning_without_training_tells_of_no_epoch(
    run: al.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smaller = run.prune(keep=3, repair="mean", examples=23, out=tmp_path / "smaller")
    said = capsys.readouterr().err
    assert "epoch" not in said
    assert "training" not in said
    assert len((smaller.pruning or run).kept) == 3  # type: ignore[arg-type]


def test_runs_in_a_folder_are_listed(run: al.Run, tmp_path: Path) -> None:
    found = al.list_runs(run.path.parent)
    (row,) = found.records()
    assert (row["run"], row["task"], row["seed"], row["epochs"]) == ("small", "addition", 5, 3)
    assert (row["correct"], row["status"]) == (None, "finished")
    assert "<td>small</td>" in found._repr_html_()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/spec.json").write_text("{")
    broken = al.list_runs(tmp_path)
    assert broken.frame().status[0].startswith(f"run {tmp_path / 'broken'} is damaged")
    assert list(broken.frame().columns) == list(row)
    assert al.list_runs(tmp_path / "none").tables() == [f"there are no runs in '{tmp_path / 'none'}' yet"]
