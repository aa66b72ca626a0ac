"""A time-lapse as one page: a slider through the snapshots of a training. No network, no library."""

from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.statistics import two_places
from attnlab.analysis.timelapse.runs import Plane, Timelapse
from attnlab.figures.projections import COLOURS
from attnlab.report.page import render
from attnlab.report.projections import LIGHT

KEPT = ("steps", "accuracy", "loss", "curve", "moment", "metrics", "heads", "positions")


def timelapse_page(found: Timelapse) -> str:
    projection = found.projection
    plain = found.to_json()
    shown = {
        **{key: _short(plain[key]) for key in KEPT},
        "order": list(found.metrics),
        "projection": {**plain["projection"], "reach": reach(projection)} if projection else None,
        "dark": COLOURS,
        "light": LIGHT,
    }
    rights, steps = found.accuracy, found.steps
    words = (
        "Share of right answers over steps on a logarithmic axis: "
        f"{percent(rights[0])} at step {steps[0]:,}, {percent(rights[-1])} at step {steps[-1]:,}; "
        f"{found.moment.sentence}"
    )
    return render("timelapse.html", found=found, frames=frames_told(found), curve_words=words, data=shown)


def frames_told(found: Timelapse) -> list[dict[str, Any]]:
    """A row of words for each snapshot: the pictures as a table."""
    entropy = [head.metrics["entropy"] for head in found.heads if "entropy" in head.metrics]
    tables, projection = found.positions, found.projection
    return [
        {
            "step": step,
            "right": percent(found.accuracy[place]),
            "loss": f"{found.loss[place]:.4f}",
            "entropy": f"{_mean([values[place] for values in entropy]):.3f}",
            "moved": f"{_mean([table.mean[place] for table in tables]):.3f}" if tables else "",
            "silhouette": two_places(projection.silhouette[place]) if projection else "",
        }
        for place, step in enumerate(found.steps)
    ]


def reach(projection: Plane) -> float:
    """How far from the middle a point ever is."""
    return max(abs(value) for axis in (projection.x, projection.y) for frame in axis for value in frame)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def _short(value: Any) -> Any:
    """The same with four digits behind the point: a page needs no more."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, list):
        return [_short(each) for each in value]
    return {key: _short(each) for key, each in value.items()} if isinstance(value, dict) else value
