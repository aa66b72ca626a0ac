"""Time-lapse: how a model came to be what it is, from weights that its run kept on the way."""

from attnlab.analysis.timelapse.moments import LEAST, SHARE, SPAN, Moment, find_moment, frames_around
from attnlab.analysis.timelapse.planes import Cloud, one_plane
from attnlab.analysis.timelapse.runs import changed_most, timelapse_run

__all__ = [
    "LEAST",
    "SHARE",
    "SPAN",
    "Cloud",
    "Moment",
    "changed_most",
    "find_moment",
    "frames_around",
    "one_plane",
    "timelapse_run",
]
