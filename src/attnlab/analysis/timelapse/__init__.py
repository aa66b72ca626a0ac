"""Time-lapse: how a model came to be what it is, from weights that its run kept on the way."""

from attnlab.analysis.timelapse.moments import Moment, find_moment, frames_around
from attnlab.analysis.timelapse.planes import Cloud, Plane, one_plane
from attnlab.analysis.timelapse.runs import (
    SIZES,
    Curve,
    HeadLine,
    TableLine,
    Timelapse,
    changed_most,
    lapse_name,
    timelapse_run,
)

__all__ = [
    "SIZES",
    "Cloud",
    "Curve",
    "HeadLine",
    "Moment",
    "Plane",
    "TableLine",
    "Timelapse",
    "changed_most",
    "find_moment",
    "frames_around",
    "lapse_name",
    "one_plane",
    "timelapse_run",
]
