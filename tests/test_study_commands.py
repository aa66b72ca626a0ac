"""``attnlab study`` as users meet it, and the board that shows its progress."""

import json
import math
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, final

import pytest
from rich.console import Console

import tiny_studies
from attnlab.cli import main
from attnlab.display import SECONDS_BETWEEN_LINES
from attnlab.specs import to_json
from attnlab.studies.board import Board
from attnlab.studies.jobs import Event, EventKind
from attnlab.studies.outcome import StudyResult, read_results
from attnlab.studies.study import read_catalogue
from commands import Said as Written
from commands import attnlab, command, complaint, environment
from tiny_jobs import AtOnce

pytestmark = pytest.mark.slow

STUDIES = read_catalogue()
CATALOGUE = ("--catalogue", tiny_studies.__file__)
RUN = ("study", "run")
SHOW = ("study", "show")


@dataclass(frozen=True)
class Home:
    """A folder in which tiny-broken and then tiny were run, and what the commands said."""

    path: Path
    broken: Written
    tiny: Written
    trained_by_broken: dict[str, int]


@dataclass(frozen=True)
class Said:
    """What a command did in this process."""

    code: int
    out: str
    err: str


Here = Callable[..., Said]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    path = tmp_path_factory.mktemp("home")
    broken = attnlab(*RUN, "tiny-broken", *CATALOGUE, "--workers", "1", "--json", cwd=path)
    before = trained(path)
    return Home(path, broken, attnlab(*RUN, "tiny", *CATALOGUE, "--workers", "2", cwd=path), before)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Commands in this process, which takes no time to start."""

    def run(*words: str | Path, cwd: Path) -> Said:
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            code = main.run([str(word) for word in words])
        return Said(code, *capsys.readouterr())

    return run


def trained(folder: Path) -> dict[str, int]:
    """When the weights in the pool were written."""
    files = sorted((folder / "runs/pool").glob("*/*.safetensors"))
    return {f"{path.parent.name}/{path.name}": path.stat().st_mtime_ns for path in files}


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find no commit, since somebody may commit while a test compares what they say."""
    monkeypatch.setenv("GIT_DIR", "/nowhere")


# Running and showing


def test_a_failed_run_does_not_stop_the_others(home: Home) -> None:
    result = json.loads(home.broken.stdout)
    broken, plain = result["variants"]
    kept = read_results(home.path / "results/tiny-broken")
    assert kept is not None
    assert result == kept.to_json()
    assert (result["complete"], result["runs"]) == (True, {"finished": 2, "wanted": 4})
    assert broken["measures"]["exact_match"]["values"] == [None, None]
    assert [row["seed"] for row in broken["failed"]] == [0, 1]
    assert plain["measures"]["exact_match"]["n"] == 2
    assert plain["failed"] == []
    for row in broken["failed"]:
        assert re.match(r"the loss became \w+ at step \d+; try a training.lr below 1e\+30", row["error"])
        assert f"broken, seed {row['seed']} failed: {row['error']}\n" in home.broken.stderr
    said = home.broken.stderr.splitlines()
    assert said[0] == "tiny-broken: 4 of 4 runs to do"
    assert {"plain, seed 0 finished", "plain, seed 1 finished"} < set(said)


def test_studies_share_the_runs_of_one_spec(home: Home) -> None:
    assert home.tiny.stderr.splitlines()[0] == "tiny: 2 of 4 runs to do"
    assert "plain, seed" not in home.tiny.stderr
    both = trained(home.path)
    assert {name: both[name] for name in home.trained_by_broken} == home.trained_by_broken
    assert len(both) == 2 * len(home.trained_by_broken) == 2 * 2 * 2
    mine, theirs = (read_results(home.path / "results" / name) for name in ("tiny", "tiny-broken"))
    assert mine is not None
    assert theirs is not None
    assert mine.variants[0].runs == theirs.variants[1].runs
    assert mine.variants[0].measures["exact_match"] == theirs.variants[1].measures["exact_match"]


def test_the_table_is_printed_and_kept(home: Home) -> None:
    folder = home.path / "results/tiny"
    result = read_results(folder)
    assert result is not None
    assert result.command == "attnlab study run tiny --seeds 2"
    assert home.tiny.stderr.endswith("kept in results/tiny: study.json, study.md, study.svg\n")
    lines = home.tiny.stdout.splitlines()
    assert lines[0] == "tiny: Does anything work?"
    values = result.variants[1].measures["token_accuracy"].known
    table = lines[lines.index(tiny_studies.TOKENS.title) :]
    row = next(line for line in table if re.match(r" ?post-norm .*%", line))
    assert row.split()[-2:] == [f"{100 * value:.2f}%" for value in values]
    assert "paired differences from plain" in lines
    assert lines[-1].startswith("p: exact sign-flip test")
    assert (folder / "study.md").read_text().startswith("# tiny\n\nDoes anything work?\n\n**exact match")
    assert (folder / "study.svg").read_text().rstrip().endswith("</svg>")


