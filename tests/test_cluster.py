"""Studies on a Ray cluster: a real one of two nodes on 127.0.0.1, and Ray's calls within this process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any, final

import pytest
import ray
import ray.exceptions
from filelock import FileLock

from attnlab.errors import LabError
from attnlab.runs import Run, create_run
from attnlab.studies import Event, Job, cluster, open_executor
from attnlab.studies.cluster import Archive, RayExecutor, pack, unpack
from attnlab.studies.driving import ATTEMPTS, drive
from attnlab.studies.jobs import failure, pool_run
from attnlab.training import train_run
from commands import apart, command, environment
from tiny import tiny

ROOT = Path(__file__).parent.parent
CATALOGUE = Path(__file__).parent / "tiny_studies.py"
TASK = "ray::_do_remotely"  # what Ray calls a process while it does a job
MINUTES = 180.0


# A cluster of two nodes


@final
@dataclass
class Nodes:
    """The cluster of ``scripts/local-cluster``; its files and those of its jobs are in one folder."""

    process: subprocess.Popen[str]
    folder: Path
    address: str = ""
    second: int = 0
    """The process that is the second node."""

    def workers(self) -> dict[int, int]:
        """The process of every job under way, and the node it runs on."""
        family = processes()
        nodes = {
            pid
            for pid, (parent, name) in family.items()
            if parent == self.process.pid and "raylet/raylet" in name
        }
        return {
            pid: parent
            for pid, (parent, name) in family.items()
            if parent in nodes and name.startswith(TASK)
        }

    def epochs(self) -> dict[str, int]:
        """How many epochs every run under way has behind it."""
        pools = self.folder.glob("attnlab-*")
        return {run: count for pool in pools for run, count in epochs_in(pool).items()}


def epochs_in(pool: Path) -> dict[str, int]:
    """How many epochs every run in a pool has behind it."""
    with suppress(FileNotFoundError):  # a folder that goes while one looks
        logs = pool.glob("*/metrics.jsonl")
        return {log.parent.name: log.read_text().count('"event": "epoch"') for log in logs}
    return {}


def processes() -> dict[int, tuple[int, str]]:
    """Parent and command line of every process."""
    listed = subprocess.run(
        ["ps", "-Aww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(maxsplit=2) for line in listed.stdout.splitlines() if "<defunct>" not in line]
    return {int(pid): (int(parent), " ".join(name)) for pid, parent, *name in rows}


def descendants(pid: int) -> set[int]:
    family = processes()
    found = {pid}
    while more := {child for child, (parent, _) in family.items() if parent in found} - found:
        found |= more
    return found


@contextmanager
def local_cluster() -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory(prefix="nodes-", ignore_cleanup_errors=True) as name:  # sockets: short
        nodes = Nodes(
            subprocess.Popen(
                [ROOT / "scripts/local-cluster"],
                stdin=subprocess.PIPE,  # ends the cluster when this process is gone, whatever the reason
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": name},
            ),
            Path(name),
        )
        assert nodes.process.stdout is not None
        assert nodes.process.stdin is not None
        try:
            nodes.address = nodes.process.stdout.readline().strip()
            nodes.second = int(nodes.process.stdout.readline())
            yield nodes
        finally:
            family = descendants(nodes.process.pid)
            nodes.process.stdin.close()
            assert nodes.process.wait(60) == 0
            nodes.process.stdout.close()
        until(lambda: not family & processes().keys())


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with local_cluster() as found:
        yield found


@contextmanager
def started(*words: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command under way; seen out, or killed if the test fails meanwhile."""
    cwd.mkdir(exist_ok=True)
    process = subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(cwd),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(condition: Callable[[], Any], during: subprocess.Popen[str] | None = None) -> None:
    """Wait for something to come true while a command is under way."""
    end = time.monotonic() + MINUTES
    while not condition():
        assert time.monotonic() < end
        assert during is None or during.poll() is None, "the command has ended before it could be disturbed"
        time.sleep(0.05)


