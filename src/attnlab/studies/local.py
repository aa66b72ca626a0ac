"""The local executor: worker processes on this machine, one torch thread each."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, final

from attnlab.errors import LabError
from attnlab.storage import refusing
from attnlab.studies.jobs import ENDS, Event, Job

SECONDS_TO_LEAVE = 30.0


@final
class LocalExecutor:
    """So many worker processes; each does one job at a time in the pool."""

    def __init__(self, pool: Path, workers: int) -> None:
        with refusing(pool):
            pool.mkdir(parents=True, exist_ok=True)
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._workers = [_Worker(pool, self._events) for _ in range(workers)]

    def __enter__(self) -> "LocalExecutor":
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.tell({"stop": True})
        for worker in self._workers:
            worker.leave()

    @property
    def slots(self) -> int:
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Give ``job`` to a free worker; there must be one."""
        next(worker for worker in self._workers if worker.job is None).take(job)

    def wait(self, seconds: float) -> list[Event]:
        dead = [worker for worker in self._workers if worker.has_died()]  # first: then all it said is there
        events = _drain(self._events, 0.0 if dead else seconds) or [worker.crash() for worker in dead]
        for event in events:
            if event.kind in ENDS:
                self._of(event.job).job = None
        return events

    def answer(self, job: str, *, go_on: bool) -> None:
        for worker in self._workers:
            if worker.job == job:  # it may have ended meanwhile
                worker.tell({"go_on": go_on})

    def stop(self) -> None:
        for worker in self._workers:
            worker.tell({"stop": True})

    def _of(self, job: str) -> "_Worker":
        return next(worker for worker in self._workers if worker.job == job)


def _drain(events: SimpleQueue[Event], seconds: float) -> list[Event]:
    """All that is there, waiting up to ``seconds`` for the first."""
    found = []
    with suppress(Empty):
        found.append(events.get(timeout=seconds))
        while True:
            found.append(events.get_nowait())
    return found


@final
class _Worker:
    """One process, started anew when it died."""

    def __init__(self, pool: Path, events: SimpleQueue[Event]) -> None:
        self._pool = pool
        self._events = events
        self._process: subprocess.Popen[str] | None = None
        self.job: str | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "attnlab.studies.worker", str(self._pool)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._log: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=environment,
            )
        except OSError as error:
            self._log.close()
            raise LabError(f"a worker process cannot be started ({error.strerror})") from error
        self._listener = Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def take(self, job: Job) -> None:
        if not self._listener.is_alive():
            self.leave()
            self.start()
        self.job = job.name
        self.tell({"do": job.to_json()})

    def tell(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError, ValueError):  # it died, and will be found dead
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()

    def leave(self) -> None:
        if self._process is None:
            return
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(SECONDS_TO_LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._listener.join()
        self._log.close()

    def has_died(self) -> bool:
        """Whether the process has ended in the middle of a job, and all that it said has been passed on."""
        return self.job is not None and not self._listener.is_alive()

    def crash(self) -> Event:
        assert self.job is not None
        return Event(job=self.job, kind="crashed", data={"error": self._last_words()})

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Pass events on until the process ends."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                with suppress(ValueError, TypeError):  # what a library printed, or a line torn by a kill
                    self._events.put(Event(**json.loads(line)))
        process.wait()

    def _last_words(self) -> str:
        assert self._process is not None
        code = self._process.returncode
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return f"its worker process {ended}" + (f" ({lines[-1]})" if lines else "")
