"""Where MNIST was fetched from."""

from collections.abc import Iterator

from attnlab.data.mnist import CachedData
from attnlab.results import Part


def tables(found: CachedData) -> Iterator[Part]:
    yield f"MNIST is in {found.folder}, from {' and '.join(found.sources)}"
