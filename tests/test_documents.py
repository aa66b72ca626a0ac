"""What README and the results say is true, and every command they show works."""

import importlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import mean

import matplotlib
import pytest
import torch

from attnlab.analysis.predict import answer_all
from attnlab.figures.studies import draw_seeds, seeds_data
from attnlab.figures.style import to_svg
from attnlab.problems.addition import Addition
from attnlab.runs import load_model, open_run, run_folders
from attnlab.specs import to_json
from attnlab.studies.jobs import run_name
from attnlab.studies.outcome import read_results
from attnlab.studies.study import find_study, read_catalogue
from attnlab.studies.sweeps.file import read_sweep_file
from attnlab.tables.study import markdown
from commands import apart, attnlab, complaint, printed, run

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


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_works(line: str, tmp_path: Path) -> None:
    """As written, but for what takes minutes, which is cut short."""
    _, *words = shlex.split(line)
    called = apart if words[0] == "export" else attnlab  # graphs are traced with sizes that are no int
    called(*_shortened(words, tmp_path), cwd=tmp_path)


@pytest.mark.slow
def test_what_is_shipped_was_right_on_a_million_sums_and_still_is() -> None:
    """The proof that is shipped is one of the weights that are shipped; a sample of it is done again."""
    run = open_run("zoo:adder")
    proof = run.analysis("verify")
    assert proof is not None
    assert proof["correct"] == proof["total"] == 1_000_000
    task, model = run.spec().task, load_model(run)
    pairs = torch.randint(0, 1000, (5_000, 2), generator=torch.Generator().manual_seed(0))
    assert isinstance(task, Addition)
    assert torch.equal(answer_all(task, model, task.examples(pairs)), task.target(pairs))


def _shortened(words: list[str], folder: Path) -> list[str]:
    """The command made quick, and such that it finds the project's files from ``folder``."""
    match words:
        case ["verify", "zoo:adder"]:
            return ["verify", "--help"]  # two minutes; the proof has a test of its own
        case ["study", "run", name, *_]:
            assert find_study(name, read_catalogue()).variants
            return ["study", "run", "--help"]  # a minute; tiny studies have tests of their own
        case ["handout", _, *rest]:
            return ["handout", "zoo:sorter", *rest]  # a thousand answers of the adder take half a minute
        case ["train", file, *rest] if file.endswith(".py"):
            return ["train", str(ROOT / file), *rest, *SMALL]
        case ["predict", run, *_] if run.startswith("runs/"):
            return ["predict", "--help"]  # each command has a folder of its own; own-task.md has a test
        case ["train", *_]:
            return [*words, *SMALL]
        case ["study", "show", name, *_]:
            return [*words, "--out", str(ROOT / "results" / name)]
        case ["metrics", *rest]:
            return ["metrics", "zoo:adder", *rest[1:]]  # each command has a folder of its own
        case ["data", "fetch"]:
            return ["data", "status"]  # tests stay off the network; they have a server of their own
        case ["explore", *_]:
            return ["explore", "--help"]  # it serves until it is stopped; the server has tests of its own
        case ["ablate", *_]:
            return [*words, "--baselines", "mean", "--examples", "50"]
        case ["lengths", *_]:
            return [*words, "--examples", "20"]
        case ["patch", *_]:
            return [*words, "--pairs", "8"]
        case ["report", *_]:
            return [*words, "--sections", "good", "maps"]
        case ["heads", *_]:
            return [*words, "--examples", "50"]
        case ["prune", *_]:
            return ["prune", "--help"]  # minutes; the command has tests of its own
        case ["sweep", file, *rest]:
            text = (ROOT / file).read_text()
            for written, quick in (("train: 3000", "train: 200"), ("epochs: 6", "epochs: 1")):
                assert written in text
                text = text.replace(written, quick)
            (folder / "short.yaml").write_text(text)
            return ["sweep", "short.yaml", *rest, "--count=1", "--workers=1"]
    return words


