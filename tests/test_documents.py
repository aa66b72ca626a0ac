"""What README and the results say is true, and every command they show works."""

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from commands import TINY, attnlab, run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
RESULT = json.loads((ROOT / "results/addition/adder.json").read_text())

COMMANDS = re.findall(r"^attnlab .*$", README, re.MULTILINE)
SMALL = [
    "--task.train=200",
    "--task.valid=20",
    "--task.test=20",
    "--training.epochs=1",
    "--training.threads=1",
]


def test_readme_shows_commands() -> None:
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_works(line: str, tmp_path: Path) -> None:
    """As written, but for training, which is cut short; what is shipped is right on a million sums."""
    _, *words = shlex.split(line)
    short = SMALL if words[0] == "train" else []
    said = attnlab(*words, *short, cwd=tmp_path, timeout=900).stdout
    if words == ["verify", "zoo:adder"]:
        assert "zoo:adder: 1,000,000 of 1,000,000 correct" in said


def test_the_readme_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.stdout.startswith("torch.Size([1, 4, 5, 7])")


def test_scripts_demo_runs_the_demo(tmp_path: Path) -> None:
    done = run(["bash", ROOT / "scripts/demo", *TINY, "--out", tmp_path / "run"], cwd=tmp_path)
    assert "of 10,000 correct" in done.stdout
    assert (tmp_path / "run/report.html").exists()


def test_readme_tables_are_the_results() -> None:
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs/build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert build.fill(README) == README
    assert build.fill(README.replace("1,000,000 |", "999,999 |")) == README


def test_results_meet_what_was_promised() -> None:
    default = RESULT["default"]
    assert default["spec"]["task"]["train"] <= 20_000
    assert default["seeds_with_all_correct"] == len(default["seeds"]) == 5
    assert RESULT["reference_time_over_default_time"] >= 8
    assert default["slowest_verify_seconds"] <= 150
    assert default["largest_verify_memory_mib"] < 2048


def test_documents_name_files_that_exist() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for address in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text()):
            assert (document.parent / address).exists(), f"{document.name} names {address}"
