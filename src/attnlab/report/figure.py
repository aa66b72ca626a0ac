"""A figure of a report."""

import json
from dataclasses import dataclass
from typing import Any

from attnlab.figures import to_svg


@dataclass(frozen=True)
class Figure:
    """A picture with its numbers and how to read it."""

    title: str
    reading: str
    svg: str
    data: str


def figure(title: str, reading: str, data: dict[str, Any], drawn: Any) -> Figure:
    """The picture ``drawn`` from ``data``."""
    return Figure(title, reading, to_svg(drawn), json.dumps(data))
