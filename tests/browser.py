"""Pages in Debian's Chromium, driven by playwright; the fixtures are in ``conftest.py``."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 60_000.0
"""Milliseconds that an answer may take on a busy machine."""
expect.set_options(timeout=PATIENCE)


@dataclass
class Tab:
    """A page. ``complaints`` are what it says to its console, ``requests`` all but its own address."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", self._on_error)
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        self.complaints.append(message.text)

    def _on_error(self, error: Error) -> None:
        self.complaints.append(error.message)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)

    def visit(self, place: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file or an address and wait until it is there; complaints and requests start anew."""
        address = place.resolve().as_uri() if isinstance(place, Path) else place
        self.page.goto("about:blank")
        self.complaints, self.requests = [], []
        self.dress(width=width, height=height, dark=dark)
        self.page.goto(address)
        self.requests = [each for each in self.requests if each != address]

    def dress(self, *, width: int, height: int, dark: bool) -> None:
        """The window, and whether dark pages are liked."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(media="screen", color_scheme="dark" if dark else "light")

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        return self.page.evaluate(script)

    def show(self, content: str, folder: Path, *, width: int = 1200) -> None:
        """Open a page that is given as text."""
        (folder / "page.html").write_text(content, encoding="utf-8")
        self.visit(folder / "page.html", width=width)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser for as long as the context is open."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=FLAGS,
        )
        try:
            yield opened
        finally:
            opened.close()
