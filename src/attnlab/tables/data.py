"""What there is of MNIST."""

from collections.abc import Iterator

from attnlab.data.mnist_files import CachedFile
from attnlab.data.mnist_sources import DataStatus
from attnlab.results import Part, Table


def tables(found: DataStatus) -> Iterator[Part]:
    columns = ("file", "digits", "bytes", "SHA-256")
    yield Table(f"MNIST in {found.folder}", columns, tuple(map(_cells, found.files)))
    rows = tuple((each.source, each.state) for each in found.sources)
    yield Table("sources, in the order in which they are asked", ("source", "state"), rows)


def _cells(file: CachedFile) -> tuple[str, ...]:
    if file.bytes is None:
        return (file.file, "-", "-", "not there")
    digits = "-" if file.digits is None else f"{file.digits:,}"
    return (file.file, digits, f"{file.bytes:,}", "right" if file.right else "wrong: will be fetched again")
