"""Projections: what a model makes of many digits as points in a plane, and how far to trust it."""

from attnlab.analysis.projections.names import module_names, short_names, tap_path
from attnlab.analysis.projections.points import Points, collect
from attnlab.analysis.projections.projecting import METHODS, Projected, project
from attnlab.analysis.projections.runs import project_run
from attnlab.analysis.projections.scores import purity, scores

__all__ = [
    "METHODS",
    "Points",
    "Projected",
    "collect",
    "module_names",
    "project",
    "project_run",
    "purity",
    "scores",
    "short_names",
    "tap_path",
]
