"""Pages: sections of figures and tables in one HTML file that needs no network; and how they were made."""

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure as Drawing

from attnlab.analysis.evaluate import Evaluation
from attnlab.errors import StorageError
from attnlab.figures.style import to_svg
from attnlab.results import Table
from attnlab.runs import RunFolder
from attnlab.sets import Examples
from attnlab.specs import Spec, to_json, write_variant
from attnlab.storage import make_folder, write_text

D = TypeVar("D")

_WIDTH = re.compile(r'width="([\d.]+)pt"')
_PIXELS = 4 / 3  # of a browser, in a point
_VARIANTS = {"optimiser", "schedule", "positions", "start"}
"""Settings that are one word: a choice between kinds."""
_BLOCK = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
PICTURE_STYLE = "*{stroke-linejoin: round; stroke-linecap: butt}"
"""The style that matplotlib writes into each SVG."""
ON_CELLS = "#010101"
"""Black that stays black in a dark page."""
LARGEST = 4_000_000
"""Bytes that a page may have."""


@dataclass(frozen=True)
class Figure:
    """A picture, its numbers, and two lines on how to read it and what to make of it.

    ``name`` is that of its files; ``reading`` and ``signs`` are made from its own numbers.
    ``signs`` is empty where the finding that it belongs to says it.
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
    return Figure(name, title, reading, signs, themed(drawn), json.dumps(to_json(data)), drawn)


_TAG = re.compile(r"<(?!text|tspan)[a-z][^>]*>")
_TAKEN = (("stroke: #000000", "ink"), ("fill: #000000", "ink"), ("fill: #ffffff", "sheet"))


def themed(drawn: Drawing) -> str:
    """The picture as SVG whose lines, words and paper take the colours of the page; data keep theirs, and
    so do the numbers that are written on cells of a map.
    """
    for axes in drawn.axes:
        if axes.images or any(isinstance(each, QuadMesh) for each in axes.collections):
            for text in axes.texts:
                if text.get_color() == "black":
                    text.set_color(ON_CELLS)

    def take(tag: re.Match[str]) -> str:
        found = tag[0]
        for colour, name in _TAKEN:
            kind, value = colour.split(": ")
            found = found.replace(colour, f"{kind}: var(--{name}, {value})")
        return found

    return _TAG.sub(take, to_svg(drawn))


Mark = Literal["good", "bad", "open", "none"]
"""How an item stands: all is well, something is wrong, not known, does not apply."""


@dataclass(frozen=True)
class Item:
    """A line of a list: a mark that is read without colour as well, what it is about, and what there is to
    say. ``link`` is the address of a section of the page.
    """

    mark: Mark
    state: str
    name: str
    words: str = ""
    link: str = ""

    @property
    def sign(self) -> str:
        return {"good": "✓", "bad": "✗", "open": "?", "none": "–"}[self.mark]


@dataclass(frozen=True)
class Checklist:
    """Items under a title."""

    title: str
    items: Sequence[Item]


@dataclass(frozen=True)
class Code:
    """A command or a program to copy, the sentence above it, and the heading above both if there is one."""

    words: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, checklists, figures, tables, code; ``name`` is its address in the page."""

    name: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    checklists: Sequence[Checklist] = ()
    codes: Sequence[Code] = ()


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
    one: Callable[[Examples], Mapping[str, Part]] = lambda example: {}

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
    return pages.get_template(template).render(policy=policy(), **values)


@cache
def policy() -> str:
    """What a page may do, as a Content-Security-Policy: run and apply the scripts and styles that stand in
    the templates of this room, by their hashes, and no others. Attributes of style, of which pictures are
    full, are allowed; nothing is fetched or sent.
    """
    found: dict[str, list[str]] = {"script": [], "style": [_hash(PICTURE_STYLE)]}
    for path in sorted(Path(__file__).parent.glob("*.html")):
        for kind, text in _BLOCK.findall(path.read_text(encoding="utf-8")):
            found[kind].append(_hash(text))
    return (
        f"default-src 'none'; script-src {' '.join(found['script'])}; style-src 'unsafe-inline'; "
        f"style-src-elem {' '.join(found['style'])}; style-src-attr 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def as_json(value: Any) -> str:
    """JSON that people read."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def made(run: RunFolder, page: list[str]) -> Made:
    """How ``run`` was trained, and the words of the command that wrote its page."""
    spec = run.spec()
    trained = "This trains the same run again; so does attnlab train --spec spec.json with the file below."
    if run.file("start.safetensors").exists():
        trained = "Its training began with the weights of another run, which a command alone does not give."
    return Made(
        commands=[
            (trained, train_command(spec)),
            ("This wrote the page:", " ".join(["attnlab", *map(quote, page)])),
        ],
        files=[("spec.json", as_json(to_json(spec)))],
        environment={key: _plain(value) for key, value in run.environment().to_json().items()},
    )


def _plain(value: Any) -> str:
    """A value of the environment; of images, where they came from."""
    if isinstance(value, dict) and "source" in value:
        return f"{value['source']}{', only the bundled sample' if value.get('sample') else ''}"
    return str(value)


def train_command(spec: Spec) -> str:
    """``attnlab train`` with the preset that needs the fewest flags, or with a file where none fits."""
    found = []
    for name, preset in type(spec.task).presets().items():
        if type(preset.model) is type(spec.model):
            flags = _flags(spec, preset)
            found.append((len(flags), name != "default", name, flags))
    if not found:
        return "attnlab train --spec spec.json"
    _, _, name, flags = min(found)
    start = [] if name == "default" else ["--preset", name]
    return " ".join(["attnlab", "train", spec.task.kind, *start, *map(quote, flags)])


def _flags(wanted: Any, given: Any, path: str = "") -> list[str]:
    """A flag for each value of ``wanted`` that differs from ``given``."""
    flags = []
    for field in dataclasses.fields(wanted):
        mine, other = getattr(wanted, field.name), getattr(given, field.name)
        name = f"{path}{field.name}"
        if mine == other:
            continue
        if field.name in _VARIANTS:
            flags.append(f"--{name}={write_variant(mine)}")
        elif dataclasses.is_dataclass(mine):
            flags += _flags(mine, other, f"{name}.")
        elif isinstance(mine, bool):
            flags.append(f"--{name}" if mine else f"--{path}no-{field.name}")
        elif isinstance(mine, tuple):
            flags += [f"--{name}", *map(str, mine)]
        else:
            flags.append(f"--{name}={mine}")
    return flags
