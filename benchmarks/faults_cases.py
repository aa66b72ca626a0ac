"""The cases of ``benchmarks/faults.py``. Each has a tiny model; whatever happens, a run is used again as a
user would: it is opened, and its training goes on.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from faults_children import PATIENCE, ForkedWorkers, Row, child, dying, limited

from attnlab.cli.main import run as command
from attnlab.errors import LabError
from attnlab.runs import RunFolder, create_run, find_damage, load_model
from attnlab.runs.creating import numbered
from attnlab.runs.files import read_bound
from attnlab.runs.weights import read_tensors
from attnlab.specs import Spec, to_json
from attnlab.studies import Study, conduct, running
from attnlab.studies.study import EXACT_MATCH
from attnlab.studies.sweeps.conduct import run_sweep
from attnlab.studies.sweeps.file import read_sweep
from attnlab.training import train_run
from power_training import differs, spec_of, wrong_after_loss
from powerloss import Change, build, lose_power, record
from tiny import tiny
from tiny_digits import write_squares

CHAIN = 3
"""Kills in a row of one training."""
NOBODY = 65534


class Bench:
    """What all cases share: a folder, images, and unbroken runs to compare with."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.images = write_squares(place / "images")
        self._recorded: dict[str, list[Change]] = {}

    def spec(self, kind: str) -> Spec:
        return spec_of(kind, self.images)

    def whole(self, kind: str) -> Path:
        """An unbroken run."""
        path = self.place / f"whole-{kind}"
        if not path.exists():
            train_run(create_run(path, self.spec(kind)))
            RunFolder(path).keep_analysis("some", {"correct": 3})
        return path

    def stopped(self, path: Path) -> RunFolder:
        """A run whose training was stopped after nine steps of fifteen."""
        kept = self.place / "stopped"
        if not kept.exists():
            left = iter(range(9))
            train_run(create_run(kept, self.spec("addition")), stopping=lambda: next(left, None) is None)
        return RunFolder(Path(shutil.copytree(kept, path)))

    def recorded(self, kind: str) -> list[Change]:
        """What a training does to its files."""
        if kind not in self._recorded:
            root = self.place / f"root-{kind}"
            root.mkdir()
            script = str(Path(__file__).parents[1] / "tests/power_training.py")
            words = [sys.executable, script, str(root), kind, str(self.images)]
            self._recorded[kind] = record(words, root=root, library=build(self.place))
        return self._recorded[kind]

    def fresh(self, name: str) -> Path:
        path = self.place / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def train(path: Path, spec: Spec) -> None:
    """Begin a training or go on with it; it saves at every step."""
    run = RunFolder(path) if (path / "spec.json").exists() else create_run(path, spec)
    train_run(run, checkpoint_seconds=0)


def finish(row: Row, path: Path, spec: Spec, whole: Path, *, tried: int = 1) -> None:
    """Go on where a fault left the run, without one, and compare."""
    end = child(lambda: train(path, spec))
    kind, note = end.judge()
    if kind == "same" and (note := differs(path, whole) or find_damage(path) or ""):
        kind = "wrong"
    elif kind == "refused":
        kind = "lost"
    row.add(kind, note, tried=tried)
    row.slowest = max(row.slowest, end.seconds)


# Kills


def kill_trainings(bench: Bench, row: Row, chance: random.Random) -> None:
    kind = row.case
    whole, spec, path = bench.whole(kind), bench.spec(kind), bench.fresh("killed")
    kills = 0
    for _ in range(CHAIN):
        if chance.random() < 0.5:
            end = child(lambda: train(path, spec), kill_after=chance.uniform(0.0, 0.25))
        else:
            at = chance.randint(1, 60)
            end = child(lambda: train(path, spec), first=partial(dying, at, chance))
        kills += end.killed
    finish(row, path, spec, whole, tried=kills)


STUDY = Study(
    name="small",
    question="",
    variants={"plain": tiny(threads=1), "faster": tiny(threads=1, lr=0.05)},
    measures=(EXACT_MATCH,),
    seeds=1,
)
SWEEP = read_sweep(
    {"search": {"training.lr": [0.005, 0.01, 0.02], "training.batch": [5]}, "method": "grid"}, "small"
)


def study(place: Path) -> None:
    conduct._prepare = lambda: None
    running.subprocess = ForkedWorkers  # type: ignore[attr-defined, assignment]
    conduct.run_study(STUDY, workers=1, pool=place / "pool", out=place / "result")


