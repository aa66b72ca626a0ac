"""The explorer in a real JupyterLab: whether it shows, answers, and shares its state with Python both ways.

    python benchmarks/jupyterlab.py --lab /elsewhere/bin/jupyter-lab
    python benchmarks/jupyterlab.py --out results/explorer/jupyterlab.json

It needs JupyterLab 4, which may live in an environment of its own, playwright, and Chromium. A notebook is
opened in the browser and its cells are run as a person does: the page must say what Python says. JupyterLab
itself takes longest; nothing is asked of any other computer.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tyro
from playwright.sync_api import Locator, Page, sync_playwright

from attnlab.runs import describe_environment
from attnlab.storage import write_json

CELLS = (
    'import attnlab as al\nwidget = al.load("zoo:adder").explore("498+198")\nwidget',
    "print(widget.input, widget.off, widget.answer)",
    'widget.off = ["decoder.0.cross.0"]\nprint(widget.answer)',
    'widget.input = "999+1"\nprint(widget.answer)',
)
PATIENCE = 300_000.0
"""Milliseconds until something must be there."""


@dataclass(frozen=True)
class Options:
    """What to try, and where."""

    lab: str = "jupyter-lab"
    """The command that starts JupyterLab."""
    json: bool = False
    """Print JSON instead of lines."""
    out: Path | None = None
    """A file for the result, with the environment."""


@contextmanager
def serving(lab: str, folder: Path) -> Iterator[str]:
    """The address of a notebook whose kernel is this Python."""
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**cell, "id": f"cell-{at}", "source": source} for at, source in enumerate(CELLS)]
    spec = {"name": "attnlab", "display_name": "attnlab", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "explore.ipynb").write_text(json.dumps(notebook))
    kernel = folder / "jupyter/kernels/attnlab/kernel.json"
    kernel.parent.mkdir(parents=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": start, "display_name": "attnlab", "language": "python"}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    paths = f"{folder / 'jupyter'}{os.pathsep}{Path(sys.prefix) / 'share/jupyter'}"
    words = [lab, "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    words += [f"--notebook-dir={folder}", "--IdentityProvider.token=", "--LabApp.news_url=None"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, env={**os.environ, "JUPYTER_PATH": paths}, stderr=log)
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}/lab/tree/explore.ipynb"
        finally:
            process.terminate()
            process.wait()


def wait_for(port: int) -> None:
    """Until somebody answers there."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.2)
    sys.exit("JupyterLab does not answer")


@dataclass(frozen=True)
class Notebook:
    """The notebook in the browser."""

    page: Page

    def run(self, number: int) -> str:
        """Run a cell; what it prints."""
        self.page.locator(".jp-Cell .cm-content").nth(number).click()
        self.page.keyboard.press("Control+Enter")
        printed = self.page.locator(".jp-Cell").nth(number).locator(".jp-OutputArea-output pre")
        printed.first.wait_for()
        return printed.first.inner_text().strip()

    def answers(self, *wanted: str) -> list[str]:
        """What the widget shows, as soon as it is what is ``wanted``, or when patience ends."""
        shown = (
            "[...document.querySelectorAll('.attnlab .answer-text')].filter((each) => each.offsetParent)"
        )
        script = f"(wanted) => {shown}.map((each) => each.innerText).join() === wanted"
        self.page.wait_for_function(script, arg=",".join(wanted))
        found: list[str] = self.page.evaluate(f"{shown}.map((each) => each.innerText)")
        return found

    @property
    def field(self) -> Locator:
        return self.page.locator(".attnlab [data-name=input-text]")


def walk(notebook: Notebook) -> dict[str, Any]:
    """What a person does, and what they see."""
    page = notebook.page
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for(state="attached")
    page.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    found: dict[str, Any] = {"shown": notebook.answers("696"), "python": notebook.run(1)}
    found["off"] = notebook.run(2)
    found["shown_off"] = notebook.answers("696", "596")
    notebook.field.fill("4+5")
    found["shown_typed"] = notebook.answers("9", "9")
    found["python_typed"] = notebook.run(1)
    found["input"] = notebook.run(3)
    found["shown_input"] = notebook.answers("1000", "1000")
    found["field"] = notebook.field.input_value()
    found["copies"] = page.locator(".attnlab-copy").filter(visible=True).count()
    return found


WANTED = {
    "shown": ["696"],
    "python": "498+198 [] 696",
    "off": "596",
    "shown_off": ["696", "596"],
    "shown_typed": ["9", "9"],
    "python_typed": "4+5 ['decoder.0.cross.0'] 9",
    "input": "1000",
    "shown_input": ["1000", "1000"],
    "field": "999+1",
    "copies": 0,
    "hosts": ["127.0.0.1"],
}


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        program = shutil.which("chromium")
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page, hosts = chromium.new_page(viewport={"width": 1400, "height": 1000}), set[str]()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or "127.0.0.1"))
        with serving(options.lab, Path(folder)) as address:
            page.goto(address)
            found = walk(Notebook(page))
        chromium.close()
    found["hosts"] = sorted(hosts)
    wrong = {name: found[name] for name, value in WANTED.items() if found[name] != value}
    version = subprocess.run([options.lab, "--version"], capture_output=True, text=True, check=True).stdout
    command = "python benchmarks/jupyterlab.py"
    result = {"command": command, "jupyterlab": version.strip(), "steps": found, "wrong": wrong}
    if options.out is not None:
        write_json(options.out, {**result, "environment": describe_environment().to_json()})
    lines = "\n".join(f"{name}: {value}" for name, value in found.items())
    print(json.dumps(result) if options.json else lines)
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main(tyro.cli(Options))
