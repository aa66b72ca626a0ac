"""Projections: what a model makes of many examples, as points in a plane, and how far to trust it."""

from attnlab.analysis.project.names import module_names, short_names, tap_path
from attnlab.analysis.project.points import Points, collect
from attnlab.analysis.project.projecting import METHODS, Projected, project
from attnlab.analysis.project.runs import Projection, project_run
from attnlab.analysis.project.scores import Scores, purity, scores

__all__ = [
    "METHODS",
    "Points",
    "Projected",
    "Projection",
    "Scores",
    "collect",
    "module_names",
    "project",
    "project_run",
    "purity",
    "scores",
    "short_names",
    "tap_path",
]