def ended(process: subprocess.Popen[str], code: int = 0) -> tuple[str, list[str]]:
    """What a command has said and told by its end."""
    said, told = process.communicate(timeout=MINUTES)
    assert process.returncode == code, told
    return said, told.splitlines()


def study(name: str, *words: str | Path) -> list[str | Path]:
    return ["study", "run", name, "--catalogue", CATALOGUE, "--pool", "pool", "--out", "result", *words]


def contents(folder: Path) -> dict[str, Any]:
    """Every file as it is, but for what depends on the clock."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): content(path) for path in files}


def content(path: Path) -> Any:
    if path.name == "metrics.jsonl":
        return [lasting(json.loads(line)) for line in path.read_text().splitlines()]
    if path.name in ("summary.json", "study.json", "environment.json"):
        return lasting(json.loads(path.read_text()))
    return path.read_bytes()


def lasting(data: Any) -> Any:
    """Without seconds, and without the commit, which changes while somebody works on the sources."""
    if isinstance(data, dict):
        clock = ("seconds", "timings", "commit", "commits")
        return {key: lasting(value) for key, value in data.items() if key not in clock}
    return data


def study_of(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "result/study.json").read_text())
    assert isinstance(found, dict)
    return found


def finished(folder: Path) -> dict[str, int]:
    """When the weights of every finished run were written."""
    summaries = folder.glob("pool/*/summary.json")
    return {path.parent.name: (path.parent / "last.safetensors").stat().st_mtime_ns for path in summaries}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slow study on this machine alone, with nothing in its way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    apart(*study("tiny-slow"), cwd=folder)
    assert len(finished(folder)) == 4
    return folder


def test_a_cluster_gives_the_same_bytes_as_one_machine(nodes: Nodes, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    apart(*study("tiny"), cwd=here)
    with started(*study("tiny", "--cluster", nodes.address), cwd=there) as process:
        busy: set[int] = set()

        def look() -> bool:
            busy.update(nodes.workers().values())
            return process.poll() is not None

        until(look)
        ended(process)
    assert len(busy) == 2
    assert nodes.second in busy
    assert contents(there / "pool") == contents(here / "pool")
    assert contents(there / "result") == contents(here / "result")
    assert set(contents(there / "result")) == {"study.json", "study.md", "study.svg"}
    assert len(finished(there)) == 4


@pytest.mark.skipif(shutil.which("ss") is None, reason="only ss tells who listens where")
def test_nothing_listens_beyond_this_machine(nodes: Nodes) -> None:
    family = descendants(nodes.process.pid)
    listed = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True)
    lines = [line for line in listed.stdout.splitlines() if any(f"pid={pid}," in line for pid in family)]
    places = [line.split()[3].rpartition(":")[0] for line in lines]
    assert len(places) >= 3
    assert set(places) <= {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}


def test_a_run_that_cannot_succeed_fails_once_and_the_others_finish(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    told = apart(
        *study("tiny-broken", "--seeds", "1", "--cluster", "auto"), cwd=tmp_path
    ).stderr.splitlines()
    broken, plain = study_of(tmp_path)["variants"]
    (failed,) = broken["failed"]
    assert "loss" in failed["error"]
    assert [line for line in told if "broken" in line and "failed" in line] == [
        f"broken, seed 0 failed: {failed['error']}"
    ]
    assert failure(Run(tmp_path / "pool" / broken["runs"][0])) is not None
    assert plain["failed"] == []
    assert list(finished(tmp_path)) == plain["runs"]


def test_a_job_that_takes_its_process_down_has_failed_after_three_attempts(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--cluster auto`` finds what Ray has noted in its temporary folder."""
    monkeypatch.setenv("TMPDIR", str(nodes.folder))
    words = study("tiny-slow", "--seeds", "1", "--cluster", "auto")
    with started(*words, cwd=tmp_path) as process:
        killed: set[int] = set()

        def kill_workers() -> bool:
            for pid in nodes.workers().keys() - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            return process.poll() is not None

        until(kill_workers)
        _, told = ended(process)
    assert len(killed) == ATTEMPTS == 3
    (failed,) = study_of(tmp_path)["variants"][0]["failed"]
    assert failed["error"].startswith("its task was lost (The worker died unexpectedly")
    assert failed["error"].endswith("), 3 times")
    assert f"plain, seed 0 failed: {failed['error']}" in told
    assert finished(tmp_path) == {}


