"""What a command does in an error that nobody foresaw, and with characters that steer terminals."""

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from attnlab.cli import main, unexpected
from attnlab.errors import ECHOED, LONGEST, AnalysisError, LabError, brief, printable, shortened
from attnlab.specs import require
from commands import attnlab, command, environment

CLI = Path(main.__file__).parent
KINDS: list[type[LabError]] = [LabError, *LabError.__subclasses__(), AnalysisError]
USER_ERRORS = [each.__name__ for each in KINDS]


def failing(error: BaseException, patch: pytest.MonkeyPatch) -> None:
    def call(name: str, words: list[str]) -> int:
        raise error

    patch.setattr(main, "_call", call)


def test_an_unexpected_error_is_one_sentence_and_its_traceback_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(ValueError("odd\n\x1b[31m" + 999 * "x"), monkeypatch)
    said = attnlab("runs", "--json", cwd=tmp_path, code=70)
    (file,) = (tmp_path / "cache" / "errors").iterdir()
    assert said.stdout == ""
    assert said.stderr.startswith("attnlab: unexpected error (ValueError: odd \ufffd[31mxxx")
    assert said.stderr.endswith(f"xxx); its traceback is in {file}\n")
    assert len(said.stderr) < ECHOED + 100 + len(str(file))
    kept = file.read_text()
    assert "'attnlab' 'runs' '--json'" in kept
    assert "Traceback (most recent call last)" in kept


def test_a_traceback_that_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    failing(KeyError("x"), monkeypatch)
    said = attnlab("runs", cwd=tmp_path, code=70)
    assert said.stderr == "attnlab: unexpected error (KeyError: 'x'); its traceback could not be saved\n"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (MemoryError(), 2, "there is not enough memory for this; ask for less at once"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            2,
            "there is not enough memory for this",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 0, ""),
        (LabError("a" * 2 * LONGEST), 2, "a" * ECHOED + "..." + "a" * (LONGEST - ECHOED - 3) + "\n"),
        (OSError(28, "No space left on device"), 2, "standard output: no space left on device"),
    ],
)
def test_errors_that_have_codes_of_their_own(
    error: BaseException, code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(error, monkeypatch)
    assert attnlab("runs", cwd=tmp_path, code=code).stderr.startswith(f"attnlab: {text}" if text else "")
    assert not (tmp_path / "cache").exists()


def test_closed_streams_lead_nowhere(tmp_path: Path) -> None:
    words = " ".join(f"'{word}'" for word in command("data", "status", "--json"))
    for closed in (">&-", "<&- >&- 2>&-"):
        shell = ["bash", "-c", f"{words} {closed}"]
        done = subprocess.run(
            shell, cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    for name in ("red\x1b[31m", "csi\x9b31m", "turned\u202e"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "spec.json").write_text("{}")
    table = attnlab("runs", cwd=tmp_path).stdout
    assert not set(table) & {"\x1b", "\x9b", "\u202e"}
    assert "red\ufffd[31m" in table
    found = attnlab("runs", "--json", cwd=tmp_path).stdout
    assert not set(found) & {"\x1b", "\x9b", "\u202e"}
    assert all(name in found for name in (r"red\u001b[31m", r"csi\u009b31m", r"turned\u202e"))
    refused = attnlab("evaluate", "runs/red\x1b[31m", cwd=tmp_path, code=2).stderr
    assert "\x1b" not in refused


@pytest.mark.filterwarnings("default")
def test_what_libraries_warn_of_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(name: str, words: list[str]) -> int:
        warnings.warn("odd\n  \x1b[31m" + 999 * "x", RuntimeWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(main, "_call", call)
    (line,) = attnlab("runs", cwd=tmp_path).stderr.splitlines()
    assert line.startswith("attnlab: RuntimeWarning: odd \ufffd[31mxxx")
    assert len(line) < ECHOED + 30


def test_commands_print_through_what_cleans() -> None:
    for path in CLI.glob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        bare = [each for each in calls if isinstance(each, ast.Name) and each.id == "print"]
        assert not bare or path.name in ("main.py", "output.py", "parsing.py"), path


def test_messages_repeat_what_was_given_through_what_shortens() -> None:
    """``{value!r}`` of a user error would repeat all of it; ``brief`` cuts what is long."""
    for path in CLI.parent.rglob("*.py"):
        for raised in ast.walk(ast.parse(path.read_text())):
            if isinstance(raised, ast.Call) and getattr(raised.func, "id", "") in USER_ERRORS:
                whole = [
                    ast.unparse(part.value)
                    for part in ast.walk(raised)
                    if isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
                ]
                assert not whole, f"{path}: {whole}"


def test_values_in_messages_are_short() -> None:
    assert brief("abc") == "'abc'"
    assert brief([1, 2]) == "[1, 2]"
    assert brief(10**5000) == "a number of thousands of digits"
    for value in ("x" * 10**6, list(range(10**5)), {"k" * 999: ["y" * 999] * 9}, 10**999):
        assert len(brief(value)) <= ECHOED
    with pytest.raises(LabError, match=r"^key is 'x+\.\.\.x+', but it must be short$") as refused:
        require(False, "key", "x" * 10**6, "short")
    assert len(str(refused.value)) < ECHOED + 30
    assert shortened("abcdefghij", 7) == "ab...ij"
    assert shortened("abcdefg", 7) == "abcdefg"


def test_what_steers_is_marked() -> None:
    assert printable("a\tb\nc\x1b\x07\x9f\u2066é⊢") == "a\tb\nc\ufffd\ufffd\ufffd\ufffdé⊢"
    assert printable("a\tb\nc", lines=False) == "a\ufffdb\ufffdc"


def test_files_of_tracebacks_name_the_version() -> None:
    assert unexpected._text(ValueError("x"), ["runs"]).startswith("attnlab ")
    assert sys.version.split()[0] in unexpected._text(ValueError("x"), [])
