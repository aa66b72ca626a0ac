"""What the machinery of studies costs, and what a second worker brings.

    python benchmarks/studies.py                  # about ten minutes on two idle cores
    python benchmarks/studies.py --rounds 1       # a quick look

A study of eight equal short runs is done by hand (one process that calls the training loop for each spec),
by ``attnlab study run --workers 1`` and by ``--workers 2``, in turn, each time from nothing and with whole
commands timed, process starts and imports included. Writes ``results/studies/speed.json``.

Where the speed of one and the same training varies by more than the machinery costs, the ratio of two whole
commands says little. So the cost is also put together from parts that hardly vary: what each command takes
beyond its training loops, and the share of the loop's time that is spent in listeners:

    study over by hand = (loops * (1 + share) + beyond in the study) / (loops + beyond by hand)
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import tyro

from attnlab.runs import describe_environment, run_folders
from attnlab.specs import to_json
from attnlab.storage import write_json
from attnlab.studies import STEPS_TO_99, Study
from attnlab.studies.jobs import Event, Job
from attnlab.studies.study import read_catalogue
from attnlab.studies.worker import perform
from attnlab.training import Listener, Trainer

RUNS = 8
EQUAL = Study(
    name="equal-runs",
    question="How long do eight equal runs take?",
    variants={"least first": read_catalogue()["addition-order"].variants["least first"]},
    measures=(STEPS_TO_99,),
    seeds=RUNS,
)

BY_HAND = """
import json, sys, torch
from attnlab.specs import Spec, from_json
from attnlab.training import Trainer
torch.set_num_threads(1)
seconds = []
for spec in json.load(sys.stdin):
    trainer = Trainer(from_json(Spec, spec))
    trainer.train()
    seconds.append(trainer.seconds)
print(json.dumps(seconds))
"""
CATALOGUE = """
import sys
sys.path.insert(0, {folder!r})
from studies import EQUAL
STUDIES = [EQUAL]
"""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 3
    """Each way is timed so often, in turn."""
    out: Path = Path("results/studies/speed.json")
    """The file to write."""


def main(options: Options) -> None:
    rounds: list[dict[str, Any]] = []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    while len(rounds) < options.rounds:
        rounds.append(
            {
                "by_hand": by_hand(),
                "one_worker": study(1),
                "two_workers": study(2),
                "listeners": listening(),
            }
        )
        result = {
            "what": f"a study of {RUNS} equal runs, whole commands timed, medians over rounds",
            "command": "python benchmarks/studies.py",
            "environment": describe_environment().to_json(),
            "spec": to_json(EQUAL.spec("least first", 0)),
            "seeds": EQUAL.seed_list,
            **summary(rounds),
            "rounds": rounds,
        }
        write_json(options.out, result)  # after every round: a stopped benchmark leaves what it has
        print(f"round {len(rounds)} of {options.rounds}: {json.dumps(summary(rounds))}", file=sys.stderr)


def summary(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Medians over rounds; ratios are taken within a round, so that a slow minute touches both sides."""

    def middle(way: str, key: str) -> float:
        return median(row[way][key] for row in rounds)

    def ratio(above: str, below: str, key: str) -> float:
        return median(row[above][key] / row[below][key] for row in rounds)

    loops = median(row[way]["loop_seconds"] for row in rounds for way in ("by_hand", "one_worker"))
    share = median(row["listeners"]["share"] for row in rounds)
    beyond = {way: middle(way, "beyond_seconds") for way in ("by_hand", "one_worker")}
    return {
        "two_workers_over_one": ratio("two_workers", "one_worker", "seconds"),
        "study_over_by_hand": (loops * (1 + share) + beyond["one_worker"]) / (loops + beyond["by_hand"]),
        "study_over_by_hand_as_clocked": ratio("one_worker", "by_hand", "seconds"),
        "listeners_share": share,
        "beyond_by_hand_seconds": beyond["by_hand"],
        "beyond_in_the_study_seconds": beyond["one_worker"],
    }


def timed(seconds: float, runs: list[float]) -> dict[str, float]:
    """A command's time, and how much of it was not the training of its runs, one after the other."""
    return {"seconds": seconds, "loop_seconds": sum(runs), "beyond_seconds": seconds - sum(runs)}


def listening() -> dict[str, float]:
    """The share of a training that goes into the listeners of a job, timed from inside."""
    spent = [0.0]

    def clocked(method: Callable[..., None]) -> Callable[..., None]:
        def call(*values: Any) -> None:
            began = time.perf_counter()
            method(*values)
            spent[0] += time.perf_counter() - began

        return call

    plain = Trainer.train

    def train(trainer: Trainer, listeners: Sequence[Listener], stopping: Callable[[], bool]) -> None:
        for listener in listeners:
            for event in ("started", "stepped", "logged", "epoch_ended", "stopped"):
                setattr(listener, event, clocked(getattr(listener, event)))
        plain(trainer, listeners, stopping)

    with tempfile.TemporaryDirectory() as folder, patch.object(Trainer, "train", train):
        perform(Job(spec=EQUAL.spec("least first", 0)), Path(folder), Silent())
        (run,) = run_folders(Path(folder))
        summary = run.summary()
        assert summary is not None
        seconds = summary["seconds"]
    return {"seconds": seconds, "share": spent[0] / (seconds - spent[0])}


class Silent:
    """A link that nobody is at the other end of."""

    def send(self, event: Event) -> None:
        pass

    def stopping(self) -> bool:
        return False

    def may_go_on(self) -> bool:
        return True


def by_hand() -> dict[str, float]:
    """One process, the training loop called for each spec."""
    specs = json.dumps([to_json(spec) for _, _, spec in EQUAL.specs()])
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", BY_HAND], input=specs, stdout=subprocess.PIPE, text=True, check=True
    )
    return timed(time.perf_counter() - began, json.loads(done.stdout))


def study(workers: int) -> dict[str, float]:
    """The whole command, with a pool of its own."""
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder) / "catalogue.py"
        catalogue.write_text(CATALOGUE.format(folder=str(Path(__file__).parent)), encoding="utf-8")
        words = ["study", "run", EQUAL.name, "--catalogue", str(catalogue), "--workers", str(workers)]
        places = ["--pool", f"{folder}/pool", "--out", f"{folder}/result", "--json"]
        start = [sys.executable, "-c", "from attnlab.cli.main import main; main()", *words, *places]
        began = time.perf_counter()
        subprocess.run(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - began
        runs = [run.summary() for run in run_folders(Path(folder) / "pool")]
        return timed(seconds, [summary["seconds"] for summary in runs if summary is not None])


if __name__ == "__main__":
    main(tyro.cli(Options))