def sweep(place: Path) -> None:
    running.subprocess = ForkedWorkers  # type: ignore[attr-defined, assignment]
    run_sweep(
        SWEEP, tiny(threads=1), count=3, seed=0, workers=1, cluster=None, out=place / "sweep",
        pool=place / "pool", retrain=0, retrain_seeds=1, track=(), command="",
    )  # fmt: skip


def kill_searches(bench: Bench, row: Row, chance: random.Random) -> None:
    """A study or a sweep: both processes are killed, or the worker inside a write."""
    do: Callable[[Path], None] = {"study": study, "sweep": sweep}[row.case]
    whole, place = bench.place / f"whole-{row.case}", bench.fresh("searched")
    if not whole.exists():  # here, so that all is imported: a worker forked amid an import would fail of it
        do(whole)
    kills = 0
    for _ in range(2):
        if chance.random() < 0.5:
            kills += child(lambda: do(place), kill_after=chance.uniform(0.0, 0.6)).killed
        else:
            at = chance.randint(1, 60)
            kills += child(lambda: do(place), first=partial(dying, at, chance)).code != 0
    kind, note = child(lambda: do(place)).judge()
    if kind == "same":
        note = search_differs(place, whole)
        kind = "wrong" if note else "same"
    row.add("lost" if kind == "refused" else kind, note, tried=kills)


def search_differs(place: Path, whole: Path) -> str:
    for path in sorted((whole / "pool").iterdir()):
        if not path.name.startswith(".") and (note := differs(place / "pool" / path.name, path)):
            return f"{path.name}: {note}"
    file = "result/study.json" if (whole / "result").exists() else "sweep/trials.json"
    return "" if _timeless(place / file) == _timeless(whole / file) else f"{file} is another one"


def _timeless(path: Path) -> Any:
    found = json.loads(path.read_text(encoding="utf-8"))
    return {key: value for key, value in found.items() if key not in ("timings", "environment")}


def kill_explorer(bench: Bench, row: Row, chance: random.Random) -> None:
    """A server with a run open, killed after its page was read."""
    path = bench.fresh("explored")
    shutil.copytree(bench.whole("addition"), path)
    before = contents(path)
    said = bench.place / "said"
    said.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        handle = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os._exit(command(["explore", str(path), "--no-open"]))
    kind, note = "same", ""
    try:
        read_page(said, chance)
    except (OSError, ValueError) as error:
        kind, note = "traceback", f"{error}: {said.read_text()[-200:] if said.exists() else ''}"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if contents(path) != before:
        kind, note = "wrong", "files have changed"
    row.add(kind, note)


def read_page(said: Path, chance: random.Random) -> None:
    end = time.monotonic() + PATIENCE
    while "http://" not in (text := said.read_text() if said.exists() else ""):
        if time.monotonic() > end:
            raise ValueError("no address")
        time.sleep(0.01)
    address = next(word for word in text.split() if word.startswith("http://"))
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        answer.read()
    time.sleep(chance.uniform(0, 0.3))


def contents(path: Path) -> dict[str, bytes]:
    files = (each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in files}


def lose(bench: Bench, row: Row, chance: random.Random) -> None:
    """Power is lost at a random moment of a training that is stopped, analysed and resumed."""
    kind = row.case
    changes, place = bench.recorded(kind), bench.fresh("lost")
    marks = lose_power(changes, chance.randint(1, len(changes)), place, chance)
    try:
        note = wrong_after_loss(place, marks, bench.whole(kind), bench.spec(kind))
        row.add("lost" if note else "same", note)
    except LabError as error:
        row.add("lost", str(error))
    except Exception as error:
        row.add("traceback", f"{type(error).__name__}: {error}")


# Damage


def damage(content: bytes, chance: random.Random) -> bytes:
    """A bit flipped, the end cut off, or a block of zeros."""
    place, kind = chance.randrange(max(1, len(content))), chance.randrange(3)
    if kind == 0 and content:
        return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    if kind == 1:
        return content[:place]
    block = content[place : place + 512]
    return content[:place] + bytes(len(block)) + content[place + len(block) :]


