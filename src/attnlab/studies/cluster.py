"""The cluster executor: the same jobs as tasks of a Ray cluster (Moritz et al., 2018).

A run folder travels: what the pool holds of a run goes out with its job, the job is done in a temporary
folder of whichever node has a free core, and the folder comes back into the pool. A node that is lost
takes only what was under way there; the driver gives those jobs out again.
"""

import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import torch
from filelock import FileLock, Timeout

from attnlab.errors import LabError, RunError, SpecError, brief
from attnlab.runs import RunFolder, create_run
from attnlab.runs.manifest import MANIFEST
from attnlab.specs import from_json
from attnlab.storage import refuse_link, refusing
from attnlab.studies.jobs import ENDS, Event, Job, is_done, pool_run
from attnlab.studies.travelling import Archive, check_archive, pack, take_back, unpack
from attnlab.studies.worker import perform

SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_ANSWER = 5.0
SETTINGS = b"\4"  # the kind of frame with which both ends of HTTP/2 begin (RFC 9113)
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + SETTINGS + bytes(5)


@final
class RayExecutor:
    """As many jobs at once as the cluster has cores, or as ``workers`` allows."""

    def __init__(self, pool: Path, *, address: str, workers: int | None) -> None:
        self._pool = pool
        self._workers = workers
        self._ray = _connect(address)
        self._running: dict[Any, Job] = {}  # by the reference to what the task will return
        self._waiting: list[Job] = []  # another process works on their runs
        self._locks: dict[str, FileLock] = {}
        self._stopping = False
        self._silence = ExitStack()
        self._cores: dict[str, float] = {}  # of every node that is alive
        self._looked = 0.0

    def __enter__(self) -> "RayExecutor":
        ray = self._ray
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        mailbox = ray.remote(num_cpus=0)(_Mailbox)
        self._mailbox = mailbox.options(scheduling_strategy=here).remote()
        self._task = ray.remote(num_cpus=1, max_retries=0)(_do_remotely)
        self._look()
        nowhere = self._silence.enter_context(Path(os.devnull).open("w"))
        self._silence.enter_context(redirect_stdout(nowhere))  # Ray prints the log of a node that died
        return self

    def __exit__(self, *error: object) -> None:
        for lock in self._locks.values():
            lock.release()
        self._ray.shutdown()
        self._silence.close()

    @property
    def slots(self) -> int:
        """Cores of the cluster as it is now: nodes come and go."""
        cores = max(1, int(sum(self._cores.values())))
        return min(cores, self._workers or cores)

    def submit(self, job: Job) -> None:
        """Send ``job`` out, or keep it until its run is free."""
        refuse_link(self._pool / f".{job.name}.lock")
        lock = FileLock(self._pool / f".{job.name}.lock")
        with refusing(self._pool):
            try:
                lock.acquire(blocking=False)
            except Timeout:  # inside: it is an OSError too
                self._waiting.append(job)
                return
        self._locks[job.name] = lock
        run = pool_run(self._pool, job.spec)
        if run is not None and not run.file(MANIFEST).exists():
            run.write({})  # of an older version: bound from now on
        folder = {} if run is None else pack(run.path)
        if not any(name.endswith(".safetensors") for name in folder):
            folder = {}  # nothing is saved yet: the node begins it, and says what it is
        self._ask("forget", job.name)
        self._running[self._task.remote(job.name, job.to_json(), _versions(), folder, self._mailbox)] = job

    def wait(self, seconds: float) -> list[Event]:
        """What happened, waiting up to ``seconds`` for a job to end."""
        waiting, self._waiting = self._waiting, []
        if self._stopping and waiting:
            return [Event(job=job.name, kind="stopped") for job in waiting]
        for job in waiting:
            self.submit(job)
        events = [*_read_events(self._ask("take")), *self._lost()]
        if self._running:
            ended, _ = self._ray.wait(list(self._running), timeout=0 if events else seconds)
            events += [self._end(reference) for reference in ended]
        elif not events:
            time.sleep(seconds)
        return events

    def answer(self, job: str, *, go_on: bool) -> None:
        self._ask("answer", job, go_on)

    def stop(self) -> None:
        """Ask every job to save and stop; those that still wait for a free core are called back."""
        self._stopping = True
        self._ask("stop")
        begun = self._ask("begun")
        for reference, job in self._running.items():
            if job.name not in begun:
                self._ray.cancel(reference)

    def _ask(self, method: str, *arguments: Any) -> Any:
        with self._reaching():
            return self._ray.get(getattr(self._mailbox, method).remote(*arguments))

    def _look(self) -> None:
        self._looked = time.monotonic()
        with self._reaching():
            alive = [node for node in self._ray.nodes() if node["Alive"]]
        self._cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in alive}

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Without the head, and the driver's own node, where the mailbox is, there is no going on."""
        try:
            yield
        except self._ray.exceptions.RayError as error:
            raise LabError(
                f"the Ray cluster was lost ({_reason(error)}); what had come back is in {self._pool}, "
                "and the same command goes on from there"
            ) from error

    def _lost(self) -> list[Event]:
        """Jobs of nodes that the cluster has given up; if one fell silent, Ray would wait many minutes."""
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return []
        begun = self._ask("begun")  # first: then a node that has just come is seen, too
        self._look()
        lost = [
            ref for ref, job in self._running.items() if begun.get(job.name, "") not in {"", *self._cores}
        ]
        error = "its task was lost (its node is gone)"
        return [self._crash(self._running.pop(reference), error) for reference in lost]

    def _end(self, reference: Any) -> Event:
        """Take a run back into the pool; whatever was lost with a node has crashed."""
        job = self._running.pop(reference)
        try:
            plain, folder = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return self._crash(job, f"its task was lost ({_reason(error)})")
        try:
            event = self._take_back(job, plain, folder)
        except (RunError, SpecError) as error:
            return self._crash(job, f"the run that came back was refused: {error}")
        self._locks.pop(job.name).release()
        return event

    def _take_back(self, job: Job, plain: Any, folder: Any) -> Event:
        """How a job ended, once the run that it gave is in the pool."""
        event, path = from_json(Event, plain, "its event"), self._pool / job.name
        if event.job != job.name or event.kind not in ENDS:
            raise RunError(f"it speaks of {brief(event.job)}, which {event.kind}")
        if check_archive(folder):
            take_back(folder, path, job.spec)
        if event.kind == "finished" and not (path.exists() and is_done(RunFolder(path), job.analyses)):
            raise RunError("it lacks what was asked for")
        return event

    def _crash(self, job: Job, error: str) -> Event:
        path = self._pool / job.name
        if not path.exists() and not self._stopping:
            create_run(path, job.spec)  # where the failure is kept if it comes again and again
        self._locks.pop(job.name).release()
        return Event(job=job.name, kind="crashed", data={"error": error})


