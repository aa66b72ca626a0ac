"""Debian's Chromium without a window, spoken to over a pipe (DevTools protocol): one start, many pages."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
)
PATIENCE = 120.0  # seconds that an answer may take on a busy machine


@dataclass
class Browser:
    """One tab. ``complaints`` are what a page says to its console, ``requests`` all but its own address."""

    process: subprocess.Popen[bytes]
    reading: int
    writing: int
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _count: int = 0
    _rest: bytes = b""
    _loaded: bool = False

    def open_tab(self) -> Self:
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def visit(self, file: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file and wait until it is there; complaints and requests start anew."""
        self.complaints, self.requests, self._loaded = [], [], False
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Page.navigate", url=file.resolve().as_uri())
        ends = time.monotonic() + PATIENCE
        while not self._loaded:
            self._take(ends)
        self.ask("1")  # scripts have run
        self.requests = [address for address in self.requests if address != file.resolve().as_uri()]

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """A screenshot as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        ends = time.monotonic() + PATIENCE
        while True:
            answer = self._take(ends)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])

    def _take(self, ends: float) -> dict[str, Any]:
        """The next message; what events say is kept."""
        while b"\0" not in self._rest:
            ready, _, _ = select([self.reading], [], [], max(0.0, ends - time.monotonic()))
            part = os.read(self.reading, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        self._hear(message.get("method", ""), message.get("params", {}))
        return message

    def _hear(self, event: str, told: dict[str, Any]) -> None:
        match event:
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(str(told["args"]))
            case "Log.entryAdded":
                self.complaints.append(told["entry"]["text"])
            case "Network.requestWillBeSent" if not told["request"]["url"].startswith(("data:", "blob:")):
                self.requests.append(told["request"]["url"])


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with one tab, for as long as the context is open."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    def connect() -> None:  # Chromium reads from 3 and writes to 4
        a, b = os.dup(theirs_in), os.dup(theirs_out)
        os.dup2(a, 3)
        os.dup2(b, 4)

    process = subprocess.Popen(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}"],
        preexec_fn=connect,
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(process, ours_in, ours_out).open_tab()
    finally:
        process.terminate()
        process.wait(30)
        os.close(ours_in)
        os.close(ours_out)


def answers(page: str, folder: Path, *flags: str) -> list[str]:
    """What a page says of itself: its script writes answers with | between them into a <pre>."""
    (folder / "page.html").write_text(page)
    quiet = (flag for flag in FLAGS if flag != "--remote-debugging-pipe")
    done = subprocess.run(
        [
            str(CHROMIUM),
            *quiet,
            *flags,
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            (folder / "page.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout.partition("<pre>")[2].partition("</pre>")[0].split("|")
