"""What ``SECURITY.md`` promises is held by tests that there are; some of them stand here."""

import ast
import re
import shutil
from pathlib import Path

import pytest

from attnlab.errors import LabError
from attnlab.runs import RunFolder, load_model, open_run
from attnlab.runs.manifest import MANIFEST

ROOT = Path(__file__).parent.parent
PROMISES = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
FORBIDDEN = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def test_the_tests_that_hold_the_promises_are_there() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PROMISES))
    assert len(named) >= 15
    assert [name for name in sorted(named) if f"def {name}(" not in sources] == []
    files = set(re.findall(r"`(test_\w+\.py)`", PROMISES))
    assert [name for name in sorted(files) if not (ROOT / "tests" / name).exists()] == []


def test_the_links_of_the_page_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", PROMISES):
        assert (ROOT / link).exists(), link


def test_nothing_unpickles() -> None:
    """Nor is ``torch.load`` called, or NumPy allowed to."""
    for path in (ROOT / "src/attnlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not FORBIDDEN & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("torch.load", "eval"), path
                if called in ("np.load", "numpy.load"):
                    assert "allow_pickle=False" in ast.unparse(node), path


FILES = [
    "spec.json",
    "metrics.jsonl",
    "summary.json",
    "environment.json",
    "best.safetensors",
    "analysis/verify.json",
    MANIFEST,
]


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "older"])
@pytest.mark.parametrize("name", [*FILES, "analysis"])
def test_no_link_in_a_run_is_read(name: str, bound: bool, tmp_path: Path) -> None:
    """What a link leads to is the very file, so that nothing but the link is wrong."""
    run = RunFolder(Path(shutil.copytree(open_run("zoo:adder").path, tmp_path / "run")))
    if not bound:
        run.file(MANIFEST).unlink()
        if name == MANIFEST:
            return
    shutil.move(run.file(name), tmp_path / "outside")
    run.file(name).symlink_to(tmp_path / "outside")
    asked = {
        "spec.json": run.spec,
        "metrics.jsonl": run.metrics,
        "summary.json": run.summary,
        "environment.json": run.environment,
        "best.safetensors": lambda: load_model(run),
        "analysis/verify.json": lambda: run.analysis("verify"),
        "analysis": lambda: run.analysis("verify"),
        MANIFEST: run.spec,
    }
    with pytest.raises(LabError, match="is a symbolic link"):
        asked[name]()