@pytest.mark.slow
def test_the_readme_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert printed(code, cwd=tmp_path) == ["696", "596", "torch.Size([1, 4, 5, 7])"]


@pytest.mark.slow
def test_the_page_about_python_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/howto/python.md").read_text(), re.DOTALL)
    assert len(blocks) == 7
    code = "\n".join(blocks)
    for written, quick in (("epochs=4", "epochs=1, train=200"), ("examples=500", "examples=50")):
        assert written in code
        code = code.replace(written, quick)
    said = "print(answer.text, seen['decoder.1.cross.pattern'].shape, result.exact_match, study.seeds)"
    lines = printed(f"{code}\n{said}", cwd=tmp_path)
    assert lines[-1] == "1188 torch.Size([1, 4, 5, 7]) 1.0 3"


@pytest.mark.slow
def test_a_task_of_ones_own_works_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/own-task.md").read_text()
    (tmp_path / "majority.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    train, *others = [
        shlex.split(line)[1:] for line in re.findall(r"^attnlab .* *$", page, re.MULTILINE)[:5]
    ]
    quick = ("--training.epochs=30", "--training.lr=0.004", "--training.threads=1", "--model.width=32")
    attnlab(*train, *quick, cwd=tmp_path)
    assert others[-1][0] == "report"
    others[-1] += ["--sections", "good"]  # pages of other tasks show all of them
    said = [attnlab(*words, cwd=tmp_path).stdout for words in others]
    assert "by group" in said[0]
    assert said[1].startswith("110010111 = yes")
    assert said[2].startswith("majority-default-s0, one symbol, 20 pairs such as ")
    assert (tmp_path / "majority.html").exists()


@pytest.mark.slow
def test_the_class_of_that_page_works(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/own-task.md").read_text()
    _, code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "again.py").write_text(code)
    quick = ("--train=3000", "--training.epochs=10", "--training.threads=1", "--model.width=32")
    attnlab("train", "again.py", *quick, cwd=tmp_path)
    run = "runs/again-default-s0"
    assert attnlab("predict", run, "12314", cwd=tmp_path).stdout.startswith("1 2 3 1 4 = yes")
    assert complaint("predict", run, "123", cwd=tmp_path) == "'123' is not 5 digits"
    found = json.loads(attnlab("patch", run, "--pairs=10", "--json", cwd=tmp_path).stdout)
    (contrast,) = found["columns"]
    assert contrast["name"] == "the first digit"
    base, donor = (contrast["example"][side].split() for side in ("base", "donor"))
    assert (base[0] in base[1:], donor[0] in donor[1:], base[1:]) == (False, True, donor[1:])
    stream = next(grid for grid in contrast["denoising"] if grid["quantity"] == "residual stream")
    assert stream["columns"] == ["cls", "1", "2", "3", "4", "5"]
    assert stream["share"][-1] == pytest.approx([1, 0, 0, 0, 0, 0], abs=1e-3)  # the answer is read there


