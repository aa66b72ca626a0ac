"""What analyses can be asked for: choices by name, and defaults.

Nothing here computes, so a command can tell what it takes before torch is loaded.
"""

from typing import Literal

Analysis = str
"""An analysis by the name under which a run keeps it."""

BaselineName = Literal["zero", "mean", "resample", "optimal"]
"""What takes the place of a head's z when the head is taken out."""

PruningMethod = Literal["greedy", "gates"]
Repair = Literal["refit", "optimal", "mean"]
"""What makes up for removed heads: maps fitted anew, or only constants in place of z."""

MapView = Literal["received", "sent", "cls", "digits", "rollout"]
MapHeads = Literal["each", "mean", "max"]
MapScale = Literal["fixed", "map"]

ProjectionMethod = Literal["tsne", "pca-hdbscan", "pca-kmeans", "umap"]
