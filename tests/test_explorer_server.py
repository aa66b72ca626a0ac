"""The explorer's server: who may talk to it, how much, and what is answered in which order."""

import contextlib
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect
from websockets.sync.client import connect
from websockets.typing import Origin

from attnlab.errors import InputError, RunError
from attnlab.explorer import session
from attnlab.explorer.library import OPEN, Library, run_library
from attnlab.explorer.messages import read_frame, write_frame
from attnlab.explorer.security import JOBS, TABS, WAITING, Bucket, Door, Rates
from attnlab.explorer.server import bind, make_app, module_files, one_line_errors, page
from attnlab.runs import RunFolder, open_run
from commands import command, complaint, environment
from explored import Echo, library_of, shelf_of

HERE = "http://127.0.0.1:8123"
OWN = {"host": "127.0.0.1:8123", "origin": HERE}
DOOR = Door(token="t0ken")
SECONDS = 120
"""How long a test waits for what must come."""


class Tab:
    """One page's end of its socket."""

    def __init__(self, link: WebSocketTestSession) -> None:
        self.link = link
        self.last = 0

    def send(self, kind: str, run: str = "echo", **body: Any) -> int:
        self.last += 1
        self.link.send_bytes(write_frame({"id": self.last, "kind": kind, "run": run, **body}))
        return self.last

    def ask(self, text: str, *, edited: bool = False) -> int:
        edits = [{"op": "off", "at": "encoder.0", "to": "zero"}] if edited else []
        return self.send("ask", question={"input": {"text": text}, "edits": edits})

    def receive(self) -> dict[str, Any]:
        return read_frame(self.receive_bytes())[0]

    def receive_bytes(self) -> bytes:
        """As ``link.receive_bytes``, but it does not wait for ever."""
        message = self.link.portal.call(self._receive)
        self.link._raise_on_close(message)
        found: bytes = message["bytes"]
        return found

    async def _receive(self) -> Any:
        with anyio.fail_after(SECONDS):
            return await self.link._send_rx.receive()

    def replies(self, count: int) -> dict[int, dict[str, Any]]:
        """The next replies that are no progress, by their id."""
        found: dict[int, dict[str, Any]] = {}
        while len(found) < count:
            message = self.receive()
            if "progress" not in message:
                found[message["id"]] = message
        return found

    def call(self, kind: str, run: str = "echo", **body: Any) -> dict[str, Any]:
        number = self.send(kind, run, **body)
        return self.replies(1)[number]

    def answer(self, text: str) -> str:
        number = self.ask(text)
        found: str = self.replies(1)[number]["value"]["answer"]["text"]
        return found


@contextlib.contextmanager
def served(library: Library) -> Iterator[TestClient]:
    with one_line_errors(), TestClient(make_app(library, DOOR), base_url=HERE) as client:
        yield client


@contextlib.contextmanager
def tab(client: TestClient, **headers: str) -> Iterator[Tab]:
    with client.websocket_connect("/t0ken/socket", headers={**OWN, **headers}) as link:
        yield Tab(link)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def client(echo: Echo) -> Iterator[TestClient]:
    with served(library_of(echo)) as client:
        yield client
        echo.open.set()


# who may come in


def test_the_page_and_its_modules(client: TestClient) -> None:
    shown = client.get("/t0ken/")
    assert shown.status_code == 200
    assert shown.text == page()
    for name, file in module_files().items():
        module = client.get(f"/t0ken/js/{name}")
        assert module.content == file.read_bytes()
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        assert module.headers["content-type"].startswith(kind)


def test_the_page_names_the_modules_that_it_needs() -> None:
    assert '<link rel="modulepreload" href="js/ports/frames.js">' in page()
    assert "<!-- modules -->" not in page()
    assert "engine/" not in page()


@pytest.mark.parametrize("path", ["/t0ken/", "/t0ken/js/served.js", "/t0ken/js/none.js", "/", "/other/"])
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path", ["/", "/T0ken/", "/t0ke/", "/t0ken0/js/served.js", "/js/served.js", "//t0ken/"]
)
def test_without_the_token_there_is_nothing(client: TestClient, path: str) -> None:
    refused = client.get(path)
    assert refused.status_code == 403
    assert refused.text.startswith("attnlab: the address lacks its token")
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(f"{path}socket", headers=OWN),
    ):
        pass


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "a b"]
)
def test_a_site_that_points_here_is_refused(client: TestClient, host: str) -> None:
    refused = client.get("/t0ken/", headers={"host": host})
    assert (refused.status_code, refused.text) == (
        403,
        "attnlab: this server does not answer under that name\n",
    )


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:8124", "file://", "http://["]
)
def test_a_page_of_another_site_is_refused(client: TestClient, origin: str) -> None:
    assert client.get("/t0ken/", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), tab(client, origin=origin):
        pass


