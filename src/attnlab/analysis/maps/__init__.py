"""Maps of attention over images: what each patch gets."""

from attnlab.analysis.maps.patch_map import PatchMap, entropy, share_of_cell
from attnlab.analysis.maps.places import patch_place
from attnlab.analysis.maps.views import default_view, maps_of
from attnlab.analysis.maps.watching import Watched, maps_reader, watch

__all__ = [
    "PatchMap",
    "Watched",
    "default_view",
    "entropy",
    "maps_of",
    "maps_reader",
    "patch_place",
    "share_of_cell",
    "watch",
]
