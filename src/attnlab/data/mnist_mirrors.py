"""MNIST from its public mirrors, which hold the four files with gzip around them.

pooch downloads to a temporary file, tries again what may pass (an overloaded server, a body that ends
early, a wrong hash), and compares the SHA-256. Because it is given what was unpacked, that is the hash of
the raw file. What will not pass, such as no connection or a page that is not there, is given up at once.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, final

from attnlab.data.idx_bytes import LIMIT, gunzip
from attnlab.data.mnist_files import SHA256, Tell
from attnlab.errors import InputError

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
CONNECT_SECONDS, READ_SECONDS, FILE_SECONDS = 4.0, 10.0, 300.0
RETRIES = 2

_CHUNK = 2**14


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
                    path = Path(store.fetch(name, downloader=_Unpacking(tell)))
                except Exception as error:  # libraries below pooch raise their own
                    raise InputError(f"{name}.gz {_reason(error)}") from error
                yield name, path.read_bytes()


def mirrors() -> tuple[Mirror, ...]:
    """Those of ``$ATTNLAB_MNIST_MIRRORS``, separated by spaces (empty for none), or the public ones."""
    words = os.environ.get("ATTNLAB_MNIST_MIRRORS")
    return tuple(map(Mirror, MIRRORS if words is None else words.split()))


@final
class _Unpacking:
    """A downloader for pooch that leaves what was inside the gzip."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        from pooch import HTTPDownloader
        from requests import RequestException

        body = BytesIO()
        download = HTTPDownloader(
            progressbar=_Watch(url, self._tell),
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
