"""Projections: what a model makes of many digits as points in a plane, and how far to trust it."""

from attnlab.analysis.projections.points import Points, collect, default_tap
from attnlab.analysis.projections.projecting import METHODS, Method, Projected, project
from attnlab.analysis.projections.runs import project_run
from attnlab.analysis.projections.scores import purity, scores

__all__ = [
    "METHODS",
    "Method",
    "Points",
    "Projected",
    "collect",
    "default_tap",
    "project",
    "project_run",
    "purity",
    "scores",
]
