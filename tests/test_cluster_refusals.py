"""Where no cluster answers, a sentence says so before Ray is asked, which would try for minutes."""

import signal
import socket
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import ray
import ray.exceptions

from attnlab.errors import LabError
from attnlab.studies import cluster
from attnlab.studies.cluster import RayExecutor
from attnlab.studies.running import open_executor
from commands import apart
from tiny_cluster import study


@pytest.fixture(autouse=True)
def _ray_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would try for minutes."""
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was asked"))


def refusal(pool: Path, address: str) -> str:
    """The sentence with which a cluster is refused."""
    with pytest.raises(LabError) as refused:
        open_executor(pool, workers=None, cluster=address)
    return str(refused.value)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_port_where_nothing_answers_is_refused(tmp_path: Path) -> None:
    address = f"127.0.0.1:{closed_port()}"
    told = apart(*study("tiny", "--cluster", address), cwd=tmp_path, code=2)
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
    assert refusal(tmp_path, address) == (f"cluster is {address!r}, but it must be HOST:PORT or auto")


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_auto_without_a_cluster_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert refusal(tmp_path, "auto") == (
        "cluster auto finds no Ray cluster on this machine; start one with: ray start --head"
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
        "cluster needs the package ray; install it with: pip install 'attnlab[cluster]'"
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