def answers(path: Path) -> dict[str, Any]:
    """All that is read of a run, each as what it says or as the sentence that refuses it."""
    run = RunFolder(path)
    found: dict[str, Callable[[], Any]] = {
        "spec": lambda: to_json(run.spec()),
        "environment": lambda: run.environment().to_json(),
        "metrics": lambda: measured_lines(run),
        "observed": lambda: run.observed().to_json(),
        "summary": run.summary,
        "analysis": lambda: run.analysis("some"),
        "logits": lambda: load_model(run)(*inputs(run)).tolist(),
        "damage": lambda: find_damage(path),
    }
    for name in ("last.safetensors", "snapshots/step-00000009.safetensors"):
        if name in read_bound_or_nothing(path):
            found[name] = partial(numbers, run, name)
    said = {}
    for key, ask in found.items():
        try:
            said[key] = ask()
        except LabError as error:
            said[key] = f"refused: {error}"
    return said


def numbers(run: RunFolder, name: str) -> dict[str, Any]:
    return {key: value.tolist() for key, value in read_tensors(run, name).items()}


def read_bound_or_nothing(path: Path) -> Any:
    try:
        return read_bound(path)
    except LabError:
        return ()


def measured_lines(run: RunFolder) -> list[Any]:
    return [to_json(each) for each in run.metrics().lines]


def inputs(run: RunFolder) -> tuple[torch.Tensor, ...]:
    return run.spec().task.splits(0)["test"].inputs


class Damaging:
    """Damages the files of a finished and of a stopped run, one at a time, in turn."""

    def __init__(self, bench: Bench) -> None:
        self.done = Path(shutil.copytree(bench.whole("addition"), bench.place / "damaged/done"))
        self.stopped = bench.stopped(bench.place / "damaged/stopped").path
        RunFolder(self.stopped).keep_analysis("some", {"correct": 3})
        self.files = [(path, name) for path in (self.done, self.stopped) for name in sorted(contents(path))]
        self.whole = {path: answers(path) for path in (self.done, self.stopped)}
        self.ends, self.bench = bench.whole("addition"), bench

    def once(self, row: Row, number: int, chance: random.Random) -> None:
        path, name = self.files[number % len(self.files)]
        file = path / name
        before = file.read_bytes()
        broken = damage(before, chance)
        if broken == before:
            broken = before[:-1]
        file.write_bytes(broken)
        began = time.process_time()
        try:
            kind, note = self._judge(path, name)
        except Exception as error:
            kind, note = "traceback", f"{type(error).__name__}: {error}"
        finally:
            file.write_bytes(before)
        seconds = time.process_time() - began
        row.slowest = max(row.slowest, seconds)
        row.add("hang" if seconds > PATIENCE / 4 else kind, f"{path.name}/{name}: {note}")

    def _judge(self, path: Path, name: str) -> tuple[str, str]:
        found, whole = answers(path), self.whole[path]
        others = {key for key in whole if found.get(key) != whole[key]} - {"damage"}
        silent = [key for key in others if not str(found.get(key, "refused")).startswith("refused: ")]
        if silent and found["damage"] is None:
            return "wrong", f"{silent[0]} is {str(found[silent[0]])[:80]}"
        if path == self.stopped and name in ("state.safetensors", "best.safetensors", "metrics.jsonl"):
            return self._resume(path)
        return ("refused", "") if others or found["damage"] != whole["damage"] else ("same", "")

    def _resume(self, path: Path) -> tuple[str, str]:
        copy = Path(shutil.copytree(path, self.bench.fresh("resumed")))
        try:
            train_run(RunFolder(copy))
        except LabError:
            return "refused", ""
        note = differs(copy, self.ends)
        return ("wrong", f"resumed, {note}") if note else ("same", "")


# Disks, limits, clocks, writers


def fill_disk(bench: Bench, row: Row, chance: random.Random) -> None:
    """No file may be longer than so, or no more fits on the disk; then there is room again."""
    spec, whole, path = bench.spec("addition"), bench.whole("addition"), bench.fresh("full")
    if row.case == "file size":
        most = int(10 ** chance.uniform(2, 4.6))
        end = child(lambda: train(path, spec), first=partial(limited, resource.RLIMIT_FSIZE, most))
        first, note = end.judge()
        if first not in ("same", "refused"):
            row.add(first, note)
            return
        finish(row, path, spec, whole)
        return
    disk = bench.place / "disk"
    disk.mkdir(exist_ok=True)
    size = chance.randrange(16, 400, 4)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk], check=True)
    try:
        first, note = child(lambda: train(disk / "run", spec)).judge()
        if first not in ("same", "refused"):
            row.add(first, note)
            return
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        finish(row, disk / "run", spec, whole)
    finally:
        subprocess.run(["umount", disk], check=True)


