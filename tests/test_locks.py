"""``locks/`` names the files of exactly the versions in ``constraints.txt``."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.markers import Marker

ROOT = Path(__file__).parent.parent
ENTRY = re.compile(
    r"^([^\s=]+)==([^\s;]+)(?: ; (.*?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
HERE = {
    "implementation_name": "cpython",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "python_full_version": "3.11.7",
    "sys_platform": "linux",
}


def locked(name: str) -> dict[str, str]:
    """The version of each package that a lock has for Linux; every entry has its hashes."""
    text = (ROOT / "locks" / name).read_text(encoding="utf-8")
    rest = ENTRY.sub("", text)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []
    found = {
        _canonical(package): version
        for package, version, marker, _ in ENTRY.findall(text)
        if not marker or Marker(marker).evaluate(HERE)
    }
    assert len(found) > 20
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def constrained() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return {_canonical(line.partition("==")[0]): line.partition("==")[2] for line in lines}


def test_the_lock_holds_the_versions_of_the_constraints() -> None:
    everything = locked("everything.txt")
    assert everything.pop("torch") == f"{constrained()['torch']}+cpu"
    del everything["setuptools"]  # builds attnlab, and no constraint is on it
    assert everything == {name: version for name, version in constrained().items() if name != "torch"}


def test_what_attnlab_needs_is_a_part_of_everything() -> None:
    needed, everything = locked("attnlab.txt"), locked("everything.txt")
    assert needed.items() < everything.items()
    assert {"torch", "numpy", "setuptools"} < needed.keys()
    assert not {"pytest", "ray", "fastapi"} & needed.keys()


def test_every_build_of_torch_for_the_cpu_is_of_the_locked_version() -> None:
    lines = (ROOT / "locks/torch-cpu.sha256").read_text(encoding="utf-8").splitlines()
    text = (ROOT / "locks/everything.txt").read_text(encoding="utf-8")
    (entry,) = [each for each in ENTRY.findall(text) if each[1].endswith("+cpu")]
    assert entry[2] == "sys_platform == 'linux'"
    assert re.findall("[0-9a-f]{64}", entry[3]) == [line.split()[0] for line in lines]
    assert all(line.split()[1].startswith(f"torch-{entry[1]}-cp3") for line in lines)


def test_the_lock_of_a_torch_whose_hashes_are_unknown_is_refused() -> None:
    script = ROOT / "scripts/lock_torch.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        input="torch==2.9.1 \\\n    --hash=sha256:00\ntriton==3.0\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "scripts/lock: torch-cpu.sha256 needs the hashes of the builds of torch==2.9.1 for the CPU\n"
    )


@pytest.mark.parametrize("name", ["attnlab.txt", "everything.txt"])
def test_no_lock_has_what_only_gpus_need(name: str) -> None:
    assert not [package for package in locked(name) if re.match(r"nvidia|cuda|triton", package)]


def wheel(folder: Path, said: str) -> Path:
    """A package of one module, as pip takes it."""
    file, info = folder / "locked-1.0-py3-none-any.whl", "locked-1.0.dist-info"
    members = {
        "locked.py": f"SAID = {said!r}\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: locked\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*members, f"{info}/RECORD"))
    with ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file


@pytest.mark.slow
def test_pip_installs_a_file_of_a_lock_and_no_other(tmp_path: Path) -> None:
    """An entry as ours are, for a wheel on this disk; then another wheel of the same name and version."""
    sha256 = hashlib.sha256(wheel(tmp_path, "mine").read_bytes()).hexdigest()
    lock = f"locked==1.0 \\\n    --hash=sha256:{sha256}\n"
    assert ENTRY.findall(lock) != []
    (tmp_path / "lock.txt").write_text(lock, encoding="utf-8")
    words = [
        "--require-hashes",
        "--no-index",
        "--find-links",
        str(tmp_path),
        "-r",
        str(tmp_path / "lock.txt"),
    ]

    def install(target: str) -> subprocess.CompletedProcess[str]:
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        return subprocess.run(
            [*pip, *words, "--target", str(tmp_path / target)], capture_output=True, text=True, check=False
        )

    done = install("first")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "first/locked.py").read_text(encoding="utf-8") == "SAID = 'mine'\n"
    wheel(tmp_path, "not mine")
    refused = install("second")
    assert refused.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
    assert not (tmp_path / "second").exists()
