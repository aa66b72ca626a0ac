"""Patching: values of one run put into another, and what they bring with them."""

from attnlab.analysis.patching.carriers import Carriers, find_carriers
from attnlab.analysis.patching.grids import Grid, grids, measure_grids
from attnlab.analysis.patching.runs import Patching
from attnlab.analysis.patching.shares import Share
from attnlab.analysis.patching.sites import Site, head_site

__all__ = [
    "Carriers",
    "Grid",
    "Patching",
    "Share",
    "Site",
    "find_carriers",
    "grids",
    "head_site",
    "measure_grids",
]