def test_the_examples_of_the_study_page_can_be_used(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/studies.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    sweeps = (ROOT / "docs/howto/sweeps.md").read_text()
    (short,) = re.findall(r"```yaml\n(.*?)```", sweeps, re.DOTALL)
    (tmp_path / "my_studies.py").write_text(code)
    (tmp_path / "short.yaml").write_text(short)
    study = find_study("heads", read_catalogue(tmp_path / "my_studies.py"))
    assert [to_json(study.spec(name, 0).model)["heads"] for name in study.variants] == [1, 2, 4, 8]
    sweep = read_sweep_file(tmp_path / "short.yaml")
    assert (sweep.count, set(sweep.parameters)) == (
        20,
        {"training.lr", "model.encoder_layers", "model.heads", "model.positions"},
    )


@pytest.mark.slow
def test_scripts_demo_runs_the_demo(tmp_path: Path) -> None:
    """What the demo does is in ``test_commands.py``."""
    done = run(["bash", ROOT / "scripts/demo", "--help"], cwd=tmp_path)
    assert "usage: attnlab demo" in done.stdout


def test_tables_of_all_documents_are_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    build = importlib.import_module("build")
    tables = 0
    for document in build.documents():
        text = document.read_text()
        tables += text.count("<!-- end -->")
        assert build.fill(text) == text, f"{document.name} differs from the results: python docs/build.py"
    assert tables >= 3
    assert build.fill(README.replace("| 30 of 30 |", "| 29 of 30 |")) == README


def same_picture(kept: str, drawn: str) -> bool:
    """To the byte with the Matplotlib that drew it; others set the same words a little apart."""
    if f"matplotlib=={matplotlib.__version__}\n" in (ROOT / "constraints.txt").read_text():
        return kept == drawn
    words = re.compile(r"<!-- (.*?) -->|>([^<>\n]+)</text>")
    return bool(words.findall(kept)) and words.findall(kept) == words.findall(drawn)


@pytest.mark.slow
def test_results_of_studies_are_what_their_files_say() -> None:
    """Table and picture are made from the JSON beside them, and the JSON is of the catalogue's study."""
    folders = [path.parent for path in (ROOT / "results").glob("*/study.json")]
    assert {folder.name for folder in folders} >= {"addition-positions", "addition-seeds"}
    for folder in folders:
        result = read_results(folder)
        assert result is not None
        assert (folder / "study.md").read_text().endswith(markdown(result))
        assert same_picture((folder / "study.svg").read_text(), to_svg(draw_seeds(seeds_data(result))))
        study = replace(read_catalogue()[folder.name], seeds=len(result.seeds))
        assert [v.name for v in result.variants] == list(study.variants)
        for variant in result.variants:
            assert variant.runs == [run_name(study.spec(variant.name, seed)) for seed in result.seeds]
        assert result.complete
        assert result.environment.commit


def test_results_meet_what_was_promised() -> None:
    assert RESULT["spec"]["task"]["train"] <= 20_000
    assert len(RESULT["seeds"]) == 10
    assert {"default", "avx2"} <= RESULT["settings"].keys()
    assert RESULT["perfect"] == RESULT["total"] == len(RESULT["seeds"]) * len(RESULT["settings"])
    assert RESULT["different_weights"] == RESULT["total"]  # another processor is another training
    assert RESULT["largest_verify_memory_mib"] < 2048


def test_studies_cost_what_was_promised() -> None:
    found = json.loads((ROOT / "results/studies/speed.json").read_text())
    assert len(found["rounds"]) >= 3
    assert found["two_workers_over_one"] <= 0.65
    assert found["study_over_by_hand"] <= 1.05


def test_the_engine_by_hand_is_as_fast_as_was_promised() -> None:
    found = json.loads((ROOT / "results/explicit/speed.json").read_text())
    assert found["16"]["ratio"] >= 2.5
    assert found["64"]["ratio"] >= 1.7
    assert found["64"]["share_of_machine"] >= 1 / 3
    assert found["16"]["evaluation_seconds"] < 1


def test_one_plain_head_reads_digits_as_well_as_was_promised() -> None:
    found = json.loads((ROOT / "results/patch-attention-best/study.json").read_text())
    seeds = {row["name"]: row["measures"]["accuracy"]["values"] for row in found["variants"]}
    large, small = seeds["64/128"], seeds["16/32"]
    assert len(large) == len(small) == 5
    assert mean(large) >= 0.95
    assert max(large) - min(large) < 0.01
    assert mean(small) >= 0.85
    assert min(large + small) > 0.85
    assert max(small) - min(small) < 0.02


def test_ablation_is_as_fast_as_was_promised() -> None:
    found = json.loads((ROOT / "results/ablation/speed.json").read_text())
    assert (found["heads"], found["examples"]) == (24, 2000)
    assert found["ratio"] >= 3
    assert found["ratio_lowest"] >= 3


def test_the_explorer_answers_as_fast_as_was_promised() -> None:
    found = json.loads((ROOT / "results/explorer/latency.json").read_text())
    for name in ("zoo:adder", "zoo:sorter", "zoo:digit", "zoo:grid"):  # zoo:long-adder came later
        places = found["runs"][name]
        assert max(row["p95"] for row in places.values()) <= 50
        assert max(row["first_paint"] for row in places.values()) <= 1000
        assert places["served"]["ready_seconds"] <= 4
        assert places["hand-out"]["megabytes"] < 4


def test_handouts_of_shipped_runs_answer_as_torch_and_are_small() -> None:
    found = json.loads((ROOT / "results/explorer/handouts.json").read_text())["runs"]
    assert set(found) == {f"zoo:{run.path.name}" for run in run_folders(ROOT / "src/attnlab/zoo")}
    for row in found.values():
        assert row["answers"] == 1000
        assert row["v8"]["wrong"] == row["chromium"]["wrong"] == 0
        assert max(row["v8"]["away"], row["chromium"]["away"]) <= 1e-3
        assert row["megabytes"] < 4


def test_fifty_pages_at_once_lose_nothing_and_gain_no_memory() -> None:
    found = json.loads((ROOT / "results/explorer/tabs.json").read_text())
    assert (found["tabs"], found["errors"]) == (50, [])
    assert found["minutes"] >= 10
    assert abs(found["memory_gained_mib"]) <= 0.01 * found["memory_mib"]


def test_the_widget_says_in_jupyterlab_what_python_says() -> None:
    found = json.loads((ROOT / "results/explorer/jupyterlab.json").read_text())
    assert found["wrong"] == {}
    assert found["steps"]["shown_off"] == ["696", found["steps"]["off"]]
    assert found["steps"]["hosts"] == ["127.0.0.1"]


def test_importing_is_as_fast_as_was_promised() -> None:
    ways = json.loads((ROOT / "results/startup/startup.json").read_text())["ways"]
    assert ways["import attnlab"]["beside_torch"] <= 1


def test_as_many_heads_can_go_as_was_promised() -> None:
    seeds = [
        json.loads(path.read_text()) for path in sorted((ROOT / "results/pruning").glob("seed-*.json"))
    ]
    assert [seed["seed"] for seed in seeds] == [0, 1, 2, 3, 4]
    assert seeds[0]["run"] == "zoo:adder"
    for seed in seeds:
        whole = seed["all_pairs"]["whole"]
        plain, trained = seed["all_pairs"]["without_training"][0], seed["all_pairs"]["with_training"][0]
        assert whole["total"] == plain["total"] == trained["total"] == 1_000_000
        assert len(plain["removed"]) >= 19
        assert plain["training"]["steps"] == 0
        assert whole["correct"] - plain["correct"] < 10_000
        assert len(trained["removed"]) >= 22
        assert trained["training"]["seconds"] <= 20
        assert whole["correct"] - trained["correct"] < 10_000
        assert max(plain["logit_difference"], trained["logit_difference"]) <= 1e-5


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    found = json.loads((ROOT / "results/lengths/memory.json").read_text())
    added = {(row["way"], row["length"]): row["mib"] for row in found["rows"]}
    matrix = 16_384**2 * 4 / 2**20  # MiB of one head's scores
    ways = {way for way, length in added if length == 16_384}
    assert ways >= {"window of 2", "all keys, rotary", "all keys, log n", "all keys, alibi"}
    for way in ways:
        assert added[way, 16_384] < matrix / 8
        # Blocks of the allocator make one doubling uneven; over sixteen times the length the square is 256.
        assert added[way, 16_384] < 32 * added[way, 1024]
    assert added["looking at the pattern", 4096] > 3 * added["looking at the pattern", 2048]


def test_documents_name_files_that_exist() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for address in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text()):
            assert (document.parent / address).exists(), f"{document.name} names {address}"
