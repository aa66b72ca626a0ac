"""Where questions of all pages are answered: one at a time, in turns; beside them analyses and lists of
examples, one at a time each.

Each of the three has a thread of its own; a job copies the model (``Bench.work``). A page's turn comes in
the order in which pages asked for it, and only then is it decided which of the page's questions is
answered, so that newer ones can overtake. A job looks up at each step of its progress whether it was
cancelled.
"""

import asyncio
import importlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attnlab.errors import LabError, RunError
from attnlab.explorer.library import Library
from attnlab.explorer.security import JOBS
from attnlab.lazy import Later

if TYPE_CHECKING:
    import torch

    from attnlab.explorer import jobs, messages
    from attnlab.explorer.messages import ExamplesQuery, Request
    from attnlab.explorer.scene import DiagnosisForm, Job, JobResult, Question
    from attnlab.progress import Progress
else:
    torch = Later("torch")
    jobs, messages = Later.parts("attnlab.explorer", "jobs", "messages")

T = TypeVar("T")

IDLE = 1.0
"""Seconds without a question, after which what takes long is computed before anybody asks for it."""


class Desk:
    """The library with the threads that work for all pages."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._turn = asyncio.Lock()  # first come, first served
        self._answers, self._jobs, self._lists = _Thread("answers"), _Thread("jobs"), _Thread("lists")
        self._running: set[asyncio.Future[Any]] = set()

        self._loaded: Future[None] | None = None
        self._threads = 1
        self._asked = 0.0  # when somebody last asked something

    def warm_up(self) -> None:
        """Load what computes, before anybody asks."""
        self._loaded = self._answers.do(self._load)

    def _load(self) -> None:
        """Answers are computed by this thread alone: halves of one small answer wait for each other."""
        for name in ("bench", "messages", "session"):
            importlib.import_module(f"attnlab.explorer.{name}")
        self._threads = torch.get_num_threads()
        torch.set_num_threads(1)  # of this thread, and of those that begin later

    async def ready(self) -> None:
        """Until it is loaded."""
        if self._loaded is not None:
            await asyncio.wrap_future(self._loaded)

    async def answer(
        self, choose: "Callable[[], Request | None]"
    ) -> "tuple[Request, bytes | Exception] | None":
        """The request that ``choose`` gives when its turn has come, and its reply, or what is wrong."""
        async with self._turn:
            request = choose()
            if request is None:
                return None
            try:
                return request, await asyncio.wrap_future(self._answers.do(self._answer, request))
            except Exception as error:
                return request, error

    def _answer(self, request: "Request") -> bytes:
        self._asked = time.monotonic()
        frame = messages.write_frame(messages.reply(request.id, answer(self.library, request)))
        if request.kind == "open":
            self._jobs.do(self._find_means, request.run)
        return frame

    def _find_means(self, run: str) -> None:
        """Beside answers this slows them down, so it waits for a pause, or until a job waits for it."""
        while time.monotonic() - self._asked < IDLE and not self._jobs.awaited():
            time.sleep(IDLE / 20)
        self.library.open(run).warm_up()

    async def examples(self, request: "Request") -> bytes:
        """The reply to a request for examples: wrong ones are found by answering many."""
        return await asyncio.wrap_future(self._lists.do(self._answer, request))

    async def job(
        self, run: str, job: "Job", cancelled: threading.Event, progress: "Progress"
    ) -> "JobResult | DiagnosisForm":
        """What an analysis finds; ``progress`` is called in another thread."""
        if len(self._running) >= JOBS:
            raise RunError(f"{JOBS} analyses are running or waiting already; try again when one is done")

        def watched(done: int, total: int) -> None:
            if cancelled.is_set():
                raise jobs.StoppedError("this analysis was cancelled")
            progress(done, total)

        def begin() -> "JobResult | DiagnosisForm":
            watched(0, 1)
            torch.set_num_threads(self._threads)
            return work(self.library, run, job, watched)

        task = asyncio.wrap_future(self._jobs.do(begin))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    def close(self, seconds: float = 1.0) -> bool:
        """Let all threads end; False if one is still busy after so many ``seconds``."""
        ended = [each.end(seconds) for each in (self._answers, self._jobs, self._lists)]
        return all(ended)


class _Thread:
    """Does one thing after the other in a thread that does not keep the program from ending."""

    def __init__(self, name: str) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"attnlab-{name}", daemon=True)

    def do(self, call: Callable[..., T], *given: Any) -> "Future[T]":
        if not self._thread.is_alive():
            self._thread.start()
        future: Future[T] = Future()
        self._waiting.put((future, lambda: call(*given)))
        return future

    def awaited(self) -> bool:
        """Whether something waits for what is being done."""
        return not self._waiting.empty()

    def end(self, seconds: float) -> bool:
        if not self._thread.is_alive():
            return True
        self._waiting.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # whoever waits gets it
                future.set_exception(error)
            del item, future, call  # the last answer is not kept until the next one


def answer(library: Library, request: "Request") -> Any:
    """What a request other than those about jobs asks for."""
    if request.kind == "list":
        return library.list()
    explored, body = library.open(request.run), request.body
    if request.kind == "open":
        return explored.describe()
    if request.kind == "findings":
        return explored.findings()
    if request.kind == "ask":
        return explored.look(cast("Question", body))
    if request.kind == "read":
        return explored.read(cast(bytes, body))
    asked = cast("ExamplesQuery", body)
    return explored.examples(asked.split, asked.stratum, asked.start, asked.count)


def work(library: Library, run: str, job: "Job", progress: "Progress") -> "JobResult | DiagnosisForm":
    """What an analysis finds, or the doctor."""
    explored = library.open(run)
    return explored.diagnose(progress) if job.analysis == "doctor" else explored.work(job, progress)


def unexpected(error: BaseException, where: str) -> str:
    """One line on the terminal about a fault of ours, with its place; the sentence for the page."""
    line, steps = " ".join(str(error).split())[:300], traceback.extract_tb(error.__traceback__)
    place = f" ({Path(steps[-1].filename).name}:{steps[-1].lineno} in {steps[-1].name})" if steps else ""
    said = f"attnlab: {where}: unexpected {type(error).__name__}: {line}{place}"
    print(said, file=sys.stderr, flush=True)
    return sentence(error)


def sentence(error: BaseException) -> str:
    """What a page is told about an error."""
    if isinstance(error, LabError):
        return str(error)
    return f"this failed inside attnlab ({type(error).__name__}); its terminal says more"
