"""``attnlab explain`` on every task, its figures by value, and what it refuses."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.analysis.explain import asking
from attnlab.analysis.explain.asking import Asked
from attnlab.analysis.explain.methods import METHODS
from attnlab.analysis.explain.perturbation import Question
from attnlab.analysis.explain.results import Explanation, Judgement, Place
from attnlab.analysis.explain.runs import (
    explain_run,
    explain_split,
    explainable,
    open_explained,
    wrong_words,
)
from attnlab.analysis.explain.verdict import judge_method, with_verdicts
from attnlab.analysis.image_classifier import image_classifier
from attnlab.analysis.samples import read_inputs as read_images
from attnlab.cli.explain import _short
from attnlab.cli.output import print_result
from attnlab.errors import InputError
from attnlab.figures.attribution import draw_effects, draw_explain, draw_explain_many, explain_data
from attnlab.figures.style import new_figure, to_svg
from attnlab.problems.addition import Addition
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.report.reasons import reasons_section
from attnlab.results import Estimate
from attnlab.runs import RunFolder, load_model, open_run, save_weights
from attnlab.specs import MLPModel, PatchSeq2SeqModel, Seq2SeqModel, Spec, TokensModel, VitModel
from commands import attnlab, complaint
from tiny_digits import untrained, untrained_digits, untrained_grids

EFFECTS = (0.5, 2.5, 0.1, -0.25, -3.0, 0.0, -0.7)
VIT = VitModel(width=12, heads=3, layers=1, hidden=7, patch=14, pooling="cls")
GRID = PatchSeq2SeqModel(width=12, heads=3, hidden=7, patch=14, rows=1, columns=2, encoder_layers=1)


def ask(*words: str, cwd: Path) -> str:
    return attnlab("explain", *words, cwd=cwd).stdout


def refused(*words: str, cwd: Path) -> str:
    return complaint("explain", *words, cwd=cwd)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with untrained runs: vit, mlp and grid."""
    home = tmp_path_factory.mktemp("explain")
    torch.manual_seed(1)
    untrained_digits(home, VIT)
    untrained_digits(home, MLPModel(hidden=3))
    untrained_grids(home, GRID, test=11)
    return home


def test_an_image(home: Path) -> None:
    found = json.loads(ask("vit", "test:7", "--json", "--out", "why/seven.svg", cwd=home))
    assert found["input"] == "test:7"
    assert found["parts"] == ["0,0", "0,1", "1,0", "1,1"]
    (place,) = found["places"]
    assert place["answer"] == found["output"]
    assert place["shares"] == [0, 0.25, 0.5, 0.75, 1]
    assert set(place["scores"]) == set(METHODS)
    assert "<svg" in (home / "why/seven.svg").read_text()
    assert json.loads((home / "why/seven.json").read_text())["grid"] == [2, 2]
    for each in place["curves"].values():  # both kinds of curve have the same ends
        for name in METHODS:
            assert each["deletion"][name][0] == pytest.approx(place["probability"], abs=1e-5)
            assert each["insertion"][name][-1] == pytest.approx(place["probability"], abs=1e-5)
            assert each["deletion"][name][-1] == pytest.approx(each["insertion"][name][0], abs=1e-5)


