"""A worker's end of the pipes: jobs and answers come in, events go out, and a lost driver means stop."""

import json
import os
import time
from collections.abc import Iterator
from io import StringIO
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest

from attnlab.errors import SpecError
from attnlab.studies.jobs import Event, Job
from attnlab.studies.worker import PipeLink
from tiny_jobs import (
    BOTH,
    SPEC,
    line,
)


def test_a_worker_gets_jobs_and_answers_and_tells_events() -> None:
    out, job = StringIO(), Job(spec=SPEC, analyses=BOTH, asks=True)
    link = PipeLink([line(do=job.to_json()), line(go_on=False), line(go_on=True), line(stop=True)], out)
    assert link.jobs.get(timeout=5) == job
    assert link.jobs.get(timeout=5) is None
    assert link.stopping()
    link.send(Event(job="a", kind="epoch", data={"epoch": 1}))
    link.send(Event(job="a", kind="finished", data={}))
    told = [json.loads(text) for text in out.getvalue().splitlines()]
    assert told[0] == {"job": "a", "kind": "epoch", "data": {"epoch": 1}}
    assert [event["kind"] for event in told] == ["epoch", "finished"]


def test_answers_come_in_their_order() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as lines, os.fdopen(writing, "w", buffering=1) as driver:
        link = PipeLink(lines, StringIO())
        driver.write(line(go_on=False) + line(go_on=True))
        assert [link.may_go_on(), link.may_go_on()] == [False, True]
        assert not link.stopping()
        with pytest.raises(Empty):
            link.jobs.get_nowait()
        driver.close()
        assert link.jobs.get(timeout=5) is None


def test_who_waits_for_an_answer_that_never_comes_is_let_go() -> None:
    link = PipeLink([], StringIO())
    assert link.jobs.get(timeout=5) is None
    asked = Thread(target=lambda: [link.may_go_on() for _ in range(5)], daemon=True)
    asked.start()
    asked.join(5)
    assert not asked.is_alive()


@pytest.mark.parametrize("torn", ['{"do": {"spec"', line(do={"spec": 3}), "\n"])
def test_a_torn_line_ends_the_work(torn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: SimpleQueue[Any] = SimpleQueue()
    monkeypatch.setattr("threading.excepthook", raised.put)
    link = PipeLink([torn], StringIO())
    assert raised.get(timeout=5).exc_type in (json.JSONDecodeError, SpecError)
    assert link.jobs.get(timeout=5) is None
    assert link.stopping()
    assert link.may_go_on()


def test_nobody_listening_means_stop() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    broken = os.fdopen(writing, "w")
    link = PipeLink(Iterated(), broken)
    assert not link.stopping()
    link.send(Event(job="a", kind="finished", data={}))
    assert link.stopping()
    with pytest.raises(BrokenPipeError):
        broken.close()
    closed = PipeLink(Iterated(), broken)
    closed.send(Event(job="a", kind="finished", data={}))
    assert closed.stopping()


class Iterated:
    """Lines that never come."""

    def __iter__(self) -> Iterator[str]:
        time.sleep(3600)
        yield ""
