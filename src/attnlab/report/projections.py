"""A projection as one page: pointing at a point shows its digit. No network, no library."""

import base64
import io
import math
from typing import Any

import numpy as np
from jaxtyping import UInt8
from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image
from torch import Tensor

from attnlab.analysis.project import Points
from attnlab.data.ink import SIDE
from attnlab.figures.projection_words import (
    agreement_words,
    cluster_words,
    method_words,
    picture_words,
    place_words,
)
from attnlab.figures.projections import COLOURS

LIGHT = (
    "#9DB7FF", "#FF9AA8", "#6FD08C", "#FF8AC0", "#5FE0CE",
    "#E3A3FF", "#A6E1FF", "#D6D65A", "#FFC857", "#C8C8C8",
)  # fmt: skip
"""The same ten colours for a dark page."""


def projection_page(data: dict[str, Any], points: list[Points]) -> str:
    """The page of ``projections_data``, with the digits that its points belong to."""
    pages = Environment(
        loader=PackageLoader("attnlab", "report"), autoescape=True, undefined=StrictUndefined
    )
    return pages.get_template("projection.html").render(**live_points(data, points))


def live_points(data: dict[str, Any], points: list[Points]) -> dict[str, Any]:
    """What the panels of points and their script are made from; equal sheets of digits are kept once."""
    words = [
        {
            "name": run["run"],
            "place": place_words(run),
            "method": method_words(run),
            "picture": picture_words(run),
            "agreement": agreement_words(run),
            "clusters": cluster_words(run),
        }
        for run in data["runs"]
    ]
    kept = ("x", "y", "label", "cluster", "image", "patch", "side", "names", "found")
    sheets: list[str] = []
    drawn = []
    for run, each in zip(data["runs"], points, strict=True):
        found = sheet(each.pixels)
        if found["sheet"] not in sheets:
            sheets.append(found["sheet"])
        drawn.append({**{key: run[key] for key in kept}, **found, "sheet": sheets.index(found["sheet"])})
    shown = {"runs": drawn, "sheets": sheets, "dark": COLOURS, "light": LIGHT, "pixels": SIDE}
    return {"runs": words, "data": shown}


def sheet(pixels: UInt8[Tensor, "M 28 28"]) -> dict[str, Any]:
    """All digits as one PNG, ink on paper, row by row; how many stand in a row."""
    across = math.ceil(math.sqrt(len(pixels)))
    down = math.ceil(len(pixels) / across)
    paper = np.full((down * across, SIDE, SIDE), 255, dtype=np.uint8)
    paper[: len(pixels)] = 255 - pixels.numpy()
    joined = (
        paper.reshape(down, across, SIDE, SIDE).transpose(0, 2, 1, 3).reshape(down * SIDE, across * SIDE)
    )
    buffer = io.BytesIO()
    Image.fromarray(joined).quantize(16).save(buffer, format="PNG", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return {"across": across, "down": down, "sheet": f"data:image/png;base64,{encoded}"}
