"""Time-lapse: how a model came to be what it is, from weights that its run kept on the way."""

from attnlab.analysis.timelapse.moments import LEAST, SHARE, SPAN, Moment, find_moment, frames_around
from attnlab.analysis.timelapse.planes import Cloud, one_plane
from attnlab.analysis.timelapse.runs import SIZES, changed_most, lapse_name, timelapse_run

__all__ = [
    "LEAST",
    "SHARE",
    "SIZES",
    "SPAN",
    "Cloud",
    "Moment",
    "changed_most",
    "find_moment",
    "frames_around",
    "lapse_name",
    "one_plane",
    "timelapse_run",
]
