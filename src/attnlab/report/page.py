"""Pages: sections of figures and tables in one HTML file that needs no network."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure as Drawing

from attnlab.analysis.evaluate import Evaluation
from attnlab.errors import StorageError
from attnlab.examples import Examples
from attnlab.figures.style import to_svg
from attnlab.progress import Progress, silent
from attnlab.spec import to_json
from attnlab.storage import make_folder, write_text
from attnlab.studies.tables import Table

D = TypeVar("D")

_WIDTH = re.compile(r'width="([\d.]+)pt"')
_PIXELS = 4 / 3  # of a browser, in a point
LARGEST = 4_000_000
"""Bytes that a page may have."""


@dataclass(frozen=True)
class Figure:
    """A picture, its numbers, and two lines on how to read it and what to make of it.

    ``name`` is that of its files; ``reading`` and ``signs`` are made from its own numbers.
    ``live`` is what a script draws in its place, where scripts run.
    """

    name: str
    title: str
    reading: str
    signs: str
    svg: str
    data: str
    drawn: Drawing
    live: dict[str, Any] | None = None

    @property
    def width(self) -> int:
        """Pixels of the picture at its natural size."""
        found = _WIDTH.search(self.svg)
        return round(float(found[1]) * _PIXELS) if found else 0


def figure(
    name: str, title: str, data: D, draw: Callable[[D], Drawing], reading: str, signs: str
) -> Figure:
    """The picture that ``draw`` makes of ``data``.

    ``reading`` says what is drawn and what it comes to; ``signs`` what a good and what a bad sign would be,
    and which of them is here.
    """
    drawn = draw(data)
    return Figure(name, title, reading, signs, to_svg(drawn), json.dumps(to_json(data)), drawn)


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


Part = Callable[[], Section | None]


def no_example(example: Examples) -> dict[str, Part]:
    """Of a page that shows no example of the task's choice."""
    return {}


@dataclass(frozen=True)
class Story:
    """``what`` it is, the sentence that proves it, notes, cards, and the sections, made when asked for.

    ``one`` gives the sections on a single example, so that a task may choose which.
    """

    what: str
    proof: str
    good: bool
    notes: Sequence[str]
    cards: Sequence[tuple[str, str]]
    parts: Mapping[str, Part]
    evaluation: Evaluation | None = None
    one: Callable[[Examples], Mapping[str, Part]] = no_example

    def with_parts(self, parts: Mapping[str, Part]) -> "Story":
        """With these ``parts`` in the place of those of the same name."""
        return replace(self, parts={**self.parts, **parts})


def write_page(page: Page, path: Path, *, advice: str = "") -> Path:
    """Write ``page`` to ``path``, in a new folder if need be; ``advice`` is what would make it smaller."""
    live = [figure.live for section in page.sections for figure in section.figures if figure.live]
    text = render("page.html", page=page, live=live)
    size = len(text.encode())
    if size > LARGEST:
        raise StorageError(f"the page would have {size:,} bytes, more than {LARGEST:,}{advice}")
    make_folder(path.parent)
    write_text(path, text)
    return path


def render(template: str, **values: Any) -> str:
    """A page of this room, made from ``values``."""
    pages = Environment(
        loader=PackageLoader("attnlab", "report"), autoescape=True, undefined=StrictUndefined
    )
    return pages.get_template(template).render(**values)


def built(parts: Sequence[Part], *, progress: Progress = silent) -> list[Section]:
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
