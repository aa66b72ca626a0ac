"""Pages that move, without network or library: a projection, where pointing at a point shows its picture or
its name, and a time-lapse, with a slider through the snapshots of a training.
"""

import base64
import io
import math
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from attnlab.analysis import percent
from attnlab.analysis.project.points import Points
from attnlab.analysis.project.projection import Projections
from attnlab.analysis.timelapse.runs import Plane, Timelapse
from attnlab.figures import projections as of
from attnlab.report.page import render
from attnlab.tables.timelapse import frame_rows

LIGHT = (
    "#9DB7FF", "#FF9AA8", "#6FD08C", "#FF8AC0", "#5FE0CE",
    "#E3A3FF", "#A6E1FF", "#D6D65A", "#FFC857", "#C8C8C8",
)  # fmt: skip
"""The same ten colours for a dark page."""
KEPT = ("steps", "accuracy", "loss", "curve", "moment", "metrics", "heads", "positions")
"""What the page of a time-lapse shows of it."""


def projection_page(found: Projections) -> str:
    """Points that show what they are of, as pictures where they are of images."""
    points = [run.cloud for run in found.runs]
    return render("projection.html", **live_points(of.projections_data(found.runs), points))


def live_points(data: of.ProjectionsFigure, points: list[Points]) -> dict[str, Any]:
    """What the panels of points and their script are made from; equal sheets of pictures are kept once."""
    words = [
        {
            "name": run.run,
            "place": of.place_words(run),
            "method": of.method_words(run),
            "picture": of.picture_words(run),
            "agreement": of.agreement_words(run),
            "clusters": of.cluster_words(run),
            "label": of.label_word(run),
        }
        for run in data.runs
    ]
    kept = ("x", "y", "label", "labels", "cluster", "image", "patch", "side", "names", "found")
    sheets: list[str] = []
    drawn = []
    for run, each in zip(data.runs, points, strict=True):
        plain = run.to_json()
        shown = {**{key: plain[key] for key in kept}, "word": of.label_word(run), "sheet": -1}
        if each.pixels is not None:
            found = sheet(each.pixels)
            if found["sheet"] not in sheets:
                sheets.append(found["sheet"])
            shown |= {**found, "sheet": sheets.index(found["sheet"])}
        drawn.append(shown)
    return {"runs": words, "data": {"runs": drawn, "sheets": sheets, "dark": of.COLOURS, "light": LIGHT}}


def sheet(pixels: UInt8[Tensor, "M *C y x"]) -> dict[str, Any]:
    """All pictures as one PNG, row by row, grey ones as ink on paper; how many stand in a row."""
    across = math.ceil(math.sqrt(len(pixels)))
    down = math.ceil(len(pixels) / across)
    ink = 255 - pixels.numpy()[..., None] if pixels.ndim == 3 else pixels.movedim(1, -1).numpy()
    _, high, wide, colours = ink.shape
    paper = np.full((down * across, high, wide, colours), 255, dtype=np.uint8)
    paper[: len(pixels)] = ink
    rows = paper.reshape(down, across, high, wide, colours).transpose(0, 2, 1, 3, 4)
    joined = rows.reshape(down * high, across * wide, colours)
    buffer = io.BytesIO()
    image = Image.fromarray(joined if colours > 1 else joined[..., 0])
    (image if colours > 1 else image.quantize(16)).save(buffer, format="PNG", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return {"across": across, "down": down, "sheet": f"data:image/png;base64,{encoded}"}


def timelapse_page(found: Timelapse) -> str:
    projection = found.projection
    plain = found.to_json()
    shown = {
        **{key: _short(plain[key]) for key in KEPT},
        "order": list(found.metrics),
        "projection": {**plain["projection"], "reach": reach(projection)} if projection else None,
        "dark": of.COLOURS,
        "light": LIGHT,
    }
    rights, steps = found.accuracy, found.steps
    words = (
        "Share of right answers over steps on a logarithmic axis: "
        f"{percent(rights[0])} at step {steps[0]:,}, {percent(rights[-1])} at step {steps[-1]:,}; "
        f"{found.moment.sentence}"
    )
    return render("timelapse.html", found=found, frames=frame_rows(found), curve_words=words, data=shown)


def reach(projection: Plane) -> float:
    """How far from the middle a point ever is."""
    return max(abs(value) for axis in (projection.x, projection.y) for frame in axis for value in frame)


def _short(value: Any) -> Any:
    """The same with four digits behind the point: a page needs no more."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, list):
        return [_short(each) for each in value]
    return {key: _short(each) for key, each in value.items()} if isinstance(value, dict) else value
