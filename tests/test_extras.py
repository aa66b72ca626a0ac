"""What the extras ``umap`` and ``bench`` are for works where they are installed."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands import attnlab, run
from tiny_digits import VIT, untrained_digits

ROOT = Path(__file__).parent.parent


def need(*modules: str) -> None:
    """Skip a test where a module is missing; it is looked for only, since timm needs operators declared."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: scripts/setup")


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:Tensorflow not installed:ImportWarning"
)  # which Python hides by default
def test_umap_projects(tmp_path: Path) -> None:
    need("umap")
    untrained_digits(tmp_path, VIT)
    words = ("project", "vit", "--method", "umap", "--samples", "31", "--json")
    said = [attnlab(*words, cwd=tmp_path).stdout for _ in range(2)]
    (found,) = json.loads(said[0])["runs"]
    assert (found["method"], found["points"]) == ("umap", 31)
    assert said[0] == said[1]


@pytest.mark.slow
def test_the_rivals_take_a_step(tmp_path: Path) -> None:
    need("timm", "x_transformers")
    words = "--shapes small --batch 2 --steps 1 --rounds 1 --threads 1 --decode 0 --json"
    done = run([sys.executable, str(ROOT / "benchmarks/step.py"), *words.split()], cwd=tmp_path)
    found = json.loads(done.stdout)["steps"]["small"]
    assert set(found["parameters"]) == {"attnlab", "torch", "timm", "x-transformers"}
    assert len(found["milliseconds"]) == 2 * len(found["parameters"])
