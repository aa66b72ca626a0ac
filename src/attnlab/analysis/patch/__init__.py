"""Patching: values of one run put into another, and what they bring with them."""

from attnlab.analysis.patch.carriers import Carriers, find_carriers
from attnlab.analysis.patch.contrasts import PatchResult, patch_run
from attnlab.analysis.patch.grids import Grid, grids, measure_grids
from attnlab.analysis.patch.runs import Patching, Share, Site, head_site

__all__ = [
    "Carriers",
    "Grid",
    "PatchResult",
    "Patching",
    "Share",
    "Site",
    "find_carriers",
    "grids",
    "head_site",
    "measure_grids",
    "patch_run",
]
