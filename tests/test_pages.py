"""Code in the documentation: command lines are understood, Python runs, files that are named are there."""

import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from torch import nn, randint, randn
from torch.optim import SGD

import attnlab as al
from attnlab.cli import demo, main, parsing, train

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = ("reference/commands", "reference/names")
TESTED_BY = {
    "explanation/ablation.md": "test_ablate_command.py",
    "explanation/heads.md": "test_heads.py",
    "explanation/patching.md": "test_patching.py",
    "howto/export.md": "test_export.py",
    "howto/own-model.md": "test_wrap.py",
    "howto/own-task.md": "test_documents.py",
    "howto/python.md": "test_documents.py",
    "howto/studies.md": "test_documents.py",
    "howto/doctor.md": "test_pages.py",
    "howto/explorer.md": "test_pages.py",
    "start/first-five-minutes.md": "test_pages.py",
    **{f"course/lesson{number}.md": "test_course.py" for number in range(1, 5)},
}
"""Pages with Python, and the test that runs it."""


def pages() -> dict[str, str]:
    """The text of README and of every page that somebody wrote."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    texts = {name: path for name, path in found.items() if not name.startswith(GENERATED)}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in {**texts, "README": ROOT / "README.md"}.items()
    }


def blocks(text: str, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Each command line with its page; RUN and the like stand for what the reader has."""
    for name, text in pages().items():
        for block in (*blocks(text), *blocks(text, "(?:bash|sh|console|shell)")):
            for line in re.findall(r"^(?:\$ )?attnlab (.*)$", block, re.MULTILINE):
                yield name, shlex.split(line, comments=True)


class UnderstoodError(BaseException):
    """A command has read its words and would begin to work."""


def begin(*_: Any, **__: Any) -> Any:
    raise UnderstoodError


def understood(words: list[str]) -> str:
    """What a command says of its words, without doing anything; nothing if it takes them."""
    said = io.StringIO()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(said),
        contextlib.suppress(UnderstoodError),
    ):
        return "" if main.run(words) == 0 else said.getvalue()
    return ""


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands read their words and do nothing."""

    def hold(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def taken(*_: Any, **__: Any) -> Callable[[], int]:
            return lambda: 0

        return taken

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(parsing, "_held", hold)
    for module, name in ((train, "new_run"), (train, "load"), (demo, "new_run")):
        monkeypatch.setattr(module, name, begin)


@pytest.mark.usefixtures("idle")
def test_every_command_line_is_understood() -> None:
    lines = [(page, words) for page, words in command_lines() if not _own_file(words)]
    assert len(lines) > 100
    wrong = {f"{page}: {' '.join(words)}": said for page, words in lines if (said := understood(words))}
    assert wrong == {}


def _own_file(words: list[str]) -> bool:
    """Whether a page has the reader write the task's file."""
    return words[0] == "train" and words[1].endswith(".py") and not (ROOT / words[1]).exists()


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    "line", ["heads zoo:adder --exmples 5", "tran addition", "train addition --model.hedas 2", "study rn x"]
)
def test_a_line_that_is_wrong_is_found_out(line: str) -> None:
    assert "did you mean" in understood(line.split())


def test_scripts_that_pages_name_are_there() -> None:
    for page, text in pages().items():
        for file in re.findall(
            r"^(?:python )?((?:scripts|benchmarks|docs)/[\w/.-]+)", "\n".join(blocks(text)), re.M
        ):
            assert (ROOT / file).is_file(), f"{page} names {file}"


def test_all_python_is_run_by_a_test() -> None:
    """README's is run by ``test_documents.py``."""
    found = {name for name, text in pages().items() if blocks(text, "python")} - {"README"}
    assert found == set(TESTED_BY)
    for page, test in TESTED_BY.items():
        source = (ROOT / "tests" / test).read_text(encoding="utf-8")
        known = f"docs/{page}" in source or f'"{page}"' in source or page.startswith("course/")
        assert known, f"{test} does not read {page}"


@pytest.mark.parametrize(
    ("page", "printed"),
    [("howto/explorer.md", ["596"]), ("start/first-five-minutes.md", ["696", "596"])],
)
def test_lines_about_the_adder_print_what_they_say(
    page: str, printed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = blocks(pages()[page], "python")
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out.split() == printed


def test_lines_about_the_doctor_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the training loop, which ``test_watch.py`` runs."""
    monkeypatch.chdir(tmp_path)
    small: dict[str, Any] = {"digits": 1, "width": 16, "heads": 2, "epochs": 20, "batch": 16, "threads": 1}
    al.train("addition", out="runs/sick", train=40, valid=8, test=7, lr=1e-5, **small)
    shutil.copytree("runs/sick", "runs/addition-default-s0")
    known: dict[str, Any] = {"module": nn.TransformerEncoderLayer(8, 2, batch_first=True)}
    known |= {"inputs": randn(30, 5, 8), "labels": randint(8, (30, 5)), "loss": nn.CrossEntropyLoss()}
    known["optimiser"] = SGD(known["module"].parameters(), lr=0.1)
    first, _, last = blocks(pages()["howto/doctor.md"], "python")
    exec(compile(first, "howto/doctor.md", "exec"), known)
    assert Path("doctor.html").exists()
    exec(compile(last, "howto/doctor.md", "exec"), known)
    assert known["cured"] != known["run"].spec()