def _read_events(plain: list[Any]) -> list[Event]:
    """What jobs have told; what is no event is passed over."""
    events = []
    for each in plain:
        with suppress(SpecError):
            events.append(from_json(Event, each, "an event"))
    return events


class _Mailbox:
    """Lives beside the driver; jobs leave events there and find answers."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._answers: dict[str, bool] = {}
        self._begun: dict[str, str] = {}
        self._stopping = False

    def forget(self, job: str) -> None:
        """Drop what an earlier attempt at the job has left."""
        self._events = [event for event in self._events if event["job"] != job]
        self._answers.pop(job, None)
        self._begun.pop(job, None)

    def begin(self, job: str, node: str) -> bool:
        """A node has taken the job; whether to stop."""
        self._begun[job] = node
        return self._stopping

    def begun(self) -> dict[str, str]:
        return self._begun

    def post(self, event: dict[str, Any]) -> bool:
        """Leave an event; whether to stop."""
        self._events.append(event)
        return self._stopping

    def take(self) -> list[dict[str, Any]]:
        events, self._events = self._events, []
        return events

    def answer(self, job: str, go_on: bool) -> None:
        self._answers[job] = go_on

    def answered(self, job: str) -> bool | None:
        """The answer, once; None while there is none."""
        return True if self._stopping else self._answers.pop(job, None)

    def stop(self) -> None:
        self._stopping = True


@final
class _MailboxLink:
    """A job's end of the mailbox. The last event travels with the folder."""

    def __init__(self, mailbox: Any, job: str) -> None:
        import ray

        self._get = ray.get
        self._mailbox = mailbox
        self._job = job
        here = ray.get_runtime_context().get_node_id()
        self._asked_to_stop = bool(self._get(mailbox.begin.remote(job, here)))
        self.last: Event | None = None

    def send(self, event: Event) -> None:
        if event.kind in ENDS:
            self.last = event
        else:
            self._asked_to_stop = self._get(self._mailbox.post.remote(asdict(event)))

    def stopping(self) -> bool:
        return self._asked_to_stop

    def may_go_on(self) -> bool:
        while (answer := self._get(self._mailbox.answered.remote(self._job))) is None:
            time.sleep(0.05)
        return bool(answer)


