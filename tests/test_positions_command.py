"""``attnlab positions`` on shipped runs and on kinds, and what it refuses."""

import json
from pathlib import Path

import pytest

from attnlab.cli.main import run
from commands import attnlab


def test_positions_of_the_shipped_adder(tmp_path: Path) -> None:
    done = attnlab("positions", "zoo:adder", "--length", "9", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert [(each["stack"], each["tokens"], each["trained"]) for each in found["stacks"]] == [
        ("source", 9, 7),
        ("target", 9, 5),
    ]
    source = found["stacks"][0]
    assert source["slots"][0]["known"] == [True] * 7 + [False] * 2
    assert source["moved"][0]["mean"]["sideways"]["unknown"] < 1e-5
    assert source["moved"][0]["mean"]["sideways"]["known"] > 0.1
    names = {
        f"positions-{name}.{ending}" for name in ("source", "target") for ending in ("svg", "png", "json")
    }
    assert {path.name for path in (tmp_path / "figures").iterdir()} == names
    assert json.loads((tmp_path / "figures/positions-source.json").read_text()) == source


def test_a_kind_with_its_settings(tmp_path: Path) -> None:
    done = attnlab(
        "positions", "randomised:inner=rotary,limit=64", "--trained", "5", "--out", "here", cwd=tmp_path
    )
    assert "randomised:inner=rotary,limit=64" in done.stdout
    assert "turn" in done.stdout
    assert (tmp_path / "here/positions-randomised-inner-rotary-limit-64.svg").exists()
    grid = json.loads(attnlab("positions", "grid-learned", "--columns", "3", "--json", cwd=tmp_path).stdout)
    assert grid["stacks"][0]["tokens"] == 9
    spun = json.loads(attnlab("positions", "grid-rotary", "--columns", "3", "--json", cwd=tmp_path).stdout)
    assert [slot["slot"] for slot in spun["stacks"][0]["slots"]] == ["turn"]


def test_what_cannot_be_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    def says(*words: str) -> str:
        assert run(["positions", *words]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        return said.err.removeprefix("attnlab: ").removesuffix("\n")

    assert says("none") == "'none' has nothing to draw: its positions are 'none'"
    assert says("rotari").startswith(
        "'rotari' is neither a run folder nor a kind of positions; did you mean"
    )
    assert says("runs/x").startswith("no run at 'runs/x'")
    assert says("rotary", "--length", "1025") == "length is 1025, but it must be from 1 to 1024"
    assert says("rotary", "--heads", "3") == "heads is 3, but it must be a divisor of width 64"
    assert says("rotary", "--heads", "64").endswith("even for rotary positions, not 1")
    assert says("grid-learned", "--width", "6", "--heads", "1").endswith("a multiple of 4 for a grid")
    assert says("rotary:base=1") == "model.positions.base is 1.0, but it must be above 1"
    assert says("alibi", "--trained", "0") == "trained is 0, but it must be at least 1"
    assert says("randomised:limit=9", "--length", "10").startswith(
        "a sequence of 10 tokens cannot be placed"
    )
