"""How much slower commands are beside other programs, and whether a quiet machine pays for it.

    python benchmarks/busy.py                            # a table, some fifteen minutes on two idle cores
    python benchmarks/busy.py --json                     # the same as JSON
    python benchmarks/busy.py --against OTHER/src        # beside another version of attnlab, by its sources
    python benchmarks/busy.py --out results/busy/busy.json

Each case is a process of its own, timed on a quiet machine and beside one and two neighbours that never
sleep, in turn, round by round. Ratios are taken within a round and told as medians, so that a slow minute
touches all sides. The neighbours are plain loops, or with ``--neighbours torch`` programs that train with
as many threads as torch takes by itself. The case ``long`` was slowest beside such programs:

    python benchmarks/busy.py --cases long --neighbours torch --rounds 1 --out results/busy/torch.json
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import tyro

from attnlab.runs import describe_environment
from attnlab.storage import write_json

ATTNLAB = "from attnlab.cli.main import main; main()"
STEPS = 150
RECIPE = ("--training.batch", "128", "--training.lr", "0.003")  # the same in every version
SUMS = 100_000
LENGTHS = ("256,1024", "400")
LONG = ("--lengths", "256,4096", "--negatives", "swap")
VERIFY = f"""
import attnlab, torch
from attnlab.analysis.predict import answer_all
from attnlab.runs import load_model, open_run
run = open_run("zoo:adder")
task, model = run.spec().task, load_model(run)
pairs = torch.cartesian_prod(torch.arange({SUMS} // 1000), torch.arange(1000))
answer_all(task, model, task.examples(pairs))
"""
CATALOGUE = f"""
from attnlab.presets import preset
from attnlab.specs import with_settings
from attnlab.studies import STEPS_TO_99, Study
SETTINGS = {{"training.steps": {STEPS}, "training.batch": 128, "training.lr": 3e-3}}
STUDIES = [
    Study(
        name="busy",
        question="How long do two runs take beside each other?",
        variants={{"default": with_settings(preset("addition", "default"), SETTINGS)}},
        measures=(STEPS_TO_99,),
        seeds=2,
    )
]
"""
CASES = {
    "train": f"{STEPS} steps of addition in batches of 128",
    "verify": f"{SUMS:,} sums decoded by zoo:adder",
    "lengths": f"zoo:sorter at lengths {LENGTHS[0]}, {LENGTHS[1]} lists each way",
    "evaluate": "zoo:digit on 10,000 test digits",
    "study": f"two runs of {STEPS} steps on two workers",
    "long": "zoo:sorter at lengths 256,4096, 1,000 lists each",
}
TRAINING = """
import torch
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
images = torch.rand(32, 49, 64)
while True:
    layer(images).square().mean().backward()
"""
NEIGHBOURS = {"python": "while True: pass", "torch": TRAINING}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    cases: tuple[str, ...] = tuple(name for name in CASES if name != "long")
    rounds: int = 3
    """Each case is timed so often in each condition."""
    neighbours: Literal["python", "torch"] = "python"
    """What the other programs do."""
    most: int = 2
    """Neighbours at the most."""
    against: Path | None = None
    """Sources of another version of attnlab, measured in turn with this one on the quiet machine."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    versions = {"this": Path(__file__).parents[1] / "src"}
    if options.against is not None:
        versions["other"] = options.against.resolve()
    result: dict[str, Any] = {"neighbours": options.neighbours, "cases": {}}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.cases:
            result["cases"][name] = {"what": CASES[name], **measure(name, versions, options, cache)}
            say(name, result["cases"][name])
            if options.out is not None:  # after every case: a stopped benchmark leaves what it has
                write(options, result)
    if options.json:
        print(json.dumps(result, indent=2))


def write(options: Options, result: dict[str, Any]) -> None:
    """Keep the result with its origin."""
    assert options.out is not None
    options.out.parent.mkdir(parents=True, exist_ok=True)
    words = f"python benchmarks/busy.py --neighbours {options.neighbours} --rounds {options.rounds}"
    words += f" --cases {' '.join(options.cases)}" if options.cases != Options.cases else ""
    words += " --against OTHER/src" if options.against is not None else ""
    origin = {
        "command": words,
        "environment": describe_environment().to_json(),
        "other": commit(options.against),
    }
    write_json(options.out, {**origin, **result})


def measure(name: str, versions: dict[str, Path], options: Options, cache: str) -> dict[str, Any]:
    """Seconds, round by round, and medians of ratios; the other version only when it is quiet."""
    for version, source in versions.items():  # compiled code, remembered threads, the disk's cache
        run(name, source, f"{cache}/{version}")
    rounds = []
    for _ in range(options.rounds):
        seconds = {
            version: [run(name, source, f"{cache}/{version}")] for version, source in versions.items()
        }
        for count in range(1, options.most + 1):
            with beside(count, options.neighbours):
                seconds["this"].append(run(name, versions["this"], f"{cache}/this"))
        rounds.append(seconds)
    conditions = range(options.most + 1)
    found: dict[str, Any] = {
        "seconds": [median(row["this"][n] for row in rounds) for n in conditions],
        "over_quiet": [median(row["this"][n] / row["this"][0] for row in rounds) for n in conditions],
    }
    if "other" in versions:
        found["over_other"] = median(row["this"][0] / row["other"][0] for row in rounds)
    return {**found, "rounds": rounds}


def run(name: str, source: Path, cache: str) -> float:
    """Seconds of one case: of the training loop alone for ``train``, else of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        if name == "train":  # each version remembers its own number of threads
            environment["ATTNLAB_CACHE"] = cache
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", *words(name, Path(folder))],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return float(json.loads(done.stdout)["seconds"]) if name == "train" else seconds


def words(name: str, folder: Path) -> list[str]:
    """What Python is told to run."""
    match name:
        case "train":
            steps = ["--training.steps", str(STEPS), "--out", f"{folder}/run", "--json"]
            return [ATTNLAB, "train", "addition", *RECIPE, *steps]
        case "verify":
            return [VERIFY]
        case "lengths":
            return [ATTNLAB, "lengths", "zoo:sorter", "--lengths", LENGTHS[0], "--examples", LENGTHS[1]]
        case "long":
            return [ATTNLAB, "lengths", "zoo:sorter", *LONG]
        case "evaluate":
            return [ATTNLAB, "evaluate", "zoo:digit"]
        case "study":
            (folder / "catalogue.py").write_text(CATALOGUE, encoding="utf-8")
            places = ["--pool", f"{folder}/pool", "--out", f"{folder}/result", "--workers", "2"]
            return [ATTNLAB, "study", "run", "busy", "--catalogue", f"{folder}/catalogue.py", *places]
    raise SystemExit(f"{name!r} is not a case; choose from {', '.join(CASES)}")


@contextmanager
def beside(count: int, kind: str) -> Iterator[None]:
    """So many neighbours that never sleep."""
    programs = [subprocess.Popen([sys.executable, "-c", NEIGHBOURS[kind]]) for _ in range(count)]
    try:
        time.sleep(3.0 if count and kind == "torch" else 0.5)
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def commit(source: Path | None) -> str | None:
    """Which version the other one is."""
    if source is None:
        return None
    command = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None


def say(name: str, found: dict[str, Any]) -> None:
    """One case as a line: on a quiet machine and beside neighbours."""
    seconds = " ".join(f"{value:7.1f}" for value in found["seconds"])
    ratios = " ".join(f"{value:5.2f}" for value in found["over_quiet"])
    other = f"   over the other version, quiet {found['over_other']:.2f}" if "over_other" in found else ""
    print(f"{name:10} seconds {seconds}   over quiet {ratios}{other}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