def test_a_run_goes_from_here_to_the_cluster_and_back_to_the_same_end(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    """Begun here, gone on with on the cluster until Ctrl-C, ended here."""
    with started(*study("tiny-slow", "--workers", "1"), cwd=tmp_path) as process:
        until(lambda: any(epochs_in(tmp_path / "pool").values()), process)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
    ((begun, epochs),) = epochs_in(tmp_path / "pool").items()
    with started(*study("tiny-slow", "--cluster", nodes.address), cwd=tmp_path) as process:
        until(lambda: nodes.epochs().get(begun, 0) > epochs and len(nodes.epochs()) == 2, process)
        process.send_signal(signal.SIGINT)
        _, told = ended(process, 130)
    assert told[-1] == "stopped and saved, 0 of 4 runs finished; the same command goes on"
    states = [path.parent.name for path in tmp_path.glob("pool/*/state.safetensors")]
    assert len(states) == 2
    assert begun in states
    assert epochs_in(tmp_path / "pool")[begun] > epochs
    apart(*study("tiny-slow"), cwd=tmp_path)
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")


def test_a_killed_driver_leaves_the_cluster_free_and_what_came_back(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    words = study("tiny-slow", "--cluster", nodes.address)
    with started(*words, cwd=tmp_path) as process:
        until(lambda: finished(tmp_path) and nodes.workers(), process)
        process.kill()
        process.wait()
        before = finished(tmp_path)
    until(lambda: not nodes.workers())
    assert 1 <= len(before) < 4
    told = apart(*words, cwd=tmp_path).stderr.splitlines()
    assert told[0] == f"tiny-slow: {4 - len(before)} of 4 runs to do"
    assert before.items() <= finished(tmp_path).items()
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")


def test_a_lost_node_takes_only_what_was_under_way_there(
    nodes: Nodes, undisturbed: Path, tmp_path: Path
) -> None:
    """The last test with these nodes: afterwards there is one."""
    with started(*study("tiny-slow", "--cluster", nodes.address, "--json"), cwd=tmp_path) as process:
        until(lambda: finished(tmp_path) and nodes.second in nodes.workers().values(), process)
        before = finished(tmp_path)
        os.kill(nodes.second, signal.SIGKILL)
        said, told = ended(process)
    assert json.loads(said) == study_of(tmp_path)  # Ray has printed nothing in between
    assert len([line for line in told if line.endswith(" finished")]) == 4
    assert before.items() <= finished(tmp_path).items()
    assert contents(tmp_path / "pool") == contents(undisturbed / "pool")
    assert contents(tmp_path / "result") == contents(undisturbed / "result")


# No cluster


def refusal(pool: Path, address: str) -> str:
    """The sentence with which a cluster is refused, before anybody has waited long."""
    began = time.monotonic()
    with pytest.raises(LabError) as refused:
        open_executor(pool, workers=None, cluster=address)
    assert time.monotonic() - began < 15
    return str(refused.value)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_port_where_nothing_answers_is_refused(tmp_path: Path) -> None:
    address = f"127.0.0.1:{closed_port()}"
    began = time.monotonic()
    told = apart(*study("tiny", "--cluster", address), cwd=tmp_path, code=2)
    assert time.monotonic() - began < 15
    sentence = told.stderr.splitlines()[-1]
    assert sentence.startswith(f"attnlab: no Ray cluster answers at '{address}' (")
    assert sentence.endswith("refused); start one with: ray start --head")
    assert told.stdout == ""
    assert "Traceback" not in told.stderr
    assert refusal(tmp_path, address) == sentence.removeprefix("attnlab: ")


def test_a_port_where_something_else_answers_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        other = Thread(target=answer)
        other.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert refusal(tmp_path, address) == (
            f"no Ray cluster answers at '{address}' (something else is there); "
            "start one with: ray start --head"
        )
        other.join()


def test_an_encrypted_cluster_is_not_greeted_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster._greet("127.0.0.1", server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100) == b""


@pytest.mark.parametrize(
    "address", ["nonsense", "", ":6379", "127.0.0.1:", "localhost:six", "ray://somewhere"]
)
def test_a_nonsense_address_is_refused(tmp_path: Path, address: str) -> None:
    assert refusal(tmp_path, address) == (f"--cluster is {address!r}, but it must be HOST:PORT or auto")


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_auto_without_a_cluster_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert refusal(tmp_path, "auto") == (
        "--cluster auto finds no Ray cluster on this machine; start one with: ray start --head"
    )


def test_auto_where_a_cluster_has_been_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{closed_port()}"
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/ray_current_cluster").write_text(address)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert f"no Ray cluster answers at '{address}'" in refusal(tmp_path, "auto")


def test_without_the_package_ray_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refusal(tmp_path, "auto") == (
        "--cluster needs the package ray; install it with: pip install 'attnlab[cluster]'"
    )


def test_a_cluster_that_refuses_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray lists both versions line by line; SIGTERM stays ours, refused or not."""

    def init(**settings: Any) -> None:
        assert settings["address"] == "127.0.0.1:1"
        raise RuntimeError("Version mismatch: started with:\n    Ray: 1\nThis process:\n    Ray: 2\n")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(cluster, "_greet", lambda host, port: None)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    assert refusal(tmp_path, "127.0.0.1:1") == (
        "the Ray cluster at '127.0.0.1:1' refuses "
        "(Version mismatch: started with: Ray: 1 This process: Ray: 2)"
    )


def test_sigterm_stays_ours_when_ray_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    monkeypatch.setattr(cluster, "_greet", lambda host, port: None)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    RayExecutor(tmp_path, address="127.0.0.1:1", workers=None)
    assert signal.getsignal(signal.SIGTERM) is before


# Folders


FILES: Archive = {
    "spec.json": b"{}",
    "summary.json": b"{ }",
    "last.safetensors": bytes(range(256)),
    "metrics.jsonl": b"",
    "analysis/verify.json": b"[]",
}


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    unpack(FILES, tmp_path / "a/b")
    assert pack(tmp_path / "a/b") == FILES
    assert (tmp_path / "a/b/last.safetensors").read_bytes() == bytes(range(256))
    assert pack(tmp_path / "none") == {}


def test_locks_and_halves_stay_where_they_are(tmp_path: Path) -> None:
    unpack(FILES, tmp_path)
    for name in (".lock", ".summary.json.part", "analysis/.verify.json.part"):
        (tmp_path / name).write_text("here")
    assert pack(tmp_path) == FILES
    unpack({"spec.json": b"other"}, tmp_path)
    assert (tmp_path / ".lock").read_text() == "here"


def test_files_that_did_not_come_back_are_gone(tmp_path: Path) -> None:
    unpack(
        {**FILES, "state.safetensors": b"old", "analysis/old.json": b"old", "spec.json": b"old"}, tmp_path
    )
    unpack(FILES, tmp_path)
    assert pack(tmp_path) == FILES


@pytest.mark.parametrize("name", ["../x", "analysis/../../x", "/x"])
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match=rf"^a run came back with a file '{name}' outside its folder$"):
        unpack({name: b"evil"}, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_summary_comes_after_the_weights_and_analyses_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(cluster, "write_bytes", lambda path, _: written.append(path.name))
    unpack(FILES, tmp_path)
    assert written == ["last.safetensors", "metrics.jsonl", "spec.json", "summary.json", "verify.json"]


# Ray's calls within this process

JOB = Job(spec=tiny(threads=1), analyses=("evaluate-test",))
ASKING = Job(spec=tiny(threads=1), asks=True)


@final
class FakeActor:
    def __init__(self, kind: Callable[[], Any]) -> None:
        self._lock = Lock()
        self._inner = kind()
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> "Future[Any]":
            with self._lock:
                if self.lost:
                    return broken(ray.exceptions.ActorDiedError())
                return done(getattr(self._inner, name)(*arguments))

        return SimpleNamespace(remote=call)


def done(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def broken(error: Exception) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


@final
@dataclass
class FakeRay:
    """A task is a thread, unless it is to be lost or to wait for a core for ever; an actor is an object."""

    losses: list[Exception] = field(default_factory=list)
    full: bool = False
    cores: float = 2.0
    sent: list[tuple[Any, ...]] = field(default_factory=list)
    actors: list[FakeActor] = field(default_factory=list)
    queued: "list[Future[Any]]" = field(default_factory=list)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    exceptions = ray.exceptions
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, soft: "")
    )

    def remote(self, *, num_cpus: int, max_retries: int = 0) -> Callable[[Any], Any]:
        return lambda thing: self._actor(thing) if isinstance(thing, type) else self._task(thing)

    def _actor(self, kind: Callable[[], Any]) -> Any:
        self.actors.append(FakeActor(kind))
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: self.actors[-1]))

    def _task(self, function: Callable[..., Any]) -> Any:
        def submit(*arguments: Any) -> "Future[Any]":
            self.sent.append(arguments)
            if self.losses:
                return broken(self.losses.pop(0))
            if self.full:
                self.queued.append(Future())
                return self.queued[-1]
            return self.threads.submit(function, *arguments)

        return SimpleNamespace(remote=submit)

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def nodes(self) -> list[dict[str, Any]]:
        gone = {"NodeID": "gone", "Alive": False, "Resources": {"CPU": 100.0}}
        bare = {"NodeID": "bare", "Alive": True, "Resources": {}}
        here = {"NodeID": "here", "Alive": True, "Resources": {"CPU": self.cores}}
        return [gone, bare, here]

    def get(self, future: "Future[Any]") -> Any:
        return future.result()

    def wait(self, futures: "list[Future[Any]]", *, timeout: float) -> Any:
        found = wait_for(futures, timeout, FIRST_COMPLETED)
        return list(found.done)[:1], list(found.not_done)

    def cancel(self, future: "Future[Any]") -> None:
        if future in self.queued:
            future.set_exception(ray.exceptions.TaskCancelledError())

    def shutdown(self) -> None:
        self.threads.shutdown()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setattr(cluster, "_connect", lambda address: found)
    monkeypatch.setattr(ray, "get", found.get)
    monkeypatch.setattr(ray, "get_runtime_context", found.get_runtime_context)
    return found


def driven(
    pool: Path,
    job: Job = JOB,
    *,
    stopping: Callable[[RayExecutor], bool] = lambda executor: False,
    handle: Callable[[RayExecutor, Event], None] = lambda executor, event: None,
) -> list[Event]:
    """Every event of one job."""
    events: list[Event] = []
    jobs = iter([job])

    def see(event: Event) -> None:
        events.append(event)
        handle(executor, event)

    with RayExecutor(pool, address="anywhere:1", workers=None) as executor:
        drive(
            executor,
            pool,
            next_job=lambda: next(jobs, None),
            handle=see,
            stopping=lambda: stopping(executor),
        )
    return events


def is_free(pool: Path) -> bool:
    with FileLock(pool / f".{JOB.name}.lock", blocking=False) as lock:
        return bool(lock.is_locked)


def test_what_was_raised_on_a_node_is_the_reason(fake: FakeRay, tmp_path: Path) -> None:
    """As when attnlab is not installed there."""
    trace = "ray::_do_remotely()\n  File ...\nModuleNotFoundError: No module named 'attnlab'"
    task_error: Any = ray.exceptions.RayTaskError
    fake.losses = [task_error("f", trace, ModuleNotFoundError())] * ATTEMPTS
    (event,) = driven(tmp_path)
    error = "its task was lost (ModuleNotFoundError: No module named 'attnlab'), 3 times"
    assert event == Event(job=JOB.name, kind="failed", data={"error": error, "final": False})
    run = pool_run(tmp_path, JOB.spec)
    assert run is not None
    assert failure(run) == {"error": error, "final": False, "traceback": []}
    assert len(fake.sent) == ATTEMPTS
    assert is_free(tmp_path)


def test_a_lost_task_begins_anew_on_another_node(fake: FakeRay, tmp_path: Path) -> None:
    """The folder that waits for a failure does not travel: its environment is the driver's."""
    fake.losses = [ray.exceptions.WorkerCrashedError(), ray.exceptions.ObjectLostError("", None, "")]
    events = driven(tmp_path)
    assert events[-1] == Event(job=JOB.name, kind="finished", data={})
    assert [sent[3] for sent in fake.sent] == [{}, {}, {}]
    run = pool_run(tmp_path, JOB.spec)
    assert run is not None
    assert failure(run) is None
    assert run.analysis("evaluate-test") is not None


def test_a_lost_task_goes_on_from_what_the_pool_holds(fake: FakeRay, tmp_path: Path) -> None:
    run = create_run(tmp_path / JOB.name, JOB.spec)
    steps = iter(range(8))
    assert train_run(run, stopping=lambda: next(steps, None) is None) is None
    saved = pack(run.path)
    fake.losses = [ray.exceptions.WorkerCrashedError()]
    assert driven(tmp_path)[-1].kind == "finished"
    assert [sent[3] for sent in fake.sent] == [saved, saved]
    assert "state.safetensors" in saved
    assert not run.file("state.safetensors").exists()


def test_the_job_of_a_node_that_fell_silent_is_given_out_again(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a machine loses its network: its task never ends, but the cluster gives the node up."""
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOOKS", 0.0)
    fake.full = True

    def fall_silent(executor: RayExecutor) -> bool:
        if fake.full and fake.queued:
            executor._ask("begin", JOB.name, "gone")
            fake.full = False
        return False

    assert driven(tmp_path, stopping=fall_silent)[-1].kind == "finished"
    assert [sent[0] for sent in fake.sent] == [JOB.name] * 2
    assert not fake.queued[0].done()


def test_a_task_that_waits_for_a_core_is_called_back(fake: FakeRay, tmp_path: Path) -> None:
    fake.full = True
    events = driven(tmp_path, stopping=lambda executor: len(fake.queued) == 1)
    assert events == [Event(job=JOB.name, kind="stopped", data={})]
    assert pool_run(tmp_path, JOB.spec) is None
    assert is_free(tmp_path)


def test_a_job_stops_and_comes_back_with_its_state(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.studies.performing.SECONDS_BETWEEN_REPORTS", 0.0)
    epochs: list[int] = []
    events = driven(
        tmp_path,
        ASKING,
        handle=lambda _, event: epochs.extend([event.data["epoch"]] if event.kind == "epoch" else []),
        stopping=lambda _: bool(epochs),
    )
    assert events[-1] == Event(job=JOB.name, kind="stopped", data={})
    assert epochs == [1]
    assert "state.safetensors" in pack(tmp_path / JOB.name)


def test_a_run_that_another_process_has_is_waited_for(fake: FakeRay, tmp_path: Path) -> None:
    looks = []
    with FileLock(tmp_path / f".{JOB.name}.lock") as lock:

        def look(executor: RayExecutor) -> bool:
            looks.append(len(fake.sent))
            if len(looks) == 3:
                lock.release()
            return False

        began = time.monotonic()
        assert driven(tmp_path, stopping=look)[-1].kind == "finished"
    assert looks[:3] == [0, 0, 0]
    assert time.monotonic() - began > 0.3  # it does not ask all the time
    assert len(fake.sent) == 1


def test_waiting_for_another_process_can_be_stopped(fake: FakeRay, tmp_path: Path) -> None:
    looks = iter([False, False])
    with FileLock(tmp_path / f".{JOB.name}.lock"):
        events = driven(tmp_path, stopping=lambda _: next(looks, True))
    assert events == [Event(job=JOB.name, kind="stopped", data={})]
    assert fake.sent == []


def answer_from(*answers: bool) -> Callable[[RayExecutor, Event], None]:
    left = iter(answers)

    def handle(executor: RayExecutor, event: Event) -> None:
        if event.kind == "epoch":
            executor.answer(event.job, go_on=next(left))

    return handle


def test_epochs_wait_for_their_answers(fake: FakeRay, tmp_path: Path) -> None:
    whole = driven(tmp_path / "whole", ASKING, handle=answer_from(True, True, True))
    assert whole[-1].kind == "finished"
    assert [event.data["epoch"] for event in whole if event.kind == "epoch"] == [1, 2, 3]


def test_the_answer_no_ends_a_job(fake: FakeRay, tmp_path: Path) -> None:
    events = driven(tmp_path, ASKING, handle=answer_from(True, False))
    assert [event.data["epoch"] for event in events if event.kind == "epoch"] == [1, 2]
    assert events[-1] == Event(job=JOB.name, kind="pruned", data={})
    assert "state.safetensors" in pack(tmp_path / JOB.name)


def test_what_a_lost_attempt_has_left_in_the_mailbox_is_forgotten() -> None:
    mailbox = cluster._Mailbox()
    for name in ("late", "other"):
        assert mailbox.begin(name, "node") is False
        assert mailbox.post({"job": name}) is False
        mailbox.answer(name, True)
    mailbox.forget("late")
    assert mailbox.answered("late") is None
    assert mailbox.take() == [{"job": "other"}]
    assert mailbox.answered("other") is True
    assert mailbox.answered("other") is None
    assert mailbox.begun() == {"other": "node"}
    mailbox.stop()
    assert mailbox.begin("late", "node") is True
    assert mailbox.answered("late") is True


def test_a_cluster_that_is_lost_as_a_whole_is_told(fake: FakeRay, tmp_path: Path) -> None:
    fake.full = True

    def lose(executor: RayExecutor) -> bool:
        fake.actors[0].lost = bool(fake.queued)
        return False

    with pytest.raises(
        LabError,
        match=rf"^the Ray cluster was lost \(The actor died .*\); what had come back is in {tmp_path}, "
        r"and the same command goes on from there$",
    ):
        driven(tmp_path, stopping=lose)
    assert is_free(tmp_path)


def test_slots_are_the_cores_there_are(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOOKS", 0.0)
    for cores, workers, slots in [(2.0, None, 2), (7.0, None, 7), (0.0, None, 1), (7.0, 3, 3), (2.0, 3, 2)]:
        with RayExecutor(tmp_path, address="", workers=workers) as executor:
            fake.cores = cores
            executor.wait(0.0)
            assert executor.slots == slots


def test_a_node_with_other_versions_sends_the_run_back_untouched() -> None:
    """Before it reads the job, which it may not understand."""
    mine = cluster._versions()
    theirs = {**mine, "torch": "1.0"}
    event, folder = cluster._do_remotely("run", {"spec": "unknown"}, theirs, FILES, None)
    error = f"a node of the cluster has {mine}, but the driver has {theirs}; install the same"
    assert event == {"job": "run", "kind": "failed", "data": {"error": error, "final": False}}
    assert folder == FILES
    assert set(mine) == {"attnlab", "torch"}
