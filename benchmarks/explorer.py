"""How long the explorer takes from a keystroke, a stroke or a switch to the redrawn answer and all heads.

    pip install -c constraints.txt -e '.[explorer]' playwright     # and Chromium
    python benchmarks/explorer.py                                  # a table, two minutes on two idle cores
    python benchmarks/explorer.py --json                           # the same as JSON
    python benchmarks/explorer.py --out results/explorer/latency.json

Each shipped run is opened in Chromium, once served by ``attnlab explore`` and once as a hand-out from disk.
Inputs (a text that is typed, a stroke that is drawn) and heads that are switched off or on take turns, so
that no scene is asked for twice. Times are the page's own, from the event that it gets to the moment when
the last state is drawn completely: answer, probabilities and every head on the screen, asked for and
received. They are those of a page that is 1,280 x 900 pixels large. ``ready`` is the time from the start of
the command to its address, ``first_paint`` that from asking for the page to its first picture.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import tyro
from playwright.sync_api import Browser, Page, sync_playwright

import attnlab as al
from attnlab.runs import describe_environment
from attnlab.storage import write_json

RUNS = ("zoo:adder", "zoo:long-adder", "zoo:sorter", "zoo:digit", "zoo:grid")
PLACES = ("served", "hand-out")
ROOT = "document.querySelector('.attnlab')"
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
WAIT = """
async act => {
  const root = document.querySelector(".attnlab");
  const before = Number(root.dataset.state);
  const began = performance.now();
  (0, eval)(act)();
  while (Number(root.dataset.state) === before || root.dataset.drawn !== root.dataset.state) {
    if (performance.now() - began > 20_000) throw new Error("nothing was drawn");
    await new Promise(done => {
      const observer = new MutationObserver(() => { observer.disconnect(); done(); });
      observer.observe(root, { attributes: true, attributeFilter: ["data-state", "data-drawn"] });
      setTimeout(done, 1000);
    });
  }
  return performance.now() - began;
}
"""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    runs: tuple[str, ...] = RUNS
    places: tuple[str, ...] = PLACES
    interactions: int = 100
    """Inputs and switches for each run and place."""
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    found: dict[str, dict[str, Any]] = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        executable = next(path for path in CHROMIUM if Path(path).exists())
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for run in options.runs:
            found[run] = {}
            for place in options.places:
                opening = served(run) if place == "served" else handed_out(run, Path(folder))
                with opening as (address, ready):
                    found[run][place] = {**ready, **measure(browser, run, address, options.interactions)}
        browser.close()
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "command": "python benchmarks/explorer.py",
            "environment": describe_environment().to_json(),
        }
        write_json(options.out, {**about, "interactions": options.interactions, "runs": found})
    print(json.dumps(found, indent=1) if options.json else table(found))


@contextmanager
def served(run: str) -> Iterator[tuple[str, dict[str, float]]]:
    """The address of a server, and how long it took to be ready."""
    command = [sys.executable, "-m", "attnlab", "explore", run, "--no-open"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        yield address, {"ready_seconds": time.perf_counter() - began}
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def handed_out(run: str, folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """The address of a hand-out, and its size."""
    file = folder / f"{run.partition(':')[2]}.html"
    al.load(run).handout(file)
    yield file.as_uri(), {"megabytes": file.stat().st_size / 1e6}


def measure(browser: Browser, run: str, address: str, count: int) -> dict[str, float]:
    """Times of one page, in milliseconds."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    until(page, f"(r => r?.dataset.drawn && r.dataset.drawn === r.dataset.state)({ROOT})")
    first = until(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    close_tour(page)
    inputs = strokes(page) if al.load(run).task.images else texts(page, run)
    switches = heads_in_turn(page)
    for _ in range(3):
        inputs(), switches()  # everything has been compiled once
    found = {"input": [], "switch": []}  # type: dict[str, list[float]]
    for _ in range(count // 2):
        found["input"].append(inputs())
        found["switch"].append(switches())
    page.close()
    every = found["input"] + found["switch"]
    return {
        "first_paint": first,
        "p95": quantiles(every, n=20)[-1],
        "median": median(every),
        "worst": max(every),
        "p95_input": quantiles(found["input"], n=20)[-1],
        "p95_switch": quantiles(found["switch"], n=20)[-1],
    }


def until(page: Page, expression: str) -> Any:
    """The value of an expression, as soon as it has one; asked from outside, as the page forbids eval."""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        if found := page.evaluate(expression):
            return found
        page.wait_for_timeout(50)
    raise SystemExit(f"the page is not ready: {expression}")


def close_tour(page: Page) -> None:
    end = page.locator("[data-name=tour-end]")
    if end.count() and end.first.is_visible():
        end.first.click()


def texts(page: Page, run: str) -> Callable[[], float]:
    """Types another validation example each time."""
    task = al.load(run).task
    every = task.splits(1).valid
    names = iter([task.show(every[slice(n, n + 1)]).name for n in range(500)])
    page.locator("[data-name=input-by-text]").click()

    def act() -> float:
        text = json.dumps(next(names))
        return float(
            page.evaluate(
                WAIT,
                f"""() => {{ const field = document.querySelector('[data-name=input-text]');
                field.value = {text}; field.dispatchEvent(new Event('input', {{bubbles: true}})); }}""",
            )
        )

    return act


def strokes(page: Page) -> Callable[[], float]:
    """Draws on: another short line each time, and clears now and then."""
    page.locator("[data-name=input-by-draw]").click()
    chance, drawn = Random(0), 0

    def act() -> float:
        nonlocal drawn
        drawn += 1
        if drawn % 12 == 0:
            page.evaluate(
                "[...document.querySelectorAll('[data-name=input] button')]"
                ".find(b => b.textContent === 'Clear').click()"
            )
            page.wait_for_timeout(100)
        x, y = 0.2 + 0.5 * chance.random(), 0.2 + 0.5 * chance.random()
        return float(
            page.evaluate(
                WAIT,
                f"""() => {{ const area = document.querySelector('[data-name=input-draw]');
                area.setPointerCapture = () => undefined;
                const box = area.getBoundingClientRect();
                const send = (kind, x, y) => area.dispatchEvent(new PointerEvent(kind, {{
                  pointerId: 7, pointerType: 'mouse', button: 0, bubbles: true,
                  clientX: box.left + x * box.width, clientY: box.top + y * box.height }}));
                send('pointerdown', {x}, {y});
                send('pointermove', {x} + 0.1, {y} + 0.15);
                send('pointerup', {x} + 0.1, {y} + 0.15); }}""",
            )
        )

    return act


def heads_in_turn(page: Page) -> Callable[[], float]:
    """Switches one head after the other off."""
    heads = page.evaluate(
        "[...document.querySelectorAll('.thumb [data-off]')].map(each => each.dataset.off)"
    )
    number = -1

    def act() -> float:
        nonlocal number
        number += 1
        switch = json.dumps(f'.thumb [data-off="{heads[number % len(heads)]}"]')
        return float(page.evaluate(WAIT, f"() => document.querySelector({switch}).click()"))

    return act


def table(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"{'run':16}{'place':10}{'median':>8}{'p95':>8}{'worst':>8}{'paint':>8}   milliseconds"]
    for run, places in found.items():
        for place, row in places.items():
            cells = "".join(f"{row[key]:8.1f}" for key in ("median", "p95", "worst", "first_paint"))
            more = (
                f"{row['megabytes']:.2f} MB"
                if "megabytes" in row
                else f"ready {row['ready_seconds']:.1f} s"
            )
            lines.append(f"{run:16}{place:10}{cells}   {more}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(tyro.cli(Options))
