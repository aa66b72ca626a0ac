"""The explorer served to a browser, and what a person does with it."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import uvicorn
from playwright.sync_api import Locator

from attnlab.explorer.library import Library
from attnlab.explorer.security import Door
from attnlab.explorer.server import bind, make_app
from browser import PATIENCE, Tab

AXE = Path(__file__).parent.parent / "node_modules/axe-core/axe.min.js"
NO_AXE = "there is no axe-core here; scripts/check installs it where there is npm"
SEEN = "localStorage.setItem('attnlab-tour-seen', 'yes')"
NEVER_SEEN = "localStorage.removeItem('attnlab-tour-seen')"
BEGIN = """async (hash) => {
  const {begin, end} = await import(new URL("js/served.js", location.href));  // those of the page
  (globalThis.last ?? end)();
  history.replaceState(null, "", hash);
  scrollTo(0, 0);
  globalThis.last = begin();
}"""
KEPT = """() => {
  const {state, kept} = document.querySelector(".attnlab").dataset;
  return state === kept;
}"""
SETTLED = """new Promise((settled, failed) => {
  const end = performance.now() + PATIENCE;
  const look = () => {
    const page = document.querySelector(".attnlab");
    const {state, drawn} = page ? page.dataset : {};
    if (state && state === drawn) settled(Number(drawn));
    else if (performance.now() > end) failed(new Error(`state ${state} is not drawn, but ${drawn}`));
    else setTimeout(look, 5);
  };
  requestAnimationFrame(() => setTimeout(look));
})""".replace("PATIENCE", str(PATIENCE))
JUDGED = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`)))"""


@dataclass(frozen=True)
class Place:
    """Where the page is; ``names`` are those of runs that have a shorter one in tests."""

    address: str
    names: dict[str, str] = field(default_factory=dict)

    def at(self, state: str) -> str:
        """The address of a run, behind which more of the state may stand."""
        run, *rest = state.split("&")
        return f"{self.address}#run={'&'.join([quote(self.names.get(run, run), safe=':/'), *rest])}"


@contextmanager
def served(library: Library) -> Iterator[str]:
    """The address of the page, as long as the context is open."""
    door, listener = Door(), bind("127.0.0.1", 0)
    config = uvicorn.Config(make_app(library, door), log_config=None, ws="websockets-sansio", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/{door.token}/"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


@dataclass
class Explorer:
    """One tab with the explorer in it. Its modules are loaded once, which takes longest: what is opened
    begins anew, with nothing left of what was done before.
    """

    tab: Tab
    place: Place

    @staticmethod
    def of(tab: Tab, place: Place) -> "Explorer":
        tab.page.add_init_script(SEEN)
        if AXE.is_file():
            tab.page.add_init_script(path=AXE)
        return Explorer(tab, place)

    def open(
        self, run: str, *, width: int = 1280, height: int = 900, dark: bool = False, toured: bool = False
    ) -> Self:
        """A run by its name, behind which more of the state may stand; ``toured``: as on a first visit."""
        address = self.place.at(run)
        if not self.tab.page.url.startswith(self.place.address):
            self.tab.visit(address)
        self.tab.dress(width=width, height=height, dark=dark)
        self.tab.ask(NEVER_SEEN if toured else SEEN)
        return self.begin(f"#{address.partition('#')[2]}")

    def begin(self, state: str) -> Self:
        """As if the page were loaded with this state."""
        mouse = self.tab.page.mouse
        mouse.up()
        mouse.move(0, 0)
        self.tab.complaints.clear()
        self.tab.page.evaluate(BEGIN, state)
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until everything that was asked for is drawn."""
        self.tab.ask(SETTLED)

    def named(self, name: str) -> Locator:
        """A part of the page."""
        return self.tab.page.locator(f'[data-name="{name}"]')

    def button(self, name: str, inside: str = "") -> Locator:
        place = self.named(inside) if inside else self.tab.page
        return place.get_by_role("button", name=name, exact=True)

    def press(self, name: str, inside: str = "") -> None:
        self.button(name, inside).click()
        self.settle()

    def view(self, name: str) -> None:
        self.named("views").get_by_role("tab", name=name).click()
        self.settle()

    def way(self, name: str, slot: str = "input") -> None:
        """Open a way to give the input: text, draw, paint, picture or examples."""
        self.named(f"{slot}-by-{name}").click()
        self.settle()

    def type(self, text: str, slot: str = "input") -> None:
        self.named(f"{slot}-text").fill(text)
        self.settle()

    def draw(self, *strokes: Sequence[tuple[float, float]], slot: str = "input") -> None:
        """Strokes with a mouse, between 0 and 1 of the drawing area."""
        area, mouse = self.named(f"{slot}-draw"), self.tab.page.mouse
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        assert box is not None
        for stroke in strokes:
            points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            mouse.move(*points[0])
            mouse.down()
            for point in points[1:]:
                mouse.move(*point, steps=5)
            mouse.up()
        self.settle()

    def answers(self) -> list[str]:
        """As it is, and with edits where there are any."""
        texts = self.named("answer").locator(".answer-text").filter(visible=True)
        return [each for each in texts.all_inner_texts() if each]

    def state(self) -> dict[str, str]:
        """What stands in the address, once it has caught up."""
        self.tab.page.wait_for_function(KEPT)
        pairs = str(self.tab.ask("location.hash")).removeprefix("#").split("&")
        return dict(pair.split("=", 1) for pair in pairs)

    def judge(self) -> list[str]:
        """What axe finds serious."""
        return [str(each) for each in self.tab.ask(JUDGED)]

    def saved(self, name: str) -> tuple[str, bytes]:
        """A file of the menu "Share": its name and its bytes."""
        self.tab.page.get_by_text("Share", exact=True).click()
        with self.tab.page.expect_download() as found:
            self.button(name).click()
        path = found.value.path()
        return found.value.suggested_filename, path.read_bytes()


def numbers_of(raw: bytes) -> dict[str, Any]:
    """Saved numbers."""
    found: dict[str, Any] = json.loads(raw)
    return found


PICTURES = os.environ.get("ATTNLAB_TEST_PICTURES", "")
"""A folder for screenshots of every view, to be looked at."""
