"""What analyses can be asked for: choices by name, and defaults.

Nothing here computes, so a command can tell what it takes before torch is loaded.

What analyses refuse by looking at what is asked alone, before anything is loaded.
"""

from typing import Literal

from attnlab.errors import InputError, brief
from attnlab.specs import Split

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
SURE = 0.7
"""The least probability of a class for which it is the answer; below, pictures are answered "not sure"."""
VIEWS = (1, 5, 9)
"""Views of an image: itself, with its four neighbours, with the four corners too."""


def check_views(views: int) -> None:
    """Refuse a number of views that would favour a side."""
    if views not in VIEWS:
        raise InputError(f"views is {views}; it must be {', '.join(map(str, VIEWS[:-1]))} or {VIEWS[-1]}")


def check_sure(sure: float) -> None:
    """Refuse what is no probability."""
    if not 0 <= sure <= 1:
        raise InputError(f"sure is {sure:g}; it must lie between 0, which always answers, and 1")


def check_explained(text: str, many: int, split: Split) -> None:
    """Refuse anything but one input, or a number of inputs of a split."""
    if text and many:
        raise InputError(f"the input is {brief(text)} and many is {many}; give one of the two")
    if not text and not many:
        raise InputError("explain takes one input such as 374+814 or test:7, or many, a number of inputs")
    if text and split != "test":
        raise InputError(
            f"split is {brief(split)}, but the input is named; many inputs are drawn from a split"
        )


def check_pruned(keep: int | None, loss: float | None, finetune: int = 0) -> None:
    """Refuse anything but a number of heads or what may be lost, and fewer than no steps of training."""
    if (keep is None) == (loss is None):
        raise InputError(
            "give either keep, how many heads to keep, or loss, how much accuracy may be lost, such as 0.01"
        )
    if loss is not None and not 0 < loss < 1:
        raise InputError(f"loss is {loss}; it must lie between 0 and 1, as 0.01 for one point in a hundred")
    if finetune < 0:
        raise InputError(f"finetune is {finetune}; it must be at least 0")


def check_mapped(named: bool, samples: int, split: Split) -> None:
    """Refuse images that are named and taken from a split."""
    given = [f"samples is {samples}"] if samples != 1 else []
    given += [f"split is {split!r}"] if split != "test" else []
    if named and given:
        raise InputError(f"{' and '.join(given)}, but the images are named; give one of the two")
    if samples < 1:
        raise InputError(f"samples is {samples}; it must be at least 1")


def check_map(view: MapView, heads: str, layer: int | None, head: str, patch: str) -> None:
    """Refuse what would change nothing in a map."""
    if patch and view != "sent":
        raise InputError(f"patch is {brief(patch)}, but the view is {view}; a patch sends in the view sent")
    if head and layer is not None:
        raise InputError(f"head is {head} and layer is {layer}; give one of the two")
    if head and heads != "auto":
        raise InputError(f"head is {head} and heads is {heads}; give one of the two")
    if view == "rollout" and (head or layer is not None or heads in ("each", "max")):
        raise InputError(
            "view is rollout, which goes through all layers and the mean of their heads; leave layer, head "
            "and heads out"
        )
