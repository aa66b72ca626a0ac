"""The source archive and the wheel hold what they should, and the wheel works by itself."""

import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = ("pyproject.toml", "README.md", "LICENSE", "src")
pytestmark = pytest.mark.slow


def build(what: str, source: Path, out: Path) -> Path:
    """An archive of the project in ``source``, made by its build backend."""
    code = f"from setuptools import build_meta; print(build_meta.build_{what}({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@dataclass
class Installed:
    """An environment that holds the wheel; packages that attnlab needs are those of the tests."""

    python: Path
    folder: Path

    def attnlab(self, *words: str) -> str:
        command = [str(self.python.with_name("attnlab")), *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the source archive gives."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    source.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    archive = build("sdist", source, folder)
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return build("wheel", unpacked, folder)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv/bin/python"
    install = ["--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([sys.executable, "-m", "pip", *install, str(wheel)], check=True)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
    yield Installed(python, folder)
    shutil.rmtree(folder)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        held = {name for name in packed.namelist() if name.startswith("attnlab/")}
    source = ROOT / "src"
    files = (path for path in (source / "attnlab").rglob("*") if path.is_file())
    assert held == {
        path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts
    }


def test_the_installed_package_is_of_this_version(installed: Installed) -> None:
    assert installed.attnlab("--version") == f"attnlab {PROJECT['version']}\n"
    found = json.loads(installed.attnlab("doctor", "--machine", "--json"))
    assert found["environment"]["attnlab"] == PROJECT["version"]
    assert "commit" not in found["environment"] or found["environment"]["commit"] is None


def test_the_installed_package_trains_a_model_and_has_the_shipped_ones(installed: Installed) -> None:
    quick = ("--quick", "--task.train=640", "--training.epochs=1", "--training.threads=1")
    said = installed.attnlab("demo", *quick)
    assert "of 10,000 correct" in said
    assert (installed.folder / "runs/addition-default-s0/report.html").exists()
    assert installed.attnlab("predict", "zoo:adder", "374+814").startswith("374+814 = 1188")


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"\n## [{PROJECT['version']}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
