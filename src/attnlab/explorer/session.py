"""One page and its socket: reads its messages, and answers its questions in order. Lists of examples are
answered beside them.

A question that waits is dropped when a newer one makes it useless: of those with edits the newest counts,
of those without the newest two, the input's and the other input's. An analysis has a task of its own.
Nothing that a page sends ends its session, unless it is a flood.
"""

import asyncio
import threading
from collections import deque
from typing import Any, cast

from starlette.websockets import WebSocket, WebSocketDisconnect

from attnlab.errors import InputError, LabError
from attnlab.explorer.desk import Desk, sentence, unexpected
from attnlab.explorer.jobs import StoppedError
from attnlab.explorer.messages import (
    Request,
    progressed,
    read_frame,
    read_request,
    refusal,
    reply,
    request_id,
    write_frame,
)
from attnlab.explorer.scene import Job, Question
from attnlab.explorer.security import WAITING, Rates

FLOOD = 1_000
"""Messages beyond the rate, one after the other, after which a page is sent away."""
PAUSE = 0.02
"""Seconds that pass before the next message of a page that sends too much is read."""
PROGRESS = 0.1
"""Seconds between two words about the progress of a job, at least."""
KEPT = {"edited": 1, "clean": 2}


class Session:
    """What one page asked for and has not been answered yet."""

    def __init__(self, link: WebSocket, desk: Desk, rates: Rates | None = None) -> None:
        self._link, self._desk, self._rates = link, desk, rates or Rates()
        self._waiting: deque[Request] = deque()
        self._listing = 0
        self._asked = asyncio.Event()
        self._job: tuple[int, threading.Event] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the page is closed."""
        self._begin(self._answer_all())
        try:
            await self._read_all()
        except WebSocketDisconnect:
            pass
        finally:
            if self._job is not None:
                self._job[1].set()
            for task in self._tasks:
                task.cancel()

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, WebSocketDisconnect):
            unexpected(error, "answering a page")

    async def _read_all(self) -> None:
        beyond = 0
        while beyond < FLOOD:
            frame = await self._receive()
            if self._rates.allow(len(frame)):
                beyond = 0
                await self._take(frame)
            else:
                beyond += 1
                await asyncio.sleep(PAUSE)
                await self._send(
                    refusal(_id_of(frame), "slow down: this page sends more than can be answered")
                )
        await self._link.close(1008, "this page sent more than can be answered")

    async def _receive(self) -> bytes:
        message = await self._link.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code") or 1000)
        return message.get("bytes") or (message.get("text") or "").encode()

    async def _take(self, frame: bytes) -> None:
        """Follow a message, or say what is wrong with it."""
        number = -1
        try:
            plain, numbers = read_frame(frame)
            found = request_id(plain)
            number = -1 if found is None else found
            request = read_request(plain, numbers)
            if request.kind == "start":
                self._start(request)
            elif request.kind == "examples":
                self._list(request)
            elif request.kind == "cancel":
                await self._send(reply(number, self._cancel(cast(int, request.body))))
            else:
                await self._queue(request)
        except LabError as error:
            await self._send(refusal(number, str(error)))
        except Exception as error:
            await self._send(refusal(number, unexpected(error, "reading a message")))

    # questions

    def _require_room(self) -> None:
        if len(self._waiting) + self._listing >= WAITING:
            raise InputError(f"slow down: {WAITING} requests of this page are waiting already")

    async def _queue(self, request: Request) -> None:
        self._require_room()
        self._waiting.append(request)
        for old in _overtaken(self._waiting):
            self._waiting.remove(old)
            await self._send(refusal(old.id, "", dropped=True))
        self._asked.set()

    def _next(self) -> Request | None:
        return self._waiting.popleft() if self._waiting else None

    async def _answer_all(self) -> None:
        while True:
            await self._asked.wait()
            answered = await self._desk.answer(self._next)
            if answered is None:
                self._asked.clear()
                continue
            request, found = answered
            await self._deliver(found if isinstance(found, bytes) else _refused(request, found))

    # examples and jobs

    def _list(self, request: Request) -> None:
        self._require_room()
        self._listing += 1
        self._begin(self._examples(request))

    async def _examples(self, request: Request) -> None:
        try:
            frame = await self._desk.examples(request)
        except Exception as error:
            frame = _refused(request, error)
        finally:
            self._listing -= 1
        await self._deliver(frame)

    def _start(self, request: Request) -> None:
        if self._job is not None and not self._job[1].is_set():
            raise InputError("this page has an analysis that is still running; wait for it or cancel it")
        self._job = (request.id, threading.Event())
        self._begin(self._work(request, self._job[1]))

    def _cancel(self, number: int) -> bool:
        """Whether there was such a job."""
        if self._job is None or self._job[0] != number:
            return False
        self._job[1].set()
        return True

    async def _work(self, request: Request, cancelled: threading.Event) -> None:
        latest: list[tuple[int, int]] = []
        telling = asyncio.create_task(self._tell(request.id, latest))
        try:
            job = cast(Job, request.body)
            found = await self._desk.job(
                request.run, job, cancelled, lambda done, total: latest.append((done, total))
            )
            frame = write_frame(reply(request.id, found))
        except StoppedError:
            frame = write_frame(refusal(request.id, "", dropped=True))
        except Exception as error:
            frame = _refused(request, error)
        finally:
            telling.cancel()
            if self._job is not None and self._job[0] == request.id:  # else a newer one has begun
                self._job = None
        await self._deliver(frame)

    async def _tell(self, number: int, latest: list[tuple[int, int]]) -> None:
        """Pass on the newest progress now and then."""
        while True:
            await asyncio.sleep(PROGRESS)
            if latest:
                done, total = latest[-1]
                latest.clear()
                await self._send(progressed(number, done, total))

    async def _send(self, message: Any) -> None:
        await self._deliver(write_frame(message))

    async def _deliver(self, frame: bytes) -> None:
        try:
            await self._link.send_bytes(frame)
        except RuntimeError as error:  # starlette's word for a page that has gone; no other is hidden
            raise WebSocketDisconnect from error


def _overtaken(waiting: "deque[Request]") -> list[Request]:
    """Questions that nobody waits for since newer ones are behind them."""
    left, found = dict(KEPT), []
    for request in reversed(waiting):
        if request.kind != "ask":
            continue
        kind = "edited" if cast(Question, request.body).edits else "clean"
        if left[kind]:
            left[kind] -= 1
        else:
            found.append(request)
    return found[::-1]


def _id_of(frame: bytes) -> int:
    """The id of a message that is not followed; -1 if it is not quickly found."""
    try:
        found = request_id(read_frame(frame)[0]) if len(frame) < 2**16 else None
    except LabError:
        found = None
    return -1 if found is None else found


def _refused(request: Request, error: Exception) -> bytes:
    if not isinstance(error, LabError):
        unexpected(error, f"{request.kind} of {request.run}")
    return write_frame(refusal(request.id, sentence(error)))
