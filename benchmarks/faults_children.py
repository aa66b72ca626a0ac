"""Processes for ``benchmarks/faults.py``: forked from one that has imported everything, killed at chosen
moments, and judged by how they end.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.errors import LabError
from attnlab.storage import _PART
from attnlab.studies import worker

PATIENCE = 120.0
"""Seconds after which a process counts as hung."""
REFUSED, UNEXPECTED = 2, 70
KINDS = ("same", "refused", "lost", "wrong", "traceback", "hang")
"""What becomes of a case. ``same``: the same bytes or answers as without the fault, at once or when it is
tried again. ``refused``: one sentence says what is damaged or missing."""


@dataclass
class Row:
    """A row of the table; ``notes`` are sentences on what went wrong."""

    part: str
    case: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("tried", *KINDS), 0))
    slowest: float = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, note: str = "", *, tried: int = 1) -> None:
        self.counts["tried"] += tried
        self.counts[kind] += tried if kind in ("same", "refused") else 1
        if kind not in ("same", "refused"):
            self.notes.append(f"{kind}: {note}"[:300])
            print(f"  {self.part} {self.case}: {kind}: {note}", flush=True)

    @property
    def nothing_lost(self) -> bool:
        return not any(self.counts[kind] for kind in KINDS[2:])


@dataclass(frozen=True)
class End:
    """How a process ended: its code, or less than 0 if it was killed; what it said."""

    code: int
    said: str
    hung: bool
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def judge(self) -> tuple[str, str]:
        """Of a process that nobody killed."""
        if self.hung:
            return "hang", self.said[-200:]
        if self.code == 0:
            return "same", ""
        lines = self.said.strip().splitlines()
        if self.code == REFUSED and lines and "Traceback" not in self.said:
            return "refused", lines[-1]
        return "traceback", f"code {self.code}: {self.said[-250:]}"


def child(
    work: Callable[[], Any],
    *,
    kill_after: float | None = None,
    first: Callable[[], None] = lambda: None,
) -> End:
    """Do ``work`` in a process of its own, after ``first``."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        pid = os.fork()
        if not pid:
            os.setsid()
            for handle in (1, 2):
                os.dup2(said.fileno(), handle)
            sys.stdout, sys.stderr = open(1, "w", 1, closefd=False), open(2, "w", 1, closefd=False)  # noqa: SIM115
            code = UNEXPECTED
            try:
                first()
                code = int(work() or 0)
            except LabError as error:
                code = REFUSED
                with suppress(OSError):  # a limit on files holds for the one that takes the sentence too
                    print(f"attnlab: {error}", file=sys.stderr)
            except BaseException:
                with suppress(OSError):
                    traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError):
                        stream.flush()
                os._exit(code)
        code, hung = _wait(pid, began, kill_after)
        said.seek(0)
        return End(code, said.read().decode(errors="replace"), hung, time.monotonic() - began)


def _wait(pid: int, began: float, kill_after: float | None) -> tuple[int, bool]:
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), False
        spent = time.monotonic() - began
        if spent > PATIENCE or (kill_after is not None and spent > kill_after):
            with suppress(ProcessLookupError):  # it leads no group yet
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL, spent > PATIENCE
        time.sleep(0.001)


def dying(at: int, chance: random.Random) -> None:
    """Let this process be killed at its write number ``at``: before it, or when it is half done."""
    left, half = [at], chance.random() < 0.5
    for name in ("fsync", "replace", "unlink", "mkdir"):
        setattr(os, name, _deadly(getattr(os, name), left, half=half))


def _deadly(really: Callable[..., Any], left: list[int], *, half: bool) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            handle = given[0]
            name = Path(f"/proc/self/fd/{handle}").readlink().name if isinstance(handle, int) else ""
            if half and name.endswith(_PART):
                os.ftruncate(handle, os.fstat(handle).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return really(*given, **named)

    return call


def limited(what: int, most: int) -> None:
    """Let this process have so much of something and no more."""
    resource.setrlimit(what, (most, most))


class ForkedWorker:
    """What ``subprocess.Popen`` is to a study, without importing all again for each worker."""

    def __init__(self, words: list[str], *, stderr: Any, **_how: Any) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            for handle, place in ((theirs_in, 0), (theirs_out, 1), (stderr.fileno(), 2)):
                os.dup2(handle, place)
            for handle in (theirs_in, ours_in, ours_out, theirs_out):
                os.close(handle)
            sys.stdin, sys.argv = open(0, closefd=False), ["worker", words[-1]]  # noqa: SIM115
            worker.main()
            os._exit(0)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = open(ours_in, "w"), open(ours_out)  # noqa: PTH123, SIM115

    def wait(self, timeout: float = PATIENCE) -> int:
        end = time.monotonic() + timeout
        while self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise subprocess.TimeoutExpired("worker", timeout)
            time.sleep(0.002)
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class ForkedWorkers:
    """What stands for the module ``subprocess`` where a study starts its workers."""

    Popen, PIPE, TimeoutExpired = ForkedWorker, subprocess.PIPE, subprocess.TimeoutExpired


def scratch(name: str) -> Path:
    """A new folder, in memory where that is possible."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix=f"attnlab-faults-{name}-", dir=memory if memory.is_dir() else None))