def _do_remotely(
    name: str, data: dict[str, Any], versions: dict[str, str], folder: Archive, mailbox: Any
) -> tuple[dict[str, Any], Archive]:
    """On a node: do the job in a temporary folder; how it ended, and the folder."""
    if versions != _versions():  # first: another version may not be able to read the job
        error = f"a node of the cluster has {_versions()}, but the driver has {versions}; install the same"
        return asdict(Event(job=name, kind="failed", data={"error": error, "final": False})), folder
    job = Job.from_json(data)
    torch.set_num_threads(1)
    link = _MailboxLink(mailbox, job.name)
    with tempfile.TemporaryDirectory(prefix="attnlab-") as pool:
        path = Path(pool) / job.name
        unpack(folder, path)
        perform(job, Path(pool), link)
        assert link.last is not None
        return asdict(link.last), pack(path)


def _versions() -> dict[str, str]:
    return {"attnlab": version("attnlab"), "torch": torch.__version__}


def _reason(error: Exception) -> str:
    """The line of Ray's message that says most: what was raised on a node comes last."""
    from ray.exceptions import RayTaskError

    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1 if isinstance(error, RayTaskError) else 0].strip().rstrip(".")


def _connect(address: str) -> Any:
    """Ray, connected to the cluster at ``address``; a host that does not answer is told at once."""
    if find_spec("ray") is None:
        raise LabError("cluster needs the package ray; install it with: pip install 'attnlab[cluster]'")
    address = _find(address)
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise LabError(f"cluster is {brief(address)}, but it must be HOST:PORT or auto")
    try:
        _greet(host.strip("[]"), int(port))
    except (OSError, OverflowError) as error:
        raise LabError(
            f"no Ray cluster answers at {brief(address)} ({error}); start one with: ray start --head"
        ) from error
    if host in ("127.0.0.1", "localhost"):  # else Ray goes by the machine's outer address, in vain
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray
    import ray.util.scheduling_strategies

    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split()).rstrip(".")  # all of it: other versions are told line by line
        raise LabError(f"the Ray cluster at {brief(address)} refuses ({reason})") from error
    if signal.getsignal(signal.SIGTERM) is not before:
        signal.signal(signal.SIGTERM, before)  # Ray takes SIGTERM for itself; ours asks the jobs to save
    return ray


def _greet(host: str, port: int) -> None:
    """See that the other end speaks HTTP/2, as Ray does; with anything else Ray would try for minutes."""
    with socket.create_connection((host, port), timeout=SECONDS_TO_ANSWER) as connection:
        if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
            connection.sendall(HELLO)
            if connection.recv(9)[3:4] != SETTINGS:
                raise ConnectionError("something else is there")


def _find(address: str) -> str:
    """The address of the cluster that this machine belongs to, if ``auto`` is asked for."""
    if address != "auto":
        return address
    if named := os.environ.get("RAY_ADDRESS"):
        return named
    # Where Ray keeps its files; it does not go by Python's temporary folder.
    names = ("RAY_TMPDIR", "TMPDIR") if sys.platform.startswith("linux") else ("RAY_TMPDIR",)
    folder = Path(next((os.environ[name] for name in names if name in os.environ), "/tmp"))
    try:
        return (folder / "ray/ray_current_cluster").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise LabError(
            "cluster auto finds no Ray cluster on this machine; start one with: ray start --head"
        ) from error
