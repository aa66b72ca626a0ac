"""Pages: sections of figures and tables in one HTML file that needs no network."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from attnlab.errors import StorageError
from attnlab.progress import Progress, silent
from attnlab.report.figure import Figure
from attnlab.storage import make_folder, write_text
from attnlab.studies.tables import Table

LARGEST = 4_000_000
"""Bytes that a page may have."""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, figures, tables; ``name`` is its address in the page."""

    name: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Made:
    """How to make the same again: sentences with a command each, files to save, and the surroundings."""

    commands: Sequence[tuple[str, str]]
    files: Sequence[tuple[str, str]] = ()
    environment: dict[str, Any] | None = None


@dataclass(frozen=True)
class Page:
    """``proof`` is the sentence that matters most, ``good`` whether nothing is left to wish for."""

    title: str
    what: str
    proof: str
    made: Made
    sections: Sequence[Section]
    good: bool = False
    notes: Sequence[str] = ()
    cards: Sequence[tuple[str, str]] = ()


def write_page(page: Page, path: Path, *, advice: str = "") -> Path:
    """Write ``page`` to ``path``, in a new folder if need be; ``advice`` is what would make it smaller."""
    pages = Environment(
        loader=PackageLoader("attnlab", "report"), autoescape=True, undefined=StrictUndefined
    )
    live = [figure.live for section in page.sections for figure in section.figures if figure.live]
    text = pages.get_template("page.html").render(page=page, live=live)
    size = len(text.encode())
    if size > LARGEST:
        raise StorageError(f"the page would have {size:,} bytes, more than {LARGEST:,}{advice}")
    make_folder(path.parent)
    write_text(path, text)
    return path


def built(parts: Sequence[Callable[[], Section | None]], *, progress: Progress = silent) -> list[Section]:
    """The sections that ``parts`` give, one after the other; a part may have nothing to say."""
    found = []
    for done, part in enumerate(parts):
        progress(done, len(parts))
        section = part()
        if section is not None:
            found.append(section)
    progress(len(parts), len(parts))
    return found


def as_json(value: Any) -> str:
    """JSON that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False)
