"""What taps can be called."""

from collections.abc import Iterator

from attnlab.analysis.project.points import TapNames
from attnlab.results import Part, Table


def tables(found: TapNames) -> Iterator[Part]:
    yield Table(f"{found.run}: short names", ("tap", "path"), tuple(found.short.items()))
    yield "\n".join(found.paths)