def test_every_digit_of_a_grid(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explain_run(open_run(str(home / "grid")), "test:0")
    assert [place.place for place in found.places] == ["0,0", "0,1"]
    assert "".join(place.answer for place in found.places) == found.output
    print_result(found, json=False)
    table = capsys.readouterr().out
    assert table.count("strongest patches") == 2
    assert found.truth is not None
    right = [place.answer == place.truth for place in found.places]
    assert right != [True, True]
    assert f"test:0 → {found.output}, wrong, it is {found.truth}; 0,0 is" in table
    wrong = "" if right[1] else f", wrong, it is {found.truth[1]}"
    assert f"; 0,1 is {found.output[1]}{wrong} (p" in table
    check = [place.shuffled["rollout"].value for place in found.places]
    rows = [line.split() for line in table.splitlines() if line.startswith(" rollout")]
    assert [row[5] for row in rows] == [
        f"{rho:z.2f}" for rho in check
    ]  # after a name, three patches and a rho
    assert "weights shuffled" in table
    effects = [place.heads for place in found.places]
    most = max(effects[0], key=lambda head: max(abs(each[head]) for each in effects))
    (row,) = (line.split() for line in table.splitlines() if line.startswith(f" {most}"))
    assert row == [most, *(f"{each[most]:+z.2f}" for each in effects)]
    assert f"evidence lost without each alone, strongest 5 of {len(effects[0])};" in table


def test_many_images_are_kept(home: Path) -> None:
    table = ask("vit", "--many", "3", cwd=home)
    assert "vit, 3 test inputs, insertion" in table
    assert "Is attention an explanation here?" in table
    assert "The rule: yes: both curves beat chance" in table
    kept = open_run(str(home / "vit")).analysis("explain-test")
    assert kept is not None
    assert kept["inputs"] == 3
    assert kept["sentence"] in table
    assert "Too few inputs: there are 3, and 95% intervals of fewer than 20" in table
    assert (home / "vit/figures/explain-test.png").exists()


def test_few_inputs_do_not_take_the_place_of_many(home: Path) -> None:
    run = open_run(str(home / "grid"))
    run.keep_analysis("explain-valid", {"inputs": 200})
    done = attnlab("explain", "grid", "--many", "2", "--split", "valid", cwd=home)
    kept = run.analysis("explain-valid")
    assert kept is not None
    assert kept["inputs"] == 200
    assert (
        "grid/analysis/explain-valid.json stays as it is: it is of 200 inputs, this is of 2\n"
        in done.stderr
    )
    assert (home / "grid/figures/explain-valid-2-inputs.png").exists()
    assert not (home / "grid/figures/explain-valid.png").exists()


def test_many_of_one_place_are_kept_apart(home: Path) -> None:
    table = ask("grid", "--many", "2", "--place", "0,1", cwd=home)
    assert "grid, 2 test inputs, place 0,1, deletion: area" in table
    assert "ranks of parts, place 0,1: Spearman's rho" in table
    run = open_run(str(home / "grid"))
    kept = run.analysis("explain-test-0,1")
    assert kept is not None
    assert kept["place"] == "0,1"
    assert run.analysis("explain-test") is None
    assert json.loads((home / "grid/figures/explain-test-0-1.json").read_text())["place"] == "0,1"


def test_a_start_token_is_never_said_of_a_grid(tmp_path: Path) -> None:
    run = untrained_grids(tmp_path, GRID, test=3)
    model = load_model(run)
    with torch.no_grad():
        model.get_parameter("readout.bias")[Grids.start] += 50
    save_weights(run, "best", model.state_dict())
    opened = open_explained(run)
    for number in range(3):
        (sample,) = read_images(image_classifier(run), [f"test:{number}"])
        for asked in (opened.read(f"test:{number}"), opened.ask("test", number)):
            assert asked.output == "".join(map(str, sample.answer))
            for question, digit, row in zip(
                asked.questions.values(), sample.answer, sample.probabilities, strict=True
            ):
                assert question.sign == str(digit)
                assert question.chance(question.parts[None]).item() == pytest.approx(row[digit].item())


def lists(folder: Path, low: int, high: int) -> RunFolder:
    model = TokensModel(width=8, heads=2, layers=1, hidden=5)
    task = Sorting(low=low, high=high, train=10, valid=2, test=40)
    return untrained(folder / f"lists-{low}", Spec(task=task, model=model))


def test_many_lists_are_drawn_from_those_that_are_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def sizes(questions: Iterable[Question], *_: Any, **__: Any) -> Judgement:
        found.extend(len(question.parts) for question in questions)
        return made_up(low=0.01, rho=0.6, shuffled=0.1)

    monkeypatch.setattr(asking, "explain_many", sizes)
    run = lists(tmp_path, 120, 140)
    short = len(open_explained(run).numbers("test"))
    assert 2 < short < 30
    assert explain_split(run, short).run == run.name
    assert len(found) == short
    assert 120 <= min(found) < max(found) <= 128
    with pytest.raises(
        InputError, match=f"many is {short + 1}, but there are {short} test inputs of at most 128"
    ):
        explain_split(run, short + 1)
    with pytest.raises(InputError, match="many is 2, but there are 0 test inputs of at most 128 tokens"):
        explain_split(lists(tmp_path, 129, 140), 2)


def test_an_adder_that_looks_at_nothing_has_no_reasons(tmp_path: Path) -> None:
    model = Seq2SeqModel(width=6, heads=3, encoder_layers=1, decoder_layers=1, hidden=5)
    spec = Spec(task=Addition(digits=2, train=30, valid=5, test=5), model=model)
    assert explainable(untrained(tmp_path / "whole", spec))
    spec = replace(spec, model=replace(model, head_counts=(3, 3, 0)))
    blind = untrained(tmp_path / "blind", spec)
    assert not explainable(blind)
    assert reasons_section(blind, "12+34") is None
    assert refused("blind", "12+34", cwd=tmp_path) == (
        "the decoder has no cross attention left, so its answers are the same for every input and "
        "attributed to no part of it"
    )


def test_one_digit_of_a_sum(tmp_path: Path) -> None:
    words = ("zoo:adder", "374+814", "--place", "10^1", "--json")
    found = json.loads(ask(*words, cwd=tmp_path))
    assert found["parts"] == ["4", "7", "3", "+", "4", "1", "8"]
    (place,) = found["places"]
    assert (place["place"], place["answer"]) == ("10^1", "8")
    for name in (
        "attention",
        "integrated gradients",
        "occlusion",
    ):  # the digits of its own column come first
        scores = place["scores"][name]
        assert sorted(range(7), key=scores.__getitem__)[-2:] in ([1, 5], [5, 1])
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == [
        f"explain-374+814-10-1.{ending}" for ending in ("json", "png", "svg")
    ]


def test_a_list(tmp_path: Path) -> None:
    table = ask("zoo:sorter", "3 5 5 9 8 12", cwd=tmp_path)
    (row,) = (line for line in table.splitlines() if line.startswith(" occlusion"))
    assert row.split()[1:4] == ["9", "(at", "4)"] or row.split()[1:4] == ["8", "(at", "5)"]
    assert "repeat" in table
    assert row.split()[10] == "-"  # after three parts of three words each
    assert -1 <= float(row.split()[11]) <= 1


def test_long_inputs_have_names_of_their_own() -> None:
    one, other = _short(" ".join(["7"] * 40)), _short(" ".join(["7"] * 41))
    assert len(one) == len(other) == 60
    assert one[:51] == other[:51]
    assert one != other
    assert _short("3 5 5 9") == "3 5 5 9"


def test_what_is_refused(home: Path) -> None:
    assert refused("vit", cwd=home) == (
        "explain takes one input such as 374+814 or test:7, or many, a number of inputs"
    )
    assert refused("vit", "test:1", "--many", "5", cwd=home) == (
        "the input is 'test:1' and many is 5; give one of the two"
    )
    assert refused("vit", "test:1", "--out", "a.pdf", cwd=home) == (
        "out is 'a.pdf'; it must end in .svg or .png"
    )
    assert refused("vit", "test:1", "--split", "valid", cwd=home) == (
        "split is 'valid', but the input is named; many inputs are drawn from a split"
    )
    assert refused("vit", "--many", "1", cwd=home).startswith("many is 1; it must be at least 2")
    assert refused("vit", "--many", "900", cwd=home) == "many is 900, but there are 61 test inputs"
    assert "test:0 has no place '0,7'" in refused("grid", "test:0", "--place", "0,7", cwd=home)
    assert refused("mlp", "test:0", cwd=home) == (
        "the model MLP has no attention, so it has no heads to look at; use show or project instead"
    )
    assert "is not a sum of two numbers" in refused("zoo:adder", "test;0", cwd=home)
    with pytest.raises(InputError, match="the input has 129 tokens; at most 128 can be explained"):
        explain_run(open_run("zoo:sorter"), " ".join(["7"] * 129))


def made_up(
    *, low: float, rho: float, shuffled: float, contrast: float = 0.1, inputs: int = 20
) -> Judgement:
    """What many inputs might have given, the same for all methods."""

    def cell(value: float) -> Estimate:
        return Estimate(value, (value - 0.05, value + 0.05))

    gains = {name: {mode: cell(0.1) for mode in ("deletion", "insertion")} for name in ("zero", "resample")}
    gains["mean"] = {"deletion": cell(low + 0.05), "insertion": cell(0.1)}
    return with_verdicts(
        Judgement(
            run="made-up",
            inputs=inputs,
            methods=list(METHODS),
            replacements=["zero", "mean", "resample"],
            advantage=dict.fromkeys((*METHODS, "contrast", "random"), gains),
            agreement={a: {b: cell(rho) for b in METHODS} for a in METHODS},
            contrast=cell(contrast),
            above_contrast={name: cell(rho - contrast) for name in METHODS},
            random_p=1.0,
            shuffled={name: cell(shuffled) for name in METHODS},
            completeness_gap=0.0,
            verdicts={},
            sentence="",
            rule="",
        )
    )


@pytest.mark.parametrize(
    ("low", "rho", "shuffled", "answer"),
    [
        (0.01, 0.6, 0.1, "yes"),
        (-0.01, 0.6, 0.1, "partly"),  # one curve of one replacement is not above chance
        (0.01, 0.52, 0.1, "partly"),  # ranks agree, but not surely
        (0.01, 0.6, 0.48, "partly"),  # ranks may be those of shuffled weights
    ],
)
def test_the_rule(low: float, rho: float, shuffled: float, answer: str) -> None:
    found = made_up(low=low, rho=rho, shuffled=shuffled)
    assert found.verdicts["rollout"].answer == answer
    assert found.sentence.startswith(f"Is attention an explanation here? {answer.capitalize()}: ")
    only = "zero and resample replacement only" if low < 0 else "every replacement"
    ranks = "ranks" if rho > 0.55 else "does not rank"
    assert f"raw attention beats chance with {only}, {ranks} parts as occlusion does (rho" in found.sentence


def test_the_mere_contrast_of_parts_must_be_beaten() -> None:
    found = made_up(low=0.01, rho=0.6, shuffled=0.1, contrast=0.58)
    assert found.verdicts["attention"].answer == "partly"
    assert "as occlusion does, but not surely better than mere contrast (rho 0.60" in found.sentence


def test_contrast_is_compared_input_by_input() -> None:
    found = made_up(low=0.01, rho=0.6, shuffled=0.1, contrast=0.58)
    found.above_contrast["rollout"] = Estimate(0.02, (0.01, 0.03))
    assert judge_method(found, "rollout").agreeing is True
    assert judge_method(found, "rollout").answer == "yes"
    found = made_up(low=0.01, rho=0.6, shuffled=0.1, contrast=0.4)
    found.above_contrast["rollout"] = Estimate(0.2, (-0.01, 0.3))
    assert judge_method(found, "rollout").answer == "partly"


def test_the_yardstick_is_not_held_against_itself(capsys: pytest.CaptureFixture[str]) -> None:
    found = made_up(low=0.01, rho=0.2, shuffled=0.1)
    assert found.verdicts["occlusion"].agreeing is None
    assert found.verdicts["occlusion"].answer == "yes"
    assert found.verdicts["heads"].agreeing is False
    print_result(found, json=False)
    (row,) = (
        line.split() for line in capsys.readouterr().out.splitlines() if line.rstrip().endswith("yes")
    )
    assert row[:3] == ["occlusion", "-", "0.10"]


@pytest.mark.parametrize(("inputs", "answer"), [(19, "too few inputs"), (20, "yes")])
def test_few_inputs_give_no_answer(inputs: int, answer: str) -> None:
    found = made_up(low=0.01, rho=0.6, shuffled=0.1, inputs=inputs)
    assert {verdict.answer for verdict in found.verdicts.values()} == {answer}
    assert found.sentence.startswith(f"Is attention an explanation here? {answer.capitalize()}: ")


def test_the_figure_of_many_inputs() -> None:
    found = made_up(low=0.01, rho=0.6, shuffled=0.1)
    assert found.advantage["heads"]["mean"]["deletion"].value == pytest.approx(0.06)
    drawn = to_svg(draw_explain_many(replace(found, place="0,1")))
    assert drawn.count(">0.60<") == 36
    assert "20 test inputs, place 0,1" in drawn
    assert "rollout: yes" in drawn
    assert "resample in place of parts" in drawn


def test_the_figure_of_one_input() -> None:
    line = {name: [1.0, 0.5] for name in (*METHODS, "chance", "chance_low", "chance_high")}
    curves = {name: {"deletion": line, "insertion": line} for name in ("zero", "mean", "repeat")}
    scores = {name: [0.5, -2.0] for name in METHODS} | {"rollout": [0.0, 0.0]}

    def place(name: str, rho: float) -> Place:
        return Place(
            place=name,
            answer="8",
            truth="8" if rho < 0.5 else "9",
            probability=0.75,
            evidence=1.1,
            scores=scores,
            heads={f"encoder.0.self.{index}": effect for index, effect in enumerate(EFFECTS)},
            completeness_gap=0.0,
            agreement={a: {b: Estimate(rho, None) for b in METHODS} for a in METHODS},
            shuffled={name: Estimate(rho / 2, None) for name in METHODS},
            replacements=["zero", "mean", "repeat"],
            shares=[0.0, 1.0],
            curves=curves,
            advantage={},
        )

    found = Explanation(
        run="made-up",
        input="4+4",
        output="8",
        truth="98",
        correct=False,
        parts=["4", "5"],
        image=None,
        methods=list(METHODS),
        replacements=["zero", "mean", "repeat"],
        places=[place("10^0", 0.25), place("10^1", 0.75)],
    )
    data = explain_data(found)
    assert data.places[0].maps["heads"] == [0.25, -1.0]
    assert data.places[0].maps["rollout"] == [0.0, 0.0]
    assert list(data.places[1].heads.items()) == [
        ("encoder.0.self.4", -3.0),
        ("encoder.0.self.1", 2.5),
        ("encoder.0.self.6", -0.7),
        ("encoder.0.self.0", 0.5),
        ("encoder.0.self.3", -0.25),
    ]
    assert data.agreement == [[0.5] * 6] * 6
    assert data.shuffled == [0.25] * 6
    assert data.curves["repeat"]["deletion"]["heads"] == [1.0, 0.5]
    drawn = to_svg(draw_explain(data))
    assert "4+4 → 8, wrong, it is 98<" in drawn
    assert "10^0: 8, p = 0.750<" in drawn
    assert "10^1: 8, p = 0.750, wrong, it is 9<" in drawn
    assert "insertion, repeat" in drawn
    assert "itself, weights shuffled" in drawn
    assert drawn.count(">0.25<") >= 6
    assert drawn.count(">-3.00<") == drawn.count(">+2.50<") == 2  # a place each
    assert drawn.count("without a head") == 2
    assert "encoder.0.self.2" not in drawn


def truths(asked: Asked) -> dict[str, str]:
    return {place: question.truth or "" for place, question in asked.questions.items()}


def test_whether_the_answer_is_right(home: Path) -> None:
    vit, grid = (open_explained(open_run(str(home / name))) for name in ("vit", "grid"))
    for opened, number in ((vit, 3), (grid, 2)):
        named, drawn = opened.read(f"test:{number}"), opened.ask("test", number)
        assert replace(named, questions={}, image=None) == replace(drawn, questions={}, image=None)
        assert named.image is not None
        assert drawn.image is not None
        assert torch.equal(named.image, drawn.image)
        assert named.truth is not None
        assert "".join(truths(named).values()) == named.truth
        assert named.correct is (named.truth == named.output)
    splits = image_classifier(open_run(str(home / "grid"))).task.splits(0)
    assert truths(grid.read("test:2")) == dict(
        zip(("0,0", "0,1"), map(str, splits.test.targets[2].tolist()), strict=True)
    )
    adder, sorter = open_explained(open_run("zoo:adder")), open_explained(open_run("zoo:sorter"))
    asked = adder.read("74+814")
    assert (asked.truth, truths(asked)) == ("888", {"10^0": "8", "10^1": "8", "10^2": "8", "10^3": "0"})
    assert [truths(sorter.read(text)) for text in ("3 5 5", "3 5 4")] == [
        {"class": "sorted"},
        {"class": "unsorted"},
    ]
    assert wrong_words("7", None) == wrong_words("7", "7") == ""
    assert wrong_words("7", "1") == ", wrong, it is 1"


def test_bars_of_heads_go_to_the_side_of_their_sign() -> None:
    axes = new_figure(3.0, 2.0).subplots()
    draw_effects(axes, {"encoder.0.self.1": -3.0, "encoder.0.self.0": 0.5}, title="lost")
    assert [bar.get_width() for bar in axes.patches] == [-3.0, 0.5]  # type: ignore[attr-defined]
    low, high = axes.get_xlim()
    assert low < -3 < 0.5 < high
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "encoder.0.self.1",
        "encoder.0.self.0",
    ]
