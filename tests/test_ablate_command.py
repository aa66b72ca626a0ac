"""``attnlab ablate``, its figures, and the example of the page about it."""

import json
import re
from pathlib import Path

import pytest

from attnlab.analysis.ablate.ablation import AblationResult
from attnlab.analysis.ablate.effects import ALL, HeadWorth, Pair, Shapley, Single, Worth
from attnlab.cli.main import run as run_command
from attnlab.figures.ablation import (
    ablation_data,
    draw_ablation,
    draw_groups,
    draw_pairs,
    draw_shapley,
    groups_data,
    pairs_data,
    shapley_data,
)
from attnlab.figures.style import to_svg
from attnlab.results import Estimate
from attnlab.specs import MLPModel, to_json
from commands import printed
from planted import ACTIVE, ALIGN, COPY, planted_run
from tiny_digits import untrained_digits

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    planted_run(folder / "planted")
    return folder


def test_the_command_keeps_prints_and_draws(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    words = ["ablate", "planted", "--baselines", "zero", "resample", "--examples", "101"]
    assert run_command([*words, "--shapley", "2", "--heads", COPY, ALIGN, "--pairs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    kept = json.loads((home / "planted/analysis/ablate-valid.json").read_text())
    assert kept.pop("weights")
    assert kept == found
    assert found["examples"] == 101
    assert [row["head"] for row in found["baselines"]["zero"]] == [COPY, ALIGN]
    for name in ("ablation", "ablation-groups", "ablation-pairs", "ablation-shapley"):
        for ending in ("svg", "png", "json"):
            assert (home / f"planted/figures/{name}.{ending}").stat().st_size > 100
    data = json.loads((home / "planted/figures/ablation.json").read_text())
    assert data == to_json(ablation_data(AblationResult.from_json(found)))
    assert set(data["heads"]) == ACTIVE[False]


def test_a_quick_look_leaves_the_fuller_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted_run(tmp_path / "planted")
    monkeypatch.chdir(tmp_path)
    words = ["ablate", "planted", "--baselines", "zero", "--heads", COPY]
    assert run_command([*words, "--examples", "11"]) == 0
    capsys.readouterr()
    assert run_command([*words, "--examples", "5"]) == 0
    said = "planted/analysis/ablate-valid.json stays as it is: it is of 11 examples, this is of 5\n"
    assert said in capsys.readouterr().err
    assert json.loads(Path("planted/analysis/ablate-valid.json").read_text())["examples"] == 11
    assert json.loads(Path("planted/figures/ablation.json").read_text())["examples"] == 11
    assert Path("planted/figures/ablation-5-examples-groups.svg").exists()


def test_tables_rank_heads_and_say_what_was_found(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    words = ["ablate", "planted", "--baselines", "zero", "mean", "--examples", "101", "--split", "test"]
    assert run_command([*words, "--heads", "decoder.1.self.0", COPY, "--pairs", "--shapley", "3"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    heads = [line.split()[0] for line in lines if line.lstrip().startswith(("encoder", "decoder"))]
    assert heads == [COPY, "decoder.1.self.0", "decoder.1.self.0", COPY, "decoder.1.self.0"]
    (row,) = [line for line in lines if line.strip().startswith("decoder.1.self.0  ") and "0.0000" in line]
    assert row.split() == ["decoder.1.self.0", "0.00", "±0.00", "0.00", "±0.00", "0.0000"]
    assert f"decoder.1.self.0 and {COPY}" in said
    assert re.search(rf"carry chain 0 +{COPY} ", said)
    assert re.search(r"carry chain 2 +no head surely", said)
    assert re.search(rf"at 10\^1 +{COPY} ", said)
    assert "from 3 orders" in said


def test_a_run_that_reads_digits_with_one_head(tmp_path: Path) -> None:
    words = ["--baselines", "zero", "mean", "--examples", "23", "--pairs", "--shapley", "2"]
    assert run_command(["ablate", str(untrained_digits(tmp_path).path), *words]) == 0
    (kept,) = tmp_path.glob("*/analysis/ablate-valid.json")
    found = json.loads(kept.read_text())
    (row,) = found["baselines"]["zero"]
    assert row["head"] == "encoder.0.self.0"
    assert sum(found["strata"].values()) == found["examples"] == 20
    assert set(found["strata"]) <= {f"digit {digit}" for digit in range(10)}
    assert set(row["lost"]) == {ALL, *found["strata"]}
    assert found["pairs"] == []
    (shapley,) = found["shapley"]["heads"]
    assert shapley["value"] == pytest.approx(row["lost"][ALL]["value"])


def test_refusals_are_one_sentence(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    mlp = untrained_digits(tmp_path, MLPModel(hidden=5))
    for words, text in (
        ([str(mlp.path)], "MLP has no attention"),
        (["planted", "--heads", "encoder.0.slef.1"], "no head 'encoder.0.slef.1'; did you mean"),
        (["planted", "--examples", "0"], "examples is 0; it must be at least 1"),
        (["planted", "--shapley", "-3"], "shapley is -3; it must be at least 0"),
        (["planted", "--baselines", "resample", "--examples", "1"], "there is 1 example; to resample"),
    ):
        assert run_command(["ablate", *words]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        assert text in said.err


def example() -> AblationResult:
    """What two heads might have given."""

    def cell(value: float) -> Estimate:
        return Estimate(value, (value - 0.01, value + 0.01))

    def row(head: str, lost: float, loss: float) -> Single:
        by_group = {ALL: cell(lost), "chain 1": Estimate(lost / 2, None)}
        return Single(head, 0.5, loss, cell(0.5), by_group, {"10^0": cell(0.25)})

    nothing = Worth(0.0, None)
    worth = [
        HeadWorth("a.0", 0.25, 0.125, nothing),
        HeadWorth("a.1", 0.5, None, nothing),
        HeadWorth("b.0", -0.25, 0.0, nothing),
    ]
    return AblationResult(
        examples=7,
        exact_match=0.75,
        loss=0.5,
        strata={"chain 1": 3},
        baselines={
            "mean": [row("a.0", 0.25, 1.0), row("a.1", 0.25, 2.0), row("b.0", 0.5, 0.5)],
            "zero": [row("a.0", 0.75, 1.0), row("a.1", 0.5, 2.0), row("b.0", 0.0, 0.5)],
        },
        hardest_hit={},
        disagreements=[],
        agreement=None,
        towards="mean",
        pairs=[
            Pair(["a.0", "a.1"], cell(0.5), cell(0.125)),
            Pair(["a.0", "b.0"], cell(0.5), cell(-0.5)),
            Pair(["a.1", "b.0"], cell(0.5), cell(0.0)),
        ],
        shapley=Shapley(5, 0.75, 0.25, worth),
    )


def test_data_of_the_ranking_and_of_the_groups() -> None:
    data = ablation_data(example())
    assert data.heads == ["b.0", "a.1", "a.0"]  # by what is lost, then by the loss
    assert data.baselines["mean"].value == [50, 25, 25]
    assert data.baselines["zero"].value == [0, 50, 75]
    assert data.baselines["zero"].low == pytest.approx([-1, 49, 74])
    assert data.baselines["zero"].high == pytest.approx([1, 51, 76])
    groups = groups_data(example())
    assert groups.groups == [ALL, "chain 1", "at 10^0"]
    assert [row.value for row in groups.rows] == [[50, 25, 25], [25, 12.5, 25], [25, 12.5, 25]]
    assert groups.rows[0].low == pytest.approx([49, 25, 24])
    assert (groups.examples, groups.exact_match, groups.towards) == (7, 75, "mean")


def test_data_of_pairs_and_of_shapley_values() -> None:
    pairs = pairs_data(example())
    assert pairs.heads == ["a.0", "a.1", "b.0"]
    assert pairs.alone == [25, 25, 50]
    assert pairs.excess == [[None, None, None], [12.5, None, None], [-50, 0, None]]
    shapley = shapley_data(example())
    assert shapley.heads == ["a.1", "a.0", "b.0"]
    assert shapley.values == [50, 25, -25]
    assert shapley.two_errors == [0, 25, 0]
    assert shapley.alone == [25, 25, 50]


def test_figures_show_names_and_numbers() -> None:
    found = example()
    ranking = to_svg(draw_ablation(ablation_data(found)))
    assert ranking == to_svg(draw_ablation(ablation_data(found)))
    for text in ("a.0", "b.0", "mean", "zero", "points of exact match lost"):
        assert f">{text}" in ranking
    assert ">at 10^0<" in to_svg(draw_groups(groups_data(found)))
    assert ">-50<" in to_svg(draw_pairs(pairs_data(found))).replace("\N{MINUS SIGN}", "-")
    assert "5 orders" in to_svg(draw_shapley(shapley_data(found)))


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs/explanation/ablation.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    lines = printed(code, cwd=tmp_path)
    assert [line.split()[0] for line in lines[:2]] == ["look.0", "look.1"]
    assert lines[2].startswith("The baselines ")
    assert lines[3].startswith("tensor([[")


def test_the_commands_of_the_page_are_known() -> None:
    page = (ROOT / "docs/explanation/ablation.md").read_text()
    for flag in re.findall(r"(--[a-z]+)", page):
        assert flag in ("--baselines", "--pairs", "--shapley", "--out", "--heads", "--json")
