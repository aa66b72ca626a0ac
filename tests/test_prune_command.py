import json
from pathlib import Path

import pytest

from commands import attnlab
from planted import ACTIVE, planted_run

pytestmark = pytest.mark.slow


def test_prune_leaves_a_run_and_its_curve(tmp_path: Path) -> None:
    planted_run(tmp_path / "adder", carries=True)
    words = ("--repair", "mean", "--examples", "97")
    done = attnlab("prune", "adder", "--loss", "0.01", *words, "--out", "small", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert set(found["kept"]) == ACTIVE[True]
    assert found["test"]["after"]["exact_match"] == 1.0
    assert [point["kept"] for point in found["valid_curve"]] == list(range(18, -1, -1))
    for name in ("pruning.svg", "pruning.png", "pruning.json"):
        assert (tmp_path / "small/figures" / name).stat().st_size > 0
    done = attnlab("evaluate", "small", cwd=tmp_path)
    assert "100.00%" in done.stdout
    # A pruned run can be pruned again, and learn.
    done = attnlab("prune", "small", "--keep", "3", "--finetune", "2", *words, cwd=tmp_path)
    assert "3 of 4 heads kept" in done.stdout
    assert (tmp_path / "runs/small-pruned-3/summary.json").exists()


def test_what_cannot_be_pruned_is_told_in_a_sentence(tmp_path: Path) -> None:
    planted_run(tmp_path / "adder", carries=False)
    for words, said in (
        (("--keep", "99"), "keep is 99, but adder has 18 heads; keep 0 to 17 of them"),
        ((), "give either keep, how many heads to keep, or loss, how much accuracy may be lost"),
        (("--keep", "3", "--examples", "0"), "examples is 0; it must be at least 1"),
        (("--keep", "3", "--finetune", "-1"), "finetune is -1; it must be at least 0"),
    ):
        done = attnlab("prune", "adder", *words, cwd=tmp_path, code=2)
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
