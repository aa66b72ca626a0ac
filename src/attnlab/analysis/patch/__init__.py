"""Patching: values of one run put into another, and what they bring with them."""

from attnlab.analysis.patch.carriers import find_carriers
from attnlab.analysis.patch.grids import grids, measure_grids
from attnlab.analysis.patch.runs import Patching, Site, head_site

__all__ = ["Patching", "Site", "find_carriers", "grids", "head_site", "measure_grids"]
