"""What analyses can be asked for: choices by name, and defaults.

Nothing here computes, so a command can tell what it takes before torch is loaded.

What analyses refuse by looking at what is asked alone, before anything is loaded.
"""

from typing import Literal

from attnlab.errors import InputError

BaselineName = Literal["zero", "mean", "resample", "optimal"]
"""What takes the place of a head's z when the head is taken out."""

PruningMethod = Literal["greedy", "gates"]
Repair = Literal["refit", "optimal", "mean"]
"""What makes up for removed heads: maps fitted anew, or only constants in place of z."""

MapView = Literal["received", "sent", "cls", "digits", "rollout"]
MapHeads = Literal["each", "mean", "max"]
MapScale = Literal["fixed", "map"]

ProjectionMethod = Literal["tsne", "pca-hdbscan", "pca-kmeans", "umap"]

SAMPLES = 1000
"""Examples on which pages measure heads and projections, unless others are asked for."""
VIEWS = (1, 5, 9)
"""Views of an image: itself, with its four neighbours, with the four corners too."""


def check_views(views: int) -> None:
    """Refuse a number of views that would favour a side."""
    if views not in VIEWS:
        raise InputError(f"views is {views}; it must be {', '.join(map(str, VIEWS[:-1]))} or {VIEWS[-1]}")
