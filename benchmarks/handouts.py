"""How far a hand-out's model is from torch, over 1,000 answers of each shipped run, in V8 and in Chromium.

    pip install -c constraints.txt -e '.[explorer]' playwright     # and Chromium
    python benchmarks/handouts.py                                  # a table, two minutes of processor time
    python benchmarks/handouts.py --out results/explorer/handouts.json

Torch answers the first examples of the test split; the page's own script is fed the same. ``wrong`` are
answers that differ from torch's, ``away`` is the largest difference of a logit among the others.
``attnlab handout`` asks V8 the same before it writes a file.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from playwright.sync_api import Browser, sync_playwright

import attnlab as al
from attnlab.explorer.handout import Prepared, prepare
from attnlab.explorer.reference import CHECKED, compare
from attnlab.explorer.scene import ExampleInput
from attnlab.explorer.stored import store
from attnlab.runs import describe_environment
from attnlab.storage import write_json

RUNS = ("zoo:adder", "zoo:long-adder", "zoo:sorter", "zoo:digit", "zoo:grid")
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
ANSWERED = "([stored, shape]) => attnlab.answered(page, stored, shape)"
OPENED = "typeof page !== 'undefined' && page !== null"
PART = 250
"""Examples that are sent to the page at once."""


@dataclass(frozen=True)
class Options:
    """What to compare."""

    runs: tuple[str, ...] = RUNS
    answers: int = CHECKED
    json: bool = False
    """Print JSON instead of a table."""
    out: Path | None = None
    """A file for the result, with the environment."""


def main(options: Options) -> None:
    found: dict[str, dict[str, Any]] = {}
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for run in options.runs:
            made = prepare(al.load(run), answers=options.answers)
            file = Path(folder) / "page.html"
            file.write_text(made.page(), encoding="utf-8")
            wrong, away = in_browser(browser, file, made)
            found[run] = {
                "answers": len(made.reference),
                "bits": made.bits,
                "megabytes": file.stat().st_size / 1e6,
                "v8": {"wrong": 0, "away": compare(made.reference, made.script, made.data)},
                "chromium": {"wrong": wrong, "away": away},
            }
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "command": "python benchmarks/handouts.py",
            "environment": describe_environment().to_json(),
        }
        write_json(options.out, {**about, "runs": found})
    print(json.dumps(found, indent=1) if options.json else table(found))


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = next(path for path in CHROMIUM if Path(path).exists())
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


def in_browser(browser: Browser, file: Path, made: Prepared) -> tuple[int, float]:
    """How many answers of the page differ from torch's, and the largest difference of a logit elsewhere."""
    page, reference = browser.new_page(), made.reference
    page.goto(file.as_uri())
    page.wait_for_function(OPENED, timeout=60_000)
    image = made.data["subject"]["task"]["image"]
    shape = [image["channels"], image["height"], image["width"]] if image else []
    found = []
    for start in range(0, len(reference), PART):
        indices = list(range(start, min(start + PART, len(reference))))
        given = [reference.inputs.read(ExampleInput(reference.split, index)) for index in indices]
        found += page.evaluate(ANSWERED, [store(given, indices, len(reference)).to_json(), shape])
    page.close()
    return reference.judge(found)


def table(found: dict[str, dict[str, Any]]) -> str:
    lines = ["run          answers  bits    MB   V8: wrong  away       Chromium: wrong  away"]
    for run, row in found.items():
        v8, page = row["v8"], row["chromium"]
        lines.append(
            f"{run:<12} {row['answers']:>7,}  {row['bits']:>4}  {row['megabytes']:>4.1f}"
            f"   {v8['wrong']:>9}  {v8['away']:.1e}   {page['wrong']:>14}  {page['away']:.1e}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main(tyro.cli(Options))
