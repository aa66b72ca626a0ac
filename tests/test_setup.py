"""``scripts/setup`` and ``scripts/browser`` in a small tree, with stubs for the programs they call."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NETWORK = (
    "WARNING: Retrying after connection broken by NewConnectionError\\nERROR: No matching distribution"
)
BEGINNING = "setting up .venv (a few minutes the first time)\n"

PYTHON = """
import os, shutil, sys
from pathlib import Path
sys.version_info = VERSION
match sys.argv[1:]:
    case ["--version"]:
        print("Python", ".".join(map(str, VERSION)))
    case ["-c", code]:
        sys.modules.update(dict.fromkeys(MISSING))
        exec(code)
    case ["-m", "venv", "--clear", folder]:
        if VENV:
            sys.exit(VENV)
        shutil.rmtree(folder, ignore_errors=True)
        (Path(folder) / "bin").mkdir(parents=True)
        shutil.copy(PROGRAM, Path(folder) / "bin/python")
    case ["-m", "pip", "install", *words]:
        Path("installed").open("a").write(" ".join(words) + "\\n")
        exec(PIP)
"""
"""A Python that does what ``scripts/setup`` asks for, or not."""


@dataclass(frozen=True)
class Tree:
    """A project of nothing but the scripts, and a folder of programs in front of the path."""

    root: Path
    programs: Path

    def python(
        self,
        name: str = "python3",
        *,
        version: tuple[int, int, int] = (3, 11, 7),
        missing: tuple[str, ...] = (),
        venv: str = "",
        pip: str = "",
    ) -> None:
        """Put a Python on the path: modules it lacks, why it makes no environment, what its pip does."""
        values = {"VERSION": version, "MISSING": missing, "VENV": venv, "PIP": pip}
        head = "".join(f"{key} = {value!r}\n" for key, value in values.items())
        body = self.programs / f"{name}.py"
        body.write_text(f"{head}PROGRAM = {str(self.programs / name)!r}\n{PYTHON}", encoding="utf-8")
        self.program(name, "exec " + shlex.join([sys.executable, "-S", str(body)]) + ' "$@"')

    def program(self, name: str, line: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (self.programs / name).chmod(0o755)

    def call(
        self, script: str = "setup", *, path: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        clean = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHON", "CONSTRAINTS", "LOCKED")
        }
        here = {"PATH": path or f"{self.programs}:{os.environ['PATH']}"}
        words = [str(shutil.which("bash")), str(self.root / "scripts" / script)]
        return subprocess.run(
            words,
            env={**clean, **here, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def refusal(self, script: str = "setup", **variables: str) -> str:
        """The one sentence with which the script ends; nothing that a second call would trust is left."""
        done = self.call(script, **variables)
        assert (done.returncode, done.stdout.removeprefix(BEGINNING)) == (2, "")
        (line,) = done.stderr.splitlines()
        assert not (self.root / ".venv/.stamp").exists()
        return line.removeprefix("scripts/setup: ")

    def does(self, **variables: str) -> str:
        """What a call that works prints, in one word."""
        done = self.call(**variables)
        assert (done.returncode, done.stderr) == (0, "")
        return {"": "nothing", BEGINNING: "all", "updating .venv\n": "packages"}[done.stdout]

    def installed(self) -> list[str]:
        """The words of every call of pip."""
        return (self.root / "installed").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "Köln und ß", tmp_path / "my programs")
    tree.programs.mkdir()
    shutil.copytree(ROOT / "scripts", tree.root / "scripts")
    (tree.root / "pyproject.toml").write_text("one")
    (tree.root / "constraints.txt").write_text("two")
    tree.python()
    return tree


def test_a_second_call_does_nothing(tree: Tree) -> None:
    assert [tree.does(), tree.does()] == ["all", "nothing"]
    extras = ".[bench,cluster,dev,explorer,notebook,onnx,tensorboard,umap,wandb]"
    assert tree.installed() == [f"--no-input --constraint constraints.txt --editable {extras}"]


def test_other_requirements_are_installed_into_what_is_there(tree: Tree) -> None:
    (tree.root / "oldest.txt").write_text("three")
    tree.does()
    (tree.root / ".venv/kept").touch()
    assert [tree.does(CONSTRAINTS="oldest.txt"), tree.does(CONSTRAINTS="oldest.txt")] == [
        "packages",
        "nothing",
    ]
    (tree.root / "pyproject.toml").write_text("other")
    assert tree.does() == "packages"
    assert [line.split()[2] for line in tree.installed()] == [
        "constraints.txt",
        "oldest.txt",
        "constraints.txt",
    ]
    assert (tree.root / ".venv/kept").exists()


def test_only_locked_files_are_installed_if_asked_for(tree: Tree) -> None:
    (tree.root / "locks").mkdir()
    (tree.root / "locks/everything.txt").write_text("three")
    assert [tree.does(LOCKED="yes"), tree.does(LOCKED="yes"), tree.does()] == ["all", "nothing", "packages"]
    assert tree.installed()[:2] == [
        "--no-input --require-hashes --requirement locks/everything.txt",
        "--no-input --no-deps --no-build-isolation --editable .",
    ]


def test_every_extra_is_installed(tree: Tree) -> None:
    tree.does()
    (words,) = re.findall(r"\.\[(.*)\]", tree.installed()[0])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert words.split(",") == sorted(project["optional-dependencies"])


def test_a_moved_folder_starts_anew(tree: Tree) -> None:
    tree.does()
    moved = Tree(tree.root.rename(tree.root.with_name("elsewhere")), tree.programs)
    assert [moved.does(), moved.does()] == ["all", "nothing"]


def test_another_python_starts_anew_and_stays(tree: Tree) -> None:
    tree.python("python3.12", version=(3, 12, 1))
    assert [tree.does(), tree.does(PYTHON="python3.12")] == ["all", "all"]
    assert [tree.does(), tree.does(PYTHON="python3.12"), tree.does(PYTHON="python3")] == [
        "nothing",
        "nothing",
        "all",
    ]


def test_an_upgrade_of_the_python_below_starts_anew(tree: Tree) -> None:
    tree.does()
    tree.python(version=(3, 11, 8))
    assert tree.does() == "nothing"
    tree.python(version=(3, 13, 0))
    assert tree.does() == "all"


def test_a_python_that_is_too_old(tree: Tree) -> None:
    tree.python(version=(3, 9, 18))
    sentence = (
        "attnlab needs Python 3.11 or newer, and python3 is Python 3.9.18; name another: PYTHON=python3.12 "
    )
    assert tree.refusal() == f"{sentence}scripts/setup"
    assert [tree.refusal(script) for script in ("check", "demo", "test")] == [tree.refusal()] * 3
    assert not (tree.root / ".venv").exists()
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ]
    assert required == ">=3.11"


def test_a_python_that_is_not_there(tree: Tree) -> None:
    sentence = "there is no python3.99 on the path; install Python 3.11 or newer"
    assert tree.refusal(PYTHON="python3.99") == sentence


@pytest.mark.parametrize("missing", ["ensurepip", "venv"])
def test_a_python_without_environments(tree: Tree, missing: str) -> None:
    tree.python(missing=(missing,))
    assert tree.refusal() == (
        "python3 cannot make environments; install its venv module (Debian: apt-get install python3-venv)"
    )


def test_an_environment_that_cannot_be_made(tree: Tree) -> None:
    tree.python(venv="Traceback\nError: [Errno 13] Permission denied")
    assert tree.refusal() == f"cannot make {tree.root}/.venv: Error: [Errno 13] Permission denied"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (NETWORK, "pip cannot reach the package registry"),
        ("ERROR: [Errno 28] No space left on device", "there is no space left on the disk"),
        ("a\\n  ERROR: no wheel\\nERROR: more\\nb", "pip failed: ERROR: no wheel"),
        ("Killed", "pip failed: Killed"),
    ],
)
def test_a_pip_that_fails(tree: Tree, said: str, reason: str) -> None:
    tree.python(pip=f"sys.exit('{said}')")
    assert tree.refusal() == f"{reason}; all that pip said is in {tree.root}/.venv/pip.log"
    assert (tree.root / ".venv/pip.log").read_text(encoding="utf-8") == said.replace("\\n", "\n") + "\n"
    tree.python()
    assert [tree.does(), tree.does()] == ["all", "nothing"]


@pytest.mark.parametrize("finished_before", [False, True])
def test_a_set_up_that_is_killed_starts_anew(tree: Tree, finished_before: bool) -> None:
    if finished_before:
        tree.does()
        (tree.root / "pyproject.toml").write_text("other")
    tree.python(pip="os.kill(os.getppid(), 9)")
    assert tree.call().returncode == -9
    tree.python()
    assert [tree.does(), tree.does()] == ["all", "nothing"]


def test_constraints_that_are_not_there(tree: Tree) -> None:
    assert tree.refusal(CONSTRAINTS="none.txt") == "there is no file none.txt to read versions from"


@pytest.mark.parametrize(
    ("user", "apt", "said"), [(1000, "exit 0", ""), (0, "exit 100", "installing chromium\n")]
)
def test_tests_go_on_without_a_browser(tree: Tree, user: int, apt: str, said: str) -> None:
    tree.program("id", f"echo {user}")
    tree.program("apt-get", f"echo E: no network >&2; {apt}")
    done = tree.call("browser", path=str(tree.programs))
    assert (done.returncode, done.stdout) == (0, said)
    assert re.fullmatch(
        "there is no chromium here: tests that open pages in it are skipped .*\n", done.stderr
    )


def test_the_oldest_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    assert lines == sorted({re.sub(">=", "==", line) for line in wanted}, key=str.lower)