def test_a_study_that_is_finished_trains_nothing(
    home: Home, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("attnlab.studies.conduct.open_executor")
    for name in ("tiny", "tiny-broken", "tiny-shared"):
        before = trained(home.path)
        said = here(*RUN, name, *CATALOGUE, "--json", "--out", f"again/{name}", cwd=home.path)
        assert (said.code, said.err) == (0, "")
        assert trained(home.path) == before
        again = read_results(home.path / "again" / name)
        assert again is not None
        assert json.loads(said.out) == again.to_json()
        first = read_results(home.path / "results" / name)
        if first is not None:  # threads are those of this process
            assert replace(first, environment=again.environment) == again


def test_show_prints_what_is_kept(home: Home, here: Here) -> None:
    folder = home.path / "results/tiny"
    found = here(*SHOW, "tiny", *CATALOGUE, "--json", cwd=home.path)
    assert (found.code, StudyResult.from_json(json.loads(found.out)), found.err) == (
        0,
        read_results(folder),
        "",
    )
    found = here(*SHOW, "tiny", *CATALOGUE, "--markdown", cwd=home.path)
    assert f"# tiny\n\nDoes anything work?\n\n{found.out}" == (folder / "study.md").read_text()
    found = here(*SHOW, "tiny", *CATALOGUE, "--pool", "nowhere", cwd=home.path)
    assert (found.out, found.err) == (home.tiny.stdout, "")


def test_show_collects_what_is_there_if_nothing_is_kept(home: Home, here: Here, tmp_path: Path) -> None:
    words = (*SHOW, "tiny-shared", *CATALOGUE, "--pool", home.path / "runs/pool")
    result = json.loads(here(*words, "--json", cwd=tmp_path).out)
    tiny = read_results(home.path / "results/tiny")
    assert tiny is not None
    kept = to_json(tiny.variants[0].measures["exact_match"])
    assert result["complete"]
    assert result["variants"][0]["measures"]["exact_match"] == kept
    more = here(*words, "--seeds", "3", cwd=tmp_path)
    assert "Unfinished: 2 of 3 runs." in more.out.splitlines()
    assert contents(tmp_path) == {}


def test_show_tells_when_the_catalogue_has_moved_on(home: Home, here: Here, tmp_path: Path) -> None:
    text = Path(tiny_studies.__file__).read_text()
    (tmp_path / "other.py").write_text(text.replace("epochs=4", "epochs=5"))
    said = here(*SHOW, "tiny", "--catalogue", tmp_path / "other.py", cwd=home.path)
    assert said.out == home.tiny.stdout
    assert said.err == "the specs of tiny have changed since; this is what was kept\n"


def test_list(here: Here, tmp_path: Path) -> None:
    found = json.loads(here("study", "list", *CATALOGUE, "--json", cwd=tmp_path).out)
    assert [each["study"] for each in found] == [*STUDIES, *(study.name for study in tiny_studies.STUDIES)]
    assert found[len(STUDIES)] == {
        "study": "tiny",
        "question": "Does anything work?",
        "variants": ["plain", "post-norm"],
        "seeds": [0, 1],
        "baseline": "plain",
        "measures": ["exact_match", "token_accuracy", "steps_to_99"],
    }
    table = attnlab("study", "list", cwd=tmp_path).stdout
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    for name, study in STUDIES.items():
        assert [name, str(len(study.variants)), str(study.seeds), study.question] in rows
    assert "tiny" not in table


def test_runs_that_failed_for_good_are_tried_again_when_asked(
    home: Home, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = AtOnce(home.path / "runs/pool")
    monkeypatch.setattr("attnlab.studies.conduct.open_executor", lambda *_, **__: executor)
    monkeypatch.setattr("attnlab.display.SECONDS_BETWEEN_LINES", math.inf)  # however slow the machine is
    said = here(*RUN, "tiny-broken", *CATALOGUE, "--out", "again/retried", cwd=home.path)
    assert executor.given == []
    said = here(*RUN, "tiny-broken", *CATALOGUE, "--out", "again/retried", "--retry", cwd=home.path)
    assert executor.given == [0, 1]
    assert said.code == 0
    assert said.err.startswith("tiny-broken: 2 of 4 runs to do\nbroken, seed 0 failed: the loss became")


@pytest.mark.usefixtures("no_commit")
def test_two_commands_at_once_share_the_work(tmp_path: Path) -> None:
    words = command(*RUN, "tiny-shared", *CATALOGUE, "--seeds", "1", "--workers", "1", "--json")
    both = [
        subprocess.Popen(
            [*words, "--out", name],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    said = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0]  # timings and all: there was one training
    assert json.loads(said[0][0])["runs"] == {"finished": 1, "wanted": 1}


# Refusing


def test_study_alone_tells_how_to_use_it(here: Here, tmp_path: Path) -> None:
    assert here("study", cwd=tmp_path).code == 2
    said = here("study", "--help", cwd=tmp_path)
    assert said.code == 0
    assert said.out.startswith("usage: attnlab study list")


DAMAGED = {"99": '{"format": 99}', "torn": '{"format": 1, "stu', "empty": '{"format": 1}', "list": "[]"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("study", "rnu", "tiny"), r"unknown command 'rnu' of 'attnlab study'; did you mean 'run'\?"),
        ((*RUN, "tinny"), r"unknown study 'tinny'; did you mean 'tiny'\?"),
        (
            (*SHOW, "zzz"),
            "unknown study 'zzz'; known: addition-.*, and [0-9]+ more, all in 'attnlab study list'",
        ),
        ((*RUN, "tiny", "--seeds", "0"), "study tiny has 0 seeds, but it must have at least 1"),
        ((*RUN, "tiny", "--workers", "0"), "workers is 0, but it must be at least 1"),
        ((*RUN, "tiny", "--workers", "-2"), "workers is -2, but it must be at least 1"),
        (
            (*RUN, "tiny", "--pool", "99/study.json"),
            r"99/study\.json is not a folder; choose another folder for pool",
        ),
        (
            (*RUN, "tiny", "--out", "99"),
            r"99/study\.json has format 99, but this version of .* format 1; .*",
        ),
        (
            (*SHOW, "tiny", "--out", "99"),
            r"99/study\.json has format 99, but this version of .* format 1; .*",
        ),
        ((*RUN, "tiny", "--out", "torn"), r"torn/study\.json is not the result of a study \(.*\)"),
        (
            (*SHOW, "tiny", "--out", "torn"),
            r"torn/study\.json is not the result of a study \(.*\)",
        ),
        (
            (*SHOW, "tiny", "--out", "empty"),
            r"empty/study\.json is damaged: it has no .study., which it needs",
        ),
        (
            (*SHOW, "tiny", "--out", "list"),
            r"list/study\.json has format None, but this version of attnlab reads format 1; .*",
        ),
        ((*SHOW, "tiny"), "study tiny has no result yet; run it first"),
        (
            ("study", "list", "--catalogue", "nowhere.py"),
            r"catalogue nowhere\.py cannot be run \(FileNot.*\)",
        ),
        ((*RUN, "tiny", "--catalogue", "nowhere.py"), r"catalogue nowhere\.py cannot be run \(FileNot.*\)"),
        ((*SHOW, "tiny", "--catalogue", "99"), r"catalogue 99 cannot be run \(.*\)"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    words: tuple[str, ...], sentence: str, here: Here, tmp_path: Path
) -> None:
    for name, text in DAMAGED.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text(text)
    before = contents(tmp_path)
    catalogue = () if "--catalogue" in words or "rnu" in words else CATALOGUE
    said = here(*words, *catalogue, cwd=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"attnlab: {sentence}\n", said.err), said.err
    assert contents(tmp_path) == before


def test_refusals_of_the_real_command(tmp_path: Path) -> None:
    words = (*RUN, "tiny", *CATALOGUE, "--workers", "0")
    assert complaint(*words, cwd=tmp_path) == "workers is 0, but it must be at least 1"
    assert contents(tmp_path) == {}


# Disturbing


def progress(pool: Path, process: subprocess.Popen[str]) -> None:
    """Wait until some run in the pool gets ahead."""
    sizes: dict[Path, int] = {}
    for _ in range(12_000):
        found = {path: path.stat().st_size for path in pool.glob("*/metrics.jsonl")}
        if process.poll() is not None or any(sizes.get(path, size) < size for path, size in found.items()):
            return
        sizes = found
        time.sleep(0.01)
    raise AssertionError("nothing happened")


def result_without_times(folder: Path) -> tuple[str, bytes, bytes]:
    result = json.loads((folder / "study.json").read_text())
    assert all(seconds > 0 for row in result.pop("timings").values() for seconds in row)
    return json.dumps(result), (folder / "study.md").read_bytes(), (folder / "study.svg").read_bytes()


def weights(pool: Path) -> dict[str, bytes]:
    files = pool.glob("*/*.safetensors")
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in files}


@pytest.mark.usefixtures("no_commit")
def test_interrupted_and_killed_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    words = (*RUN, "tiny-longer", *CATALOGUE)
    attnlab(*words, "--workers", "1", "--pool", "whole", "--out", "kept/whole", cwd=tmp_path)
    pool, out, chance = tmp_path / "pieces", tmp_path / "kept/pieces", random.Random(0)

    def disturb(number: signal.Signals) -> tuple[int, str]:
        process = subprocess.Popen(
            command(*words, "--workers", "2", "--pool", pool, "--out", out),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            progress(pool, process)
            time.sleep(chance.uniform(0.0, 0.3))
            os.killpg(process.pid, number)
            _, said = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return process.returncode, said

    code, said = disturb(signal.SIGINT)  # Ctrl-C reaches the whole group
    assert code == 130
    assert re.search(r"^stopped and saved, [0-3] of 4 runs finished$", said, re.M)
    assert list(pool.glob("*/state.safetensors"))
    code, said = disturb(signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    assert len(list(pool.glob("*/summary.json"))) < 4
    assert not out.exists()
    attnlab(*words, "--workers", "1", "--pool", pool, "--out", out, cwd=tmp_path)
    assert result_without_times(out) == result_without_times(tmp_path / "kept/whole")
    assert weights(pool) == weights(tmp_path / "whole")
    assert len(weights(pool)) == 4 * 2
    assert [*pool.rglob("*.part"), *pool.rglob("error.json")] == []


# The board


@final
class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("attnlab.display.time", SimpleNamespace(monotonic=lambda: self.now))


def event(job: str, kind: EventKind, **data: Any) -> Event:
    return Event(job=job, kind=kind, data=data)


def training(job: str, done: int, total: int, note: str = "") -> Event:
    return event(job, "progress", phase="training", done=done, total=total, note=note)


def test_in_a_pipe_the_board_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with Board("colours", 4, 1) as board:
        board.name("a", "red, seed 0")
        board.name("b", "blue [/x], seed 0")
        board.see(training("a", 0, 8))
        clock.now += SECONDS_BETWEEN_LINES - 1
        board.see(training("b", 2, 8, "loss 0.5000"))
        assert capsys.readouterr().err == ""
        clock.now += 1
        board.see(training("a", 2, 8, "loss 1.5000"))
        # b went on from its first quarter: a quarter of a run in 10 s, 2.5 to go
        assert capsys.readouterr().err == (
            "colours: 1 of 4 runs, about 1 min 40 s left; red, seed 0 25% (training loss 1.5000), "
            "blue [/x], seed 0 25% (training loss 0.5000)\n"
        )
        board.see(event("a", "epoch", epoch=1))
        board.see(event("a", "finished"))
        board.see(event("b", "failed", error="no memory"))
        assert capsys.readouterr().err == "red, seed 0 finished\nblue [/x], seed 0 failed: no memory\n"
        clock.now += SECONDS_BETWEEN_LINES
        board.see(event("c", "stopped"))
        assert capsys.readouterr().err == "colours: 3 of 4 runs, about 11 s left\n"
        board.see(event("d", "pruned"))
    assert capsys.readouterr() == ("", "d pruned\n")


def test_without_progress_there_is_no_estimate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    board = Board("search", 5, 2, "trials")
    clock.now += SECONDS_BETWEEN_LINES
    board.see(training("a", 0, 0))
    assert capsys.readouterr().err == "search: 2 of 5 trials; a 0% (training)\n"


def test_in_a_terminal_every_run_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=StringIO(), force_terminal=True, width=120, record=True)
    monkeypatch.setattr("attnlab.display.console", lambda _: screen)

    def bars() -> list[str]:
        paper = Console(file=StringIO(), width=120)
        assert board._bars is not None
        with paper.capture() as text:
            paper.print(board._bars.get_renderable())
        return [" ".join(line.split()) for line in text.get().splitlines()]

    with Board("colours", 4, 1) as board:
        board.name("a", "red [/x], seed 0")
        board.see(training("a", 2, 8, "loss [1.5]"))
        board.see(training("b", 4, 8))
        whole, red, other = bars()
        assert re.fullmatch(r"colours \S+ 44% .* 1 of 4 runs", whole)  # 1 + 1/4 + 1/2
        assert re.fullmatch(r"red \[/x\], seed 0 \S+ 25% .* training loss \[1\.5\]", red)
        assert re.fullmatch(r"b \S+ 50% .* training", other)
        board.see(event("a", "failed", error="[no] memory"))
        whole, other = bars()
        assert re.fullmatch(r"colours \S+ 62% .* 2 of 4 runs", whole)
        assert other.startswith("b ")
        board.see(event("b", "finished"))
        assert len(bars()) == 1
    printed = screen.export_text()
    assert "red [/x], seed 0 failed: [no] memory\n" in printed
    assert "b finished\n" in printed
