"""What threads of the explorer share: examples, stand-ins, tasks and the analyses of a widget."""

import asyncio
import re
import threading
from time import monotonic, sleep

import pytest
import torch
from starlette.websockets import WebSocket

from attnlab import registry
from attnlab.explorer.bench import Bench
from attnlab.explorer.desk import Desk
from attnlab.explorer.edits import Off, Swap
from attnlab.explorer.kept import Kept
from attnlab.explorer.messages import Request
from attnlab.explorer.scene import Job, Question, TextInput
from attnlab.explorer.session import Session
from attnlab.explorer.widget import Explorer
from attnlab.runs import open_run
from explored import Echo, library_of

SECONDS = 30


def test_a_value_is_made_once_by_whoever_asks_first() -> None:
    kept, made = Kept[str](), list[int]()
    begun, ready = threading.Event(), threading.Event()

    def make() -> list[int]:
        begun.set()
        assert ready.wait(SECONDS)
        made.append(len(made))
        return made

    seen = list[list[int]]()
    threads = [threading.Thread(target=lambda: seen.append(kept.get("a", make))) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert begun.wait(SECONDS)
    assert (kept.asked(), kept.find("a")) == (["a"], None)
    assert kept.get("b", lambda: 7) == 7  # it waits for no other
    ready.set()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == [[0]] * 5
    assert kept.find("a") == [0]


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    kept = Kept[str]()
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert (kept.asked(), kept.get("a", lambda: 3)) == ([], 3)


def test_a_widget_is_asked_for_an_analysis_while_others_end() -> None:
    widget = Explorer(library_of(Echo()), "echo", "abc")

    class Ended(threading.Event):
        """Of an analysis whose thread ends just when somebody looks."""

        def is_set(self) -> bool:
            widget._jobs.popitem()
            return True

    widget._jobs |= {number: Ended() for number in range(-5, 0)}
    widget._start(Request(1, "start", "echo", Job("ablate", TextInput("a"), None)))
    deadline = monotonic() + SECONDS
    while 1 in widget._jobs and monotonic() < deadline:
        sleep(0.01)
    assert 1 not in widget._jobs


def test_tasks_are_looked_through_while_others_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = dict(registry._tasks)
    monkeypatch.setattr(registry, "_tasks", tasks)

    class Registering(type):
        """Of a task that another thread registers one beside just when somebody looks."""

        @property
        def kind(cls) -> str:
            tasks[f"another-{len(tasks)}"] = int  # type: ignore[assignment]  # nobody asks it
            return "registering"

    tasks["registering"] = Registering("Passing", (), {})  # type: ignore[assignment]
    assert registry.run_source(registry.Source("none.py", "x = 1")) == []
    assert sum(each.startswith("another") for each in tasks) == 1


def test_copies_of_a_model_share_examples_and_what_stands_in() -> None:
    bench = Bench.of_run(open_run("zoo:sorter"))
    answerer = bench.answerer
    copy = answerer.copied()
    assert copy.model is not answerer.model
    assert copy.inputs.split("valid") is answerer.inputs.split("valid")
    assert copy.inputs.training is answerer.inputs.training
    assert copy.stand_ins.get("mean", 0) is answerer.stand_ins.get("mean", 0)


@pytest.mark.parametrize(
    "edit", [Off("encoder.1.self", "zero"), Off("encoder.1", "mean"), Swap("encoder.1")]
)
def test_what_an_answer_found_serves_an_analysis_with_gradients(edit: Off | Swap) -> None:
    """Tensors made for answers, in torch's inference mode, could not be used in a backward pass."""
    bench = Bench.of_run(open_run("zoo:sorter"))
    given, other = TextInput("3 8 15 42 23 67 80 91"), TextInput("3 8 15 23 42 67 80 91")
    bench.look(Question(given, other, (edit,)))
    with torch.enable_grad():
        found = bench.work(Job("explain", given, None, edits=(edit,), other=other))
    assert "with 1 edit" in found.title


def test_a_fault_beside_the_answers_is_told_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """That a page has gone is not a fault; starlette says so by an error that could also be another one."""

    class Gone(WebSocket):
        def __init__(self) -> None:
            pass

        async def send_bytes(self, data: bytes) -> None:
            raise RuntimeError("the page has gone")

    async def faulty() -> None:
        known = {"a": 1}
        for _ in known:
            known["b"] = 2

    async def both() -> None:
        session = Session(Gone(), Desk(library_of(Echo())))
        for work in (session._send({"id": 1}), faulty()):
            session._begin(work)
        while session._tasks:
            await asyncio.sleep(0)

    asyncio.run(both())
    told = "attnlab: answering a page: unexpected RuntimeError: dictionary changed size during iteration "
    assert re.fullmatch(rf"{told}\(test_explorer_threads\.py:\d+ in faulty\)\n", capsys.readouterr().err)


def test_means_are_found_once_nobody_asks_or_a_job_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.explorer.desk.IDLE", 1.0)
    for end_waiting in ("a pause", "a job"):
        echo = Echo()
        desk = Desk(library_of(echo))
        monkeypatch.setattr("attnlab.explorer.desk.time", Clock(later := [0.0]))
        desk._answer(Request(1, "open", "echo", None))
        assert not echo.warm.wait(0.2)
        if end_waiting == "a pause":
            later[0] = 1.1
        else:
            desk._jobs.do(int)
        assert echo.warm.wait(SECONDS)
        assert desk.close(SECONDS)


class Clock:
    """What stands for the module ``time``: it shows ``now``."""

    def __init__(self, now: list[float]) -> None:
        self._now = now

    def monotonic(self) -> float:
        return self._now[0]

    def sleep(self, seconds: float) -> None:
        sleep(seconds)
