"""The commands as users meet them: real processes, real folders."""

import io
import json
import re
import resource
import shutil
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from attnlab.analysis.subjects import BATCH
from attnlab.cli import main as cli
from attnlab.cli.main import PLAIN
from attnlab.cli.train import EXAMPLES, read_options
from attnlab.runs import create_run
from attnlab.specs import Spec, from_json
from attnlab.training import train_run
from commands import TINY, attnlab, command, complaint, environment, run
from made_up_digits import write_pictures
from specs import PRESETS


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one tiny trained run in runs/."""
    folder = tmp_path_factory.mktemp("home")
    attnlab("train", "addition", *TINY, "--task.operands", "full", cwd=folder)
    return folder


RUN = "runs/addition-default-s0"


def test_train_gives_a_run_and_its_summary(home: Path) -> None:
    done = attnlab("train", "addition", *TINY, "--json", cwd=home)
    found = json.loads(done.stdout)
    assert found["run"] == f"{RUN}-2"
    assert found["steps"] == 3 * 13
    assert "epoch   3 of 3" in done.stderr
    spec = json.loads((home / RUN / "spec.json").read_text())
    assert spec["model"]["width"] == 16
    assert spec["training"]["lr"] == PRESETS["addition"]["default"].training.lr


def test_train_from_a_spec_file_is_the_same_run(home: Path) -> None:
    attnlab("train", "--spec", f"{RUN}/spec.json", "--out", "again", cwd=home)
    assert (home / "again/last.safetensors").read_bytes() == (home / RUN / "last.safetensors").read_bytes()


def test_evaluate(home: Path) -> None:
    found = json.loads(attnlab("evaluate", RUN, "--json", cwd=home).stdout)
    assert found["examples"] == 60
    assert found["exact_match"] == found["teacher_forced"]["exact_match"]
    assert sum(row["examples"] for row in found["by_chain"]) == 60
    assert [row["column"] for row in found["by_column"]] == ["10^0", "10^1", "10^2", "end"]
    assert json.loads((home / RUN / "analysis/evaluate-test.json").read_text()).items() > found.items()
    assert "carry chain 1" in attnlab("evaluate", RUN, "--split", "valid", cwd=home).stdout


def test_verify_counts_every_pair_and_keeps_what_is_wrong(home: Path) -> None:
    found = json.loads(attnlab("verify", RUN, "--json", cwd=home).stdout)
    assert found["total"] == 10_000
    count = 10_000 - found["correct"]
    assert len(found["wrong"]) == min(count, 1000)
    assert found["seen"]["total"] + found["unseen"]["total"] == 10_000
    kept = json.loads((home / RUN / "analysis/verify.json").read_text())
    assert kept.pop("weights")
    assert kept == found
    assert len((home / RUN / "analysis/verify-wrong.csv").read_text().splitlines()) == count + 1
    said = attnlab("verify", RUN, cwd=home).stdout
    assert f"{found['correct']:,} of 10,000 correct" in said
    assert said.count("model says") == 1
    assert len([line for line in said.splitlines() if "+" in line]) == 20
    assert f"and {count - 20:,} more; the run folder keeps all of them in analysis/verify-wrong.csv" in said


def test_predict_one_and_many(home: Path) -> None:
    one = json.loads(attnlab("predict", RUN, "37+8", "--json", cwd=home).stdout)
    assert one[0].keys() == {"input", "output", "probability", "correct"}
    assert one[0]["input"] == "37+8"
    assert 0 < one[0]["probability"] <= 1
    many = attnlab("predict", RUN, "-", cwd=home, stdin="37+8\n1 + 2\n").stdout
    assert [line.split(" = ")[0] for line in many.splitlines()] == ["37+8", "1+2"]


def test_predict_answers_lines_as_they_come(home: Path) -> None:
    """A line that cannot be read ends it: batches before it are answered, and JSON stays unfinished."""
    sums = [f"{n % 100}+{n % 7}" for n in range(2 * BATCH + 3)]
    said = attnlab("predict", RUN, "-", cwd=home, stdin="\n".join(sums)).stdout.splitlines()
    assert [line.split(" = ")[0] for line in said] == sums
    wrong = "\n".join([*sums, "x", "1+1"])
    done = attnlab("predict", RUN, "-", cwd=home, stdin=wrong, code=2)
    assert done.stdout.splitlines() == said[: 2 * BATCH]
    assert done.stderr.startswith(f"attnlab: line {len(sums) + 1}: 'x' is not a sum of two numbers; ")
    part = attnlab("predict", RUN, "-", "--json", cwd=home, stdin=wrong, code=2).stdout
    found = json.loads(part + "]")
    assert [each["input"] for each in found] == sums[: 2 * BATCH]
    whole = attnlab("predict", RUN, "-", "--json", cwd=home, stdin="\n".join(sums)).stdout
    assert json.dumps(json.loads(whole), indent=2, ensure_ascii=False) + "\n" == whole
    assert json.loads(whole)[: 2 * BATCH] == found
    ends = attnlab("predict", RUN, "-", cwd=home, stdin="1+1\r2+2\x0b3+3\r\n4+4\u20285+5").stdout
    assert [line.split(" = ")[0] for line in ends.splitlines()] == [f"{n}+{n}" for n in range(1, 6)]
    refused = complaint("predict", RUN, "-", cwd=home, stdin="1+1\n" + "1" * 2**20 + "+1")
    assert refused == "a line of standard input has more than 1,048,576 bytes, the most it may have"


def test_runs_lists_finished_unfinished_and_damaged(home: Path, tmp_path: Path) -> None:
    rows = {row["run"]: row for row in json.loads(attnlab("runs", "--json", cwd=home).stdout)}
    assert rows["addition-default-s0"]["status"] == "finished"
    assert rows["addition-default-s0"]["epochs"] == 3
    (tmp_path / "runs/broken").mkdir(parents=True)
    (tmp_path / "runs/broken/spec.json").write_text("{")
    assert "is damaged" in json.loads(attnlab("runs", "--json", cwd=tmp_path).stdout)[0]["status"]
    assert "addition-default-s0" in attnlab("runs", cwd=home).stdout
    assert "there are no runs in 'none' yet" in attnlab("runs", "none", cwd=home).stderr


@pytest.mark.slow
def test_demo_walks_the_whole_path(tmp_path: Path) -> None:
    done = attnlab("demo", *TINY, cwd=tmp_path)
    assert "of 10,000 correct" in done.stdout
    page = (tmp_path / RUN / "report.html").read_text()
    assert "of 10,000 sums correct" in page
    assert f"attnlab predict {RUN} 1+99 99+99" in done.stdout


def test_report_of_a_run(home: Path) -> None:
    words = ("--out", "page.html", "--sections", "good", "mistakes", "--json")
    found = json.loads(attnlab("report", RUN, *words, cwd=home).stdout)
    assert found["bytes"] == (home / "page.html").stat().st_size < 4_000_000


def test_version(home: Path) -> None:
    assert attnlab("--version", cwd=home).stdout == f"attnlab {version('attnlab')}\n"


def test_help_names_every_command_and_gives_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    def text(*words: str) -> str:
        with suppress(SystemExit):
            cli.run([*words, "--help"])
        return capsys.readouterr().out

    overview = text()
    for name in cli.COMMANDS:
        assert f"\n  {name}" in overview
        assert "xample: attnlab " in text(name), name
    assert "--model.positions" in text("train", "addition")


BAD_INPUT: list[tuple[list[str], str]] = [
    (["predict", RUN, "37x+1"], "'37x+1' is not a sum of two numbers; write it as 374+814"),
    (["predict", RUN, ""], "the line is empty; write a sum such as 374+814"),
    (["predict", RUN, "123+1"], "123 is outside 0 to 99, the operands that this model has learned"),
    (["predict", RUN, "1+2", "9"], "line 2: '9' is not a sum of two numbers; write it as 374+814"),
    (["predict", RUN, "-"], "there is nothing to answer; give an input such as 374+814"),
    (["predict", "nowhere", "1+1"], "no run at 'nowhere'; 'attnlab runs' lists your runs"),
    (
        ["verify", "zoo:subtractor"],
        "unknown shipped run 'zoo:subtractor'; "
        "known: zoo:adder, zoo:digit, zoo:grid, zoo:long-adder, zoo:sorter",
    ),
    (
        ["train", "addition", "--model.heads", "7"],
        "model.heads is 7, but it must be a divisor of model.width 128, such as 1, 2, 4, 8, 16, 32, 64",
    ),
    (["train", "addition", "--training.epochs", "0"], "training.epochs is 0, but it must be at least 1"),
    (["train", "adition"], "unknown task 'adition'; did you mean 'addition'?"),
    (
        ["train", "addition", "--preset", "best"],
        "unknown preset 'best' of addition; known: default, long, quick, reference",
    ),
    (
        ["train", "addition", "--model.positions", "rotari"],
        "unknown choice 'rotari'; did you mean 'rotary'?",
    ),
    (
        ["train", "addition", "--model.positions", "rotary:base=x"],
        "base in 'rotary:base=x' is 'x', but it must be a number",
    ),
    (
        ["train", "addition", "--model.positions", "rotary:base"],
        "'rotary:base' is not of the form kind:key=value,key=value",
    ),
    (
        ["train", "addition", "--out", RUN],
        f"{RUN} exists already and is not empty; choose another folder for out",
    ),
    (["train", "--spec", "none.json"], "spec file none.json does not exist"),
    (["train", "--spec"], "--spec needs a value"),
    (["train", "--preset", "x"], "'--preset' is not a task; write 'attnlab train TASK ...'"),
    (
        ["train", "addition", "--task.digits", "201"],
        "task.digits is 201, but it must be from 1 to 200",
    ),
    (
        ["demo", "--task.digits", "4"],
        "verify decodes every pair, and operands of 4 digits have 10^8; the limit is 3 digits, "
        "so use evaluate instead",
    ),
    (
        ["train", "addition", "--spec", "x.json"],
        "'addition' cannot be combined with --spec x.json, which names its task",
    ),
    (
        ["train", "addition", "--resume", RUN],
        f"'addition' cannot be combined with --resume {RUN}, which names its task",
    ),
    (["train", "--resume", RUN, "--checkpoint", "nan"], "checkpoint is nan, but it must be at least 0"),
    (["train", "addition", "--checkpoint", "-1"], "checkpoint is -1.0, but it must be at least 0"),
    (["evalute", RUN], "unknown command 'evalute'; did you mean 'evaluate'?"),
]


@pytest.mark.parametrize(("words", "text"), BAD_INPUT, ids=[" ".join(words) for words, _ in BAD_INPUT])
def test_bad_input_is_one_clear_sentence(words: list[str], text: str, home: Path) -> None:
    before = sorted(home.rglob("*"))
    assert complaint(*words, cwd=home) == text
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize("words", [["--model.hedas", "8"], ["--training.epochs", "many"]])
def test_unknown_flags_and_wrong_types_are_refused(words: list[str], home: Path) -> None:
    done = attnlab("train", "addition", *words, cwd=home, code=2)
    assert words[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_a_spec_file_that_is_no_spec(home: Path) -> None:
    (home / "bad.json").write_text('{"model": {"kind": "seq2seq", "hedas": 8}}')
    assert complaint("train", "--spec", "bad.json", cwd=home) == (
        "unknown key spec.model.hedas; did you mean 'heads'?"
    )
    (home / "bad.json").write_text("{")
    assert complaint("train", "--spec", "bad.json", cwd=home).startswith(
        "spec file bad.json cannot be read as JSON"
    )


@pytest.mark.slow
def test_a_disk_that_is_full_loses_nothing(home: Path, tmp_path: Path) -> None:
    """Files may not grow past a limit; then the limit goes, and the run ends as if nothing had been."""
    words = ("train", "addition", *TINY, "--checkpoint", "0")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    done = subprocess.run(
        command(*words, "--out", "run"), cwd=tmp_path, env=environment(tmp_path), preexec_fn=limit,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert (
        "cannot write run/state.safetensors: file too large; nothing that was saved before is lost"
        in done.stderr
    )
    assert [path.name for path in (tmp_path / "run").iterdir() if path.suffix == ".part"] == []
    attnlab("train", "--resume", "run", cwd=tmp_path)
    attnlab(*words, "--out", "whole", cwd=tmp_path)
    both = [(tmp_path / name / "last.safetensors").read_bytes() for name in ("run", "whole")]
    assert both[0] == both[1]


@pytest.mark.slow
def test_a_disk_that_fills_up_keeps_the_last_state(tmp_path: Path) -> None:
    attnlab("train", "addition", *TINY, "--out", "whole", cwd=tmp_path)
    spec = from_json(Spec, json.loads((tmp_path / "whole/spec.json").read_text()))
    second = create_run(tmp_path / "second", spec)
    steps = iter([False] * 5 + [True])
    assert train_run(second, stopping=lambda: next(steps)) is None
    before = second.file("state.safetensors").read_bytes()
    done = subprocess.run(
        command("train", "--resume", "second", "--checkpoint", "0"),
        cwd=tmp_path,
        env=environment(tmp_path),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert second.file("state.safetensors").read_bytes() == before
    attnlab("train", "--resume", "second", cwd=tmp_path)
    assert (
        second.file("last.safetensors").read_bytes() == (tmp_path / "whole/last.safetensors").read_bytes()
    )


def test_a_terminal_without_our_signs(home: Path) -> None:
    script = " ".join(f"'{word}'" for word in command("runs"))
    done = run(["bash", "-c", f"PYTHONIOENCODING=ascii {script}"], cwd=home)
    assert "addition-default-s0" in done.stdout


def test_right_and_wrong_differ_in_every_encoding() -> None:
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="ascii", errors=PLAIN) as stream:
        stream.write("✓ 3, ✗✓ 4, é")
        stream.flush()
        assert written.getvalue() == b"r 3, wr 4, ?"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", errors=PLAIN)


@pytest.mark.parametrize("task", PRESETS)
def test_help_has_an_example_of_its_task(
    task: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = " ".join(attnlab("train", task, "--help", cwd=home).stdout.split())
    assert EXAMPLES[task] in out.replace("│ ", "").replace(" │", "")
    assert [other for other in PRESETS if f"attnlab train {other}" in out] == [task]
    monkeypatch.chdir(write_pictures(tmp_path / "FOLDER").parent)
    assert parsed(EXAMPLES[task]).task.kind == task


def parsed(command: str) -> Spec:
    """The spec that a command would train."""
    return read_options(command.split()[2:], command="train")[1].spec


def test_damaged_runs_are_one_clear_sentence(home: Path) -> None:
    shutil.copytree(home / RUN, home / "damaged")
    (home / "damaged/best.safetensors").write_bytes(b"x")
    said = complaint("predict", "damaged", "1+1", cwd=home)
    assert "best.safetensors is not as it was written, says manifest.json; bring it back" in said
    (home / "damaged/manifest.json").unlink()
    older = attnlab("predict", "damaged", "1+1", cwd=home, code=2).stderr
    assert "best.safetensors cannot be read" in older.splitlines()[-1]
    shutil.copytree(home / RUN, home / "wider")
    spec = json.loads((home / RUN / "spec.json").read_text())
    spec["model"]["hidden"] = 33
    (home / "wider/spec.json").write_text(json.dumps(spec))
    assert "spec.json is not as it was written" in complaint("verify", "wider", cwd=home)
    (home / "wider/manifest.json").unlink()
    older = attnlab("verify", "wider", cwd=home, code=2).stderr
    assert "do not fit the run's spec" in older.splitlines()[-1]


def test_input_that_is_no_text(home: Path) -> None:
    script = " ".join(f"'{word}'" for word in command("predict", RUN, "-"))
    done = run(["bash", "-c", f"printf '\\xff\\xfe+1' | {script}"], cwd=home, code=2)
    assert "is not a sum of two numbers" in done.stderr
    assert "Traceback" not in done.stderr


def test_output_that_cannot_be_written(home: Path) -> None:
    script = " ".join(f"'{word}'" for word in command("predict", RUN, "1+1"))
    done = run(["bash", "-c", f"{script} > /dev/full"], cwd=home, code=2)
    assert done.stderr == "attnlab: standard output: no space left on device\n"


def test_a_model_that_does_not_fit_into_memory(tmp_path: Path) -> None:
    done = attnlab(
        "train", "addition", *TINY, "--model.hidden=999999999999", "--out=run", cwd=tmp_path, code=2
    )
    assert re.search("parameters would take [0-9,.]+ GiB of memory, but this machine has", done.stderr)
    assert not (tmp_path / "run").exists()
    assert "Traceback" not in done.stderr


def test_the_page_of_a_run_of_the_reference_range(tmp_path: Path) -> None:
    """Its first wrong sum is of operands that it was never taught."""
    attnlab("train", "addition", *TINY, "--task.operands=reference", "--out=run", cwd=tmp_path)
    attnlab("verify", "run", cwd=tmp_path)
    attnlab("report", "run", "--sections", "maps", cwd=tmp_path)
    assert "0+0, answered with " in (tmp_path / "run/report.html").read_text()


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    words = " ".join(f"'{word}'" for word in command("predict", RUN, "-"))
    sums = "\\n".join(["1+1"] * 3000)
    script = f"set -o pipefail; printf '{sums}\\n' | {words} | head -n 1"
    done = run(["bash", "-c", script], cwd=home)
    assert done.stdout.startswith("1+1 = ")
    assert done.stderr == ""