def test_a_socket_without_an_origin_is_refused(client: TestClient) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/t0ken/socket", headers={"host": OWN["host"]}),
    ):
        pass


def test_another_site_may_link_here_but_load_nothing(client: TestClient) -> None:
    cross = {"sec-fetch-site": "cross-site"}
    assert client.get("/t0ken/", headers={**cross, "sec-fetch-mode": "navigate"}).status_code == 200
    assert (
        client.get("/t0ken/js/served.js", headers={**cross, "sec-fetch-mode": "no-cors"}).status_code == 403
    )


@pytest.mark.parametrize(
    ("bound", "host", "here"),
    [
        ("127.0.0.1", "localhost:9", True),
        ("127.0.0.1", "[::1]:8123", True),
        ("127.0.0.1", "192.168.7.7", False),
        ("192.168.7.7", "192.168.7.7:8123", True),
        ("0.0.0.0", "192.168.7.7:8123", True),
        ("0.0.0.0", "evil.example", False),
        ("lab.example", "LAB.example:8123", True),
    ],
)
def test_names_of_this_computer(bound: str, host: str, here: bool) -> None:
    assert Door(bound).is_here(host) is here


def test_tokens_are_long_random_and_not_shown() -> None:
    tokens = {Door().token for _ in range(7)}
    assert len(tokens) == 7
    assert min(map(len, tokens)) >= 22
    assert not any(token in repr(Door(token=token)) for token in tokens)


LATIN = st.text(st.characters(codec="latin-1"), max_size=30)


@given(st.text(max_size=20), LATIN, LATIN)
def test_no_header_breaks_the_door(path: str, host: str, origin: str) -> None:
    headers = Headers({"host": host, "origin": origin})
    assert DOOR.refusal("websocket", path, headers) != ""


@pytest.mark.parametrize(
    "name",
    ["../page.html", "..%2f..%2fserver.py", "/etc/passwd", "page.html", "%2e%2e/page.html", "ports/", ""],
)
def test_only_modules_are_served(client: TestClient, name: str) -> None:
    assert client.get(f"/t0ken/js/{name}").status_code == 404


# what is answered


def test_requests_are_answered(client: TestClient) -> None:
    with tab(client) as page:
        assert page.call("list")["value"] == [
            {"name": "echo", "title": "An echo", "task": "echo", "accuracy": None}
        ]
        assert page.call("open")["value"]["title"] == "An echo"
        assert page.answer("abc") == "ABC"
        found = page.call("examples", split="valid", start=5, count=3)["value"]
        assert [each["index"] for each in found["items"]] == [5, 6]


def test_numbers_come_as_bytes(client: TestClient) -> None:
    with tab(client) as page:
        page.ask("ab")
        plain, numbers = read_frame(page.receive_bytes())
        assert plain["value"]["patterns"]["encoder.0.self"] == {"shape": [2, 2, 2], "at": 0, "type": "f32"}
        assert len(numbers) == 32


@pytest.mark.parametrize(
    "name", ["none", "../echo", "/etc/passwd", "runs/../echo", "echo/", "zoo:\0", "ECHO"]
)
def test_a_name_that_is_not_in_the_list_opens_nothing(client: TestClient, name: str) -> None:
    with tab(client) as page:
        refused = page.call("open", name)
        assert refused["ok"] is False
        assert refused["error"].startswith(f"there is no run {name!r} here")


