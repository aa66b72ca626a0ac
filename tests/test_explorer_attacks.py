"""Requests and messages that nobody sends in good faith: no crash, no traceback, the session goes on."""

import contextlib
import json
import random
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from attnlab.explorer import server, session
from attnlab.explorer.messages import write_frame
from attnlab.explorer.security import Door, Rates
from explored import Echo, library_of
from test_explorer_server import DOOR, HERE, Tab, served, tab

MESSAGES, DRAWN, COPIES = 10_000, 10, 4
"""Of all messages, those drawn at once, and how many damaged copies are made of each."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=12,
)
KINDS = ("list", "open", "ask", "examples", "read", "findings", "start", "cancel", "stop", "")
INPUTS = st.fixed_dictionaries({"text": st.text(max_size=9)}) | JSON
EDITS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["off", "scale", "pattern", "swap"]), "at": st.text(max_size=9)},
        optional={"to": st.sampled_from(["zero", "x"]), "by": st.floats(), "rows": JSON},
    ),
    max_size=3,
)
QUESTIONS = st.fixed_dictionaries(
    {"input": INPUTS}, optional={"other": INPUTS, "edits": EDITS | JSON, "snapshot": JSON, "want": JSON}
)
REQUESTS = st.fixed_dictionaries(
    {"id": st.integers(0, 99) | JSON, "kind": st.sampled_from(KINDS) | JSON},
    optional={
        "run": st.sampled_from(["echo", "../echo", ""]) | JSON,
        "question": QUESTIONS | JSON,
        "split": st.sampled_from(["valid", "train"]),
        "stratum": JSON,
        "start": JSON,
        "count": st.integers() | JSON,
        "picture": st.fixed_dictionaries(
            {"shape": JSON, "at": JSON, "type": st.sampled_from(["u8", "f32"])}
        ),
        "job": st.integers(0, 99) | JSON,
        "more": JSON,
    },
)


def framed(message: Any, numbers: bytes, cut: int) -> bytes:
    """A message as a frame that may end too early; its JSON may hold NaN."""
    text = json.dumps(message).encode()
    return (struct.pack("<I", len(text)) + text + bytes(-len(text) % 4) + numbers)[: 4 + cut]


FRAMES = st.binary(max_size=60) | st.builds(
    framed, REQUESTS | JSON, st.binary(max_size=16), st.sampled_from([10**6, 10**6, 10**6, 17])
)


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[str, Door, Any]]:
    """A server that listens: its address, its door, and its schema."""
    door = Door()
    listener = server.bind("127.0.0.1", 0)
    app = server.make_app(library_of(Echo()), door)
    running = uvicorn.Server(server._config(app))
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", door, app.openapi()
    running.should_exit = True
    thread.join()


def test_requests_made_from_the_schema_are_answered_or_refused(live: tuple[str, Door, Any]) -> None:
    home, door, schema = live
    loaded: Any = schemathesis.openapi.from_dict(schema)
    operations = [each.ok() for each in loaded.get_all_operations()]
    assert [each.path for each in operations] == ["/{token}/", "/{token}/js/{name}"]
    for operation in operations:

        @given(operation.as_strategy(), st.booleans())
        @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def ask(case: Any, known: bool) -> None:
            if known:
                case.path_parameters["token"] = door.token
            found = case.call(base_url=home)
            assert found.status_code in ({200, 403, 404} if known else {403, 404, 400})
            assert found.status_code == 400 or "content-security-policy" in found.headers

        ask()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(method: str) -> None:
    with served(library_of(Echo())) as client:
        assert client.request(method, "/t0ken/").status_code == 405


@contextlib.contextmanager
def unhurried(patch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A server that lets pages send as much as they like."""
    patch.setattr(session, "Rates", lambda: Rates(clock=iter(range(0, 10**12, 10**6)).__next__))
    with served(library_of(Echo())) as client:
        yield client


def damaged(frame: bytes, chance: random.Random) -> bytes:
    """The frame with some bytes changed, added or gone."""
    found = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(found))
        found[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
    return bytes(found)


def hurl(page: Tab, frames: list[bytes]) -> None:
    """Each frame gets one reply that is no progress."""
    for frame in frames:
        page.link.send_bytes(frame)
    replies = 0
    while replies < len(frames):
        replies += "ok" in page.receive()


@pytest.mark.slow
def test_ten_thousand_messages_that_are_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(0)
    with unhurried(monkeypatch) as client, tab(client, origin=HERE) as page:

        @given(st.lists(FRAMES, min_size=DRAWN, max_size=DRAWN))
        @settings(
            max_examples=MESSAGES // (DRAWN * (1 + COPIES)), deadline=None, derandomize=True,
            suppress_health_check=list(HealthCheck), database=None,
        )  # fmt: skip
        def attack(frames: list[bytes]) -> None:
            hurl(page, frames + [damaged(each, chance) for each in frames for _ in range(COPIES)])

        attack()
        assert page.answer("still there") == "STILL THERE"
    assert "Traceback" not in capsys.readouterr().err
    assert DOOR.token == "t0ken"


def test_a_frame_beyond_the_limit_ends_only_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(library_of(Echo())) as client, tab(client) as page, tab(client) as other:
        page.link.send_bytes(bytes(server.FRAME + 1))
        assert page.receive()["ok"] is False
        assert other.answer("a") == "A"
    assert len(write_frame({"id": 1})) < server.FRAME