def read_only(bench: Bench, row: Row, _chance: random.Random) -> None:
    """Somebody who may not write evaluates a finished run and tries to train a stopped one."""
    path = bench.fresh("locked")
    shutil.copytree(bench.whole("addition"), path / "done")
    bench.stopped(path / "stopped")
    before = contents(path)
    places = [path, *(each for each in path.rglob("*") if each.is_dir())]
    for each in places:
        each.chmod(0o555)

    def work(words: list[str]) -> int:
        if os.geteuid() == 0:
            bench.place.chmod(0o755)
            command(["evaluate", str(bench.whole("muon"))])  # nobody may be unable to read modules
            os.setuid(NOBODY)
        return command(words)

    evaluated = child(lambda: work(["evaluate", str(path / "done")]))
    resumed = child(lambda: work(["train", "--resume", str(path / "stopped")]))
    for each in places:
        each.chmod(0o755)
    if contents(path) != before:
        row.add("wrong", "files have changed")
    elif evaluated.judge()[0] != "same":
        row.add("lost", f"cannot evaluate: {evaluated.said[-200:]}")
    elif resumed.judge()[0] != "refused":
        row.add(*resumed.judge())
    else:
        finish(row, path / "stopped", bench.spec("addition"), bench.whole("addition"))


def limit(bench: Bench, row: Row, chance: random.Random) -> None:
    """Little memory, or few open files; then as much as there is."""
    spec, whole, path = bench.spec("addition"), bench.whole("addition"), bench.fresh("limited")
    if row.case == "memory":
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        what, most = resource.RLIMIT_AS, held + int(10 ** chance.uniform(5, 8))
    else:
        there = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        what, most = resource.RLIMIT_NOFILE, there + chance.randrange(1, 8)
    first, note = child(lambda: train(path, spec), first=partial(limited, what, most)).judge()
    if first == "traceback" and ("MemoryError" in note or "memory" in note):
        first = "refused"  # the command line makes a sentence of it, see attnlab.cli.main
    if first not in ("same", "refused"):
        row.add(first, note)
        return
    finish(row, path, spec, whole)


def jump(bench: Bench, row: Row, chance: random.Random) -> None:
    """The clock of the day jumps by up to thirty years, forth and back, while a run trains."""
    spec, path = bench.spec("addition"), bench.fresh("jumped")
    real = time.time

    def work() -> None:
        time.time = lambda: max(0.0, real() + chance.choice((-1, 0, 1)) * chance.random() * 1e9)
        train(path, spec)

    child(work, kill_after=chance.uniform(0.05, 0.2))
    kind, note = child(work).judge()
    if kind != "same":
        row.add("lost" if kind == "refused" else kind, note)
        return
    finish(row, path, spec, bench.whole("addition"))


def write_together(bench: Bench, row: Row, _chance: random.Random) -> None:
    """Two processes at once: train one run, take one name, or keep analyses in one run."""
    path = bench.fresh("together")
    if row.case == "train one run":
        _train_both(bench, row, path)
    elif row.case == "take one name":
        ends = both(
            lambda _: numbered(path, "run", lambda place: create_run(place, bench.spec("addition")))
        )
        made = sorted(each.name for each in path.iterdir())
        whole = made == ["run", "run-2"] and not any(find_damage(path / name) for name in made)
        row.add("same" if whole and ends == [0, 0] else "lost", f"{made}, codes {ends}")
    else:
        run = RunFolder(Path(shutil.copytree(bench.whole("addition"), path)))
        ends = both(lambda who: [run.keep_analysis(f"{who}-{number}", {}) for number in range(10)])
        kept = len([name for name in read_bound(path) if name.startswith("analysis/")])
        whole = kept == 21 and find_damage(path) is None and ends == [0, 0]
        row.add("same" if whole else "lost", f"{kept} analyses, codes {ends}")


def _train_both(bench: Bench, row: Row, path: Path) -> None:
    bench.stopped(path)
    ends = both(lambda _: train(path, bench.spec("addition")))
    if 70 in ends or 0 not in ends:
        row.add("traceback", f"codes {ends}")
        return
    finish(row, path, bench.spec("addition"), bench.whole("addition"))


def both(work: Callable[[int], Any]) -> list[int]:
    """Do ``work`` in two processes at once; how they end."""
    pids = []
    for who in range(2):
        pid = os.fork()
        if not pid:
            code = 70
            try:
                work(who)
                code = 0
            except LabError:
                code = 2
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