def test_an_error_is_a_sentence_and_the_session_goes_on(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    with tab(client) as page:
        assert page.call("ask", question={"input": {"example": {"split": "valid", "index": 0}}})[
            "error"
        ] == ("an echo needs a text")
        number = page.ask("break")
        refused = page.replies(1)[number]
        assert refused["error"] == "this failed inside attnlab (ZeroDivisionError); its terminal says more"
        assert page.answer("go on") == "GO ON"
    told = r"attnlab: ask of echo: unexpected ZeroDivisionError: a planted fault with a second line "
    assert re.fullmatch(rf"{told}\(explored\.py:\d+ in look\)\n", capsys.readouterr().err)


def test_an_answer_that_is_no_number_is_a_sentence(
    client: TestClient, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = echo.examples("valid", "all", 0, 1)
    monkeypatch.setattr(echo, "examples", lambda *_: {"total": math.nan, "items": whole.items})
    with tab(client) as page:
        refused = page.call("examples", split="valid", count=1)
        assert refused["error"].startswith("this failed inside attnlab (ValueError)")
        assert page.answer("a") == "A"


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_get_a_reply(client: TestClient, frame: bytes) -> None:
    with tab(client) as page:
        page.link.send_bytes(frame)
        assert page.receive()["ok"] is False
        assert page.answer("still") == "STILL"


def test_text_frames_are_refused_too(client: TestClient) -> None:
    with tab(client) as page:
        page.link.send_text("hello")
        assert page.receive()["ok"] is False


def test_a_newer_question_overtakes_one_that_has_not_begun(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        first = page.ask("first")
        assert echo.begun.wait(SECONDS)
        old, new = page.ask("old", edited=True), page.ask("new", edited=True)
        clean = [page.ask(each) for each in ("one", "two", "three")]
        dropped = page.replies(2)
        assert dropped == {
            each: {"id": each, "ok": False, "error": "", "dropped": True} for each in (old, clean[0])
        }
        echo.open.set()
        answered = page.replies(4)
    assert list(answered) == [first, new, clean[1], clean[2]]
    assert echo.asked == ["first", "new", "two", "three"]


def test_pages_take_turns(client: TestClient, echo: Echo) -> None:
    """A page that asks much does not keep others waiting: each has one question at a time in the queue."""
    echo.open.clear()
    with tab(client) as busy, tab(client) as other:
        busy.ask("first")
        assert echo.begun.wait(SECONDS)
        for _ in range(5):
            busy.send("open")
        busy.ask("last")
        other.ask("other")
        other.send("cancel", job=1)
        other.replies(1)  # so its question has been read before the first one ends
        echo.open.set()
        busy.replies(7)
        other.replies(1)
    assert echo.asked == ["first", "other", "last"]


def test_too_many_waiting_requests_are_refused(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        page.ask("first")
        assert echo.begun.wait(SECONDS)
        for _ in range(WAITING):
            page.send("open")
        refused = page.call("open")
        assert refused["error"] == f"slow down: {WAITING} requests of this page are waiting already"
        echo.open.set()
        assert all(each["ok"] for each in page.replies(WAITING + 1).values())


def test_too_many_messages_are_refused_then_answered_again(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(session, "Rates", lambda: Rates(lambda: now[0]))
    monkeypatch.setattr(session, "PAUSE", 0)
    with tab(client) as page:
        for _ in range(200):
            page.send("cancel", job=1)
        assert all(each["ok"] for each in page.replies(200).values())
        assert page.call("cancel", job=1)["error"].startswith("slow down: this page sends more")
        now[0] += 1.0
        assert page.call("cancel", job=1)["ok"]


def test_a_flood_ends_the_session(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "Rates", lambda: Rates(lambda: 0.0))
    monkeypatch.setattr(session, "PAUSE", 0)
    monkeypatch.setattr(session, "FLOOD", 7)
    with tab(client) as page:
        for _ in range(207):
            page.send("cancel", job=1)
        page.replies(207)
        with pytest.raises(WebSocketDisconnect) as closed:
            page.receive()
        assert (closed.value.code, closed.value.reason) == (
            1008,
            "this page sent more than can be answered",
        )


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    bucket = Bucket(rate=2, most=5, clock=lambda: now[0])
    assert [bucket.take(3), bucket.take(3), bucket.take(2)] == [True, False, True]
    now[0] += 1.5
    assert [bucket.take(3), bucket.take(1)] == [True, False]
    now[0] += 1_000
    assert [bucket.take(5), bucket.take(0.1)] == [True, False]


def test_only_so_many_pages(client: TestClient) -> None:
    with contextlib.ExitStack() as stack:
        pages = [stack.enter_context(tab(client)) for _ in range(TABS)]
        assert pages[-1].answer("a") == "A"
        with tab(client) as extra, pytest.raises(WebSocketDisconnect) as closed:
            extra.receive()
        assert closed.value.reason == f"{TABS} pages are open already; close one of them"
    with tab(client) as page:
        assert page.answer("b") == "B"


# jobs


def start(page: Tab, run: str = "echo") -> int:
    return page.send("start", run, job={"analysis": "heads", "examples": 7})


def test_a_job_runs_beside_questions_and_says_how_far_it_is(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        number = start(page)
        while "progress" not in (message := page.receive()):
            pass
        assert message["id"] == number
        assert message["progress"][1] == 3_000
        assert page.call("examples", split="valid", count=1)["ok"]
        echo.open.set()
        assert page.replies(1)[number]["value"]["sentences"] == ["all is well"]
        assert page.call("start", job={"analysis": "heads", "examples": 7})["ok"]


def test_answers_are_computed_by_one_thread_and_jobs_by_all(
    client: TestClient, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    look, work = echo.look, echo.work

    def looking(question: Any) -> Any:
        found.append(torch.get_num_threads())
        return look(question)

    def working(*given: Any) -> Any:
        found.append(torch.get_num_threads())
        return work(*given)

    monkeypatch.setattr(echo, "look", looking)
    monkeypatch.setattr(echo, "work", working)
    with tab(client) as page:
        page.answer("a")
        start(page)
        page.replies(1)
        page.answer("b")
    assert found == [1, torch.get_num_threads(), 1]


def test_a_job_is_cancelled(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        number = start(page)
        assert echo.begun.wait(SECONDS)
        assert page.call("cancel", job=number + 100)["value"] is False
        cancel = page.send("cancel", job=number)
        found = page.replies(2)
        assert found[cancel]["value"] is True
        assert found[number] == {"id": number, "ok": False, "error": "", "dropped": True}
        echo.open.set()
        assert page.answer("a") == "A"


def test_a_page_has_one_job(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        first = start(page)
        second = start(page)
        assert page.replies(1)[second]["error"].startswith(
            "this page has an analysis that is still running"
        )
        page.send("cancel", job=first)
        page.replies(2)


def test_a_job_follows_at_once_on_one_that_is_cancelled(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        first = start(page)
        assert echo.begun.wait(SECONDS)
        page.send("cancel", job=first)
        second = start(page)
        found = page.replies(2)
        assert found[first] == {"id": first, "ok": False, "error": "", "dropped": True}
        echo.open.set()
        assert page.replies(1)[second]["value"]["sentences"] == ["all is well"]


def test_what_takes_long_is_found_when_a_run_is_opened(client: TestClient, echo: Echo) -> None:
    with tab(client) as page:
        assert page.call("open")["ok"]
    assert echo.warm.wait(SECONDS)


def test_examples_that_take_long_to_find_keep_no_answer_waiting(client: TestClient, echo: Echo) -> None:
    echo.listed.clear()
    with tab(client) as page:
        wanted = page.send("examples", split="valid", stratum="wrong")
        assert page.answer("meanwhile") == "MEANWHILE"
        echo.listed.set()
        assert page.replies(1)[wanted]["value"]["total"] == 7


def test_lists_of_examples_wait_in_no_greater_number_than_questions(client: TestClient, echo: Echo) -> None:
    echo.listed.clear()
    with tab(client) as page:
        numbers = [page.send("examples", split="valid") for _ in range(WAITING + 1)]
        (said,) = page.replies(1).items()
        assert said[0] == numbers[-1]
        assert said[1]["error"].startswith(f"slow down: {WAITING} requests of this page are waiting")
        echo.listed.set()
        assert page.replies(WAITING).keys() == set(numbers[:-1])


def test_a_job_ends_with_its_page(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with tab(client) as page:
        start(page)
        assert echo.begun.wait(SECONDS)
    echo.begun.clear()
    with tab(client) as page:  # it waits for the one thread that works on jobs
        number = start(page)
        assert echo.begun.wait(SECONDS)
        page.send("cancel", job=number)
        page.replies(2)


def test_only_so_many_jobs(client: TestClient, echo: Echo) -> None:
    echo.open.clear()
    with contextlib.ExitStack() as stack:
        for _ in range(JOBS):
            page = stack.enter_context(tab(client))
            start(page)
            page.call("cancel", job=10**6)  # so the job has been taken
        extra = stack.enter_context(tab(client))
        number = start(extra)
        assert extra.replies(1)[number]["error"].startswith(f"{JOBS} analyses are running or waiting")
        echo.open.set()


# the library


def test_models_are_opened_once_and_again_after_a_change() -> None:
    echo, opened, version = Echo(), [], [1]
    shelf = shelf_of(echo)

    def make() -> Echo:
        opened.append(version[0])
        return Echo()

    library = Library([type(shelf)("echo", shelf.listed, make, lambda: version[0])])
    assert library.open("echo") is library.open("echo")
    version[0] = 2
    library.open("echo")
    assert opened == [1, 2]


def test_few_models_are_kept() -> None:
    echoes = [Echo(f"echo{number}") for number in range(OPEN + 3)]
    library = library_of(*echoes)
    assert [library.open(each.name) for each in echoes] == echoes
    assert len(library._opened) == OPEN


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(open_run("zoo:adder").path, tmp_path / "runs/mine")
    return tmp_path


def test_named_runs_come_first_then_own_then_shipped_ones(folder: Path) -> None:
    names = [each.name for each in run_library(["zoo:digit", "runs/mine"]).list()]
    assert names == ["zoo:digit", "runs/mine", "zoo:adder", "zoo:grid", "zoo:long-adder", "zoo:sorter"]
    library = run_library()
    shutil.copytree(folder / "runs/mine", folder / "runs/later")
    found = library.list()
    assert [each.name for each in found[:3]] == ["runs/later", "runs/mine", "zoo:adder"]
    assert (found[0].task, found[0].accuracy) == ("addition", 1.0)


def test_a_damaged_run_is_listed_and_says_so_when_it_is_opened(folder: Path) -> None:
    RunFolder(folder / "runs/mine").write({"spec.json": b"{"})
    library = run_library()
    assert library.list()[0].name == "runs/mine"
    with pytest.raises(RunError, match=r"run runs/mine is damaged: spec\.json cannot be read"):
        library.open("runs/mine")


def test_a_run_that_was_deleted_or_has_no_weights_says_so(folder: Path) -> None:
    library = run_library(["runs/mine"])
    library.open("runs/mine")
    (folder / "runs/mine/best.safetensors").unlink()
    with pytest.raises(RunError, match="run runs/mine has no weights yet"):
        library.open("runs/mine")
    shutil.rmtree(folder / "runs/mine")
    with pytest.raises(RunError, match="run runs/mine is no longer there; open another one"):
        library.open("runs/mine")


# where it listens


def test_a_port_that_is_taken() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(
            InputError, match=f"port {port} is taken by another program; choose another one"
        ):
            bind("127.0.0.1", port)


def test_who_comes_before_the_server_has_begun_waits() -> None:
    with (
        bind("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname(), SECONDS) as link,
    ):
        taken, _ = listener.accept()
        with taken:
            taken.sendall(b"here")
            assert link.recv(4) == b"here"


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(InputError, match=f"port is {port}; it must be from 0 to 65535"):
        bind("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "a" * 300])
def test_a_host_that_is_not_here(host: str) -> None:
    with pytest.raises(InputError, match="which is not a name or an address of this computer"):
        bind(host, 0)


def test_threads_end_with_the_server(echo: Echo) -> None:
    with served(library_of(echo)) as client, tab(client) as page:
        assert page.answer("a") == "A"
    left = [each.name for each in threading.enumerate() if each.name.startswith("attnlab-")]
    assert left == []


# the command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no run at 'nowhere'; 'attnlab runs' lists your runs"),
        (["zoo:addder"], "unknown shipped run 'zoo:addder'; did you mean 'zoo:adder'?"),
        (["--port", "70000"], "port is 70000; it must be from 0 to 65535"),
        (
            ["--host", "192.0.2.1"],
            "host is '192.0.2.1', which is not a name or an address of this computer",
        ),
    ],
)
def test_the_command_refuses(words: list[str], said: str, tmp_path: Path) -> None:
    assert complaint("explore", *words, "--no-open", cwd=tmp_path) == said


def test_a_missing_extra_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = complaint("explore", cwd=tmp_path)
    assert (
        said == "the explorer needs the package fastapi; install it with: pip install 'attnlab[explorer]'"
    )


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own."""
    started = subprocess.Popen(
        command("explore", "zoo:adder", "--no-open"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with started:
        yield started
        started.kill()


@pytest.mark.slow
def test_a_live_server_answers_and_ends_with_ctrl_c(process: subprocess.Popen[str], tmp_path: Path) -> None:
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    found = re.fullmatch(r"(http://127\.0\.0\.1:(\d+))/([\w-]{22,})/#run=zoo:adder", address)
    assert found is not None
    home, port, token = found.groups()
    taken = complaint("explore", "--port", port, cwd=tmp_path)
    assert (
        taken == f"port {port} is taken by another program; choose another one, or 0 for any that is free"
    )
    with connect(f"ws://127.0.0.1:{port}/{token}/socket", origin=Origin(home)) as link:
        link.send(
            write_frame(
                {"id": 1, "kind": "ask", "run": "zoo:adder", "question": {"input": {"text": "374+814"}}}
            )
        )
        assert read_frame(link.recv(SECONDS, decode=False))[0]["value"]["answer"]["text"] == "1188"
        process.send_signal(signal.SIGINT)  # while a page is open
        _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, said) == (0, "press Ctrl-C to stop\n")
