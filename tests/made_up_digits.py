"""Digits that nobody wrote, in all the forms in which real ones come, and the places they come from."""

import gzip
import io
import shlex
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import Tensor

from attnlab.data import mnist_files
from attnlab.data.idx import write_images, write_labels
from attnlab.data.mnist_files import (
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    fingerprint,
)

TRAIN, TEST = 13, 7


def images(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 28, 28), generator=generator, dtype=torch.uint8)


def labels(count: int) -> Tensor:
    return (torch.arange(count) * 3 % 10).to(torch.uint8)


def raw_files(seed: int = 0) -> dict[str, bytes]:
    """A set of four IDX files."""
    return {
        TRAIN_IMAGES: write_images(images(TRAIN, seed)),
        TRAIN_LABELS: write_labels(labels(TRAIN)),
        TEST_IMAGES: write_images(images(TEST, seed + 1)),
        TEST_LABELS: write_labels(labels(TEST)),
    }


def pin(patch: pytest.MonkeyPatch, files: Mapping[str, bytes]) -> None:
    """Make ``files`` the canonical ones."""
    for name, content in files.items():
        patch.setitem(mnist_files.SHA256, name, fingerprint(content))


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def png(pixels: Tensor, mode: str = "L") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.numpy()).convert(mode).save(file, format="PNG")
    return file.getvalue()


def write_table(path: Path, pngs: Sequence[bytes | None], values: Sequence[int | None]) -> Path:
    """A Parquet file as ``ylecun/mnist`` has it."""
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": content, "path": None} for content in pngs]
    table = pa.table({"image": pa.array(rows, image), "label": pa.array(values, pa.int64())})
    pq.write_table(table, path)
    return path


@dataclass
class Reply:
    """One answer: some bytes, perhaps fewer than announced, perhaps without an end; none for status 0."""

    body: bytes = b""
    status: int = 200
    announced: int | None = None
    stalls: bool = False


@dataclass
class Web:
    """A server whose paths answer with one reply after the other, the last for ever."""

    replies: dict[str, list[Reply]]
    address: str = ""
    asked: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def next_reply(self, path: str) -> Reply:
        name = path.rpartition("/")[2]
        self.asked.append(name)
        queue = self.replies.get(name, [Reply(status=404)])
        return queue.pop(0) if len(queue) > 1 else queue[0]


def good_replies(files: Mapping[str, bytes]) -> dict[str, list[Reply]]:
    return {f"{name}.gz": [Reply(zipped(content))] for name, content in files.items()}


@contextmanager
def serving(replies: dict[str, list[Reply]]) -> Iterator[Web]:
    """A server on this machine."""
    web = Web(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = web.next_reply(self.path)
            if reply.status:
                self.send_response(reply.status)
                self.send_header("Content-Length", str(reply.announced or len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
            if reply.stalls:
                web.closing.wait(20)

        def log_message(self, *_: Any) -> None:
            """Quietly."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_address[1]}/mnist/"
    try:
        yield web
    finally:
        web.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def package(members: Mapping[str, bytes]) -> bytes:
    """An npm package: a gzipped tar archive, the same at any time."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return zipped(file.getvalue())


def fake_npm(folder: Path, body: str, archive: bytes = b"") -> None:
    """A program called npm that runs ``body``, in which ARCHIVE is the path of ``archive``."""
    folder.mkdir(exist_ok=True)
    (folder / "archive").write_bytes(archive)
    program = folder / "npm"
    (folder / "body").write_text(
        f"import shutil, sys, time\nARCHIVE = {str(folder / 'archive')!r}\n{body}\n", encoding="utf-8"
    )
    words = shlex.join([sys.executable, "-S", str(folder / "body")])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")  # no path with spaces after #!
    program.chmod(0o755)


def contents(folder: Path) -> dict[str, bytes]:
    """What is in the cache, but for the lock."""
    if not folder.exists():
        return {}
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != ".lock"}


def write_all(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def write_pictures(folder: Path) -> Path:
    """Pictures of two classes, in a folder each."""
    for name, value in {"bright": 240, "dark": 10}.items():
        (folder / name).mkdir(parents=True)
        for number in range(40):
            picture = Image.new("L", (8, 8), value)
            picture.putpixel((number % 8, number // 8), 128)
            picture.save(folder / name / f"{number}.png")
    return folder
