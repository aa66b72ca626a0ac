"""A figure of a page: a picture, its numbers, and two lines on how to read it and what to make of it."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure as Drawing

from attnlab.figures.style import to_svg
from attnlab.spec import to_json

_WIDTH = re.compile(r'width="([\d.]+)pt"')
_PIXELS = 4 / 3  # of a browser, in a point


@dataclass(frozen=True)
class Figure:
    """``name`` is that of its files; ``reading`` and ``signs`` are made from its own numbers.

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

    def with_live(self, live: dict[str, Any]) -> "Figure":
        return replace(self, live=live)


def figure(name: str, title: str, data: Any, drawn: Drawing, *, reading: str, signs: str) -> Figure:
    """The picture ``drawn`` from ``data``.

    ``reading`` says what is drawn and what it comes to; ``signs`` what a good and what a bad sign would be,
    and which of them is here.
    """
    return Figure(name, title, reading, signs, to_svg(drawn), json.dumps(to_json(data)), drawn)
