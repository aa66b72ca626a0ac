"""Photographs the explorer for README and docs/howto/explorer.md: ``python docs/explorer_pictures.py``.

It serves the shipped runs, opens them in Chromium, and does what a visitor would do.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
DRAWN = "(r => r?.dataset.drawn && r.dataset.drawn === r.dataset.state)(document.querySelector('.attnlab'))"
SEVEN = ((0.28, 0.25), (0.5, 0.24), (0.72, 0.25), (0.6, 0.45), (0.5, 0.62), (0.42, 0.8))
"""A stroke, in shares of the area that is drawn on."""


@dataclass(frozen=True)
class Shot:
    """What is photographed: a run, its state in the address, and how large the page is."""

    name: str
    run: str
    state: str = ""
    width: int = 1280
    height: int = 900
    dark: bool = False
    drawn: bool = False
    """Whether a digit is drawn first."""


SHOTS = (
    Shot(
        "explorer",
        "zoo:adder",
        "&text=498%2B198&head=decoder.0.cross.0&edits=off~decoder.0.cross.0~mean",
    ),
    Shot("explorer-digit", "zoo:digit", "&head=encoder.1.self.3", dark=True, drawn=True),
    Shot("explorer-phone", "zoo:adder", "&text=374%2B814", width=390, height=844),
)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, server() as address:
        executable = next(path for path in CHROMIUM if Path(path).exists())
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for shot in SHOTS:
            photograph(browser, address, shot)
        browser.close()


@contextmanager
def server() -> Iterator[str]:
    """The address of an explorer of the shipped runs."""
    command = [sys.executable, "-m", "attnlab", "explore", "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip().partition("#")[0]
    finally:
        process.terminate()
        process.wait(30)


def photograph(browser: Browser, address: str, shot: Shot) -> None:
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.dark else "light",
    )
    page.goto(f"{address}#run={shot.run}{shot.state}")
    wait(page)
    end = page.locator("[data-name=tour-end]")
    if end.is_visible():
        end.click()
    if shot.drawn:
        page.locator("[data-name=input-by-draw]").click()
        draw(page)
        wait(page)
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / f"{shot.name}.png")
    page.close()


def draw(page: Page) -> None:
    box = page.locator("[data-name=input-draw]").bounding_box()
    assert box is not None
    for number, (x, y) in enumerate(SEVEN):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if number == 0:
            page.mouse.down()
    page.mouse.up()


def wait(page: Page) -> None:
    """Until all of the last state is drawn, and shown."""
    ends = time.monotonic() + 60
    page.wait_for_timeout(300)
    while not page.evaluate(DRAWN):
        if time.monotonic() > ends:
            raise SystemExit("the page is not ready")
        page.wait_for_timeout(50)
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
