"""The same image a pixel up, down and to the sides: what the average over these views would add.

    p(d | image) = 1/V sum over views v of p(d | image moved by v)

with v = (0, 0) first, then its four neighbours, then the four corners. Pixels that move in are 0. This
costs V passes and is no property of the model alone: it is told beside its accuracy, never in its place.
"""

from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from attnlab.analysis.calibration import calibrate, log_loss
from attnlab.analysis.evaluate import share
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.limits import check_views
from attnlab.progress import Progress, silent
from attnlab.spec import Split

MOVES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))


def measure_views(
    reader: ImageClassifier, split: Split, views: int, *, progress: Progress = silent
) -> dict[str, Any]:
    """How good the average over so many views is."""
    check_views(views)
    images = reader.images(split)
    said = chances_over_views(reader, images.pixels, views, progress=progress)
    right = (said.argmax(dim=-1) == images.truth).all(dim=1)
    return {
        "views": views,
        **share("exact_match", right),
        "loss": log_loss(said, images.truth),
        "ece": calibrate(said, images.truth)["ece"],
    }


def chances_over_views(
    reader: ImageClassifier, pixels: UInt8[Tensor, "N *C Y X"], views: int, *, progress: Progress = silent
) -> Float[Tensor, "N D V"]:
    """How probable each digit is at each place, on average over views."""
    total = torch.zeros(())
    for place, move in enumerate(MOVES[:views]):
        total = total + reader.predict_proba(moved(pixels, *move))
        progress(place + 1, views)
    return total / views


def moved(pixels: UInt8[Tensor, "N *C Y X"], down: int, right: int) -> UInt8[Tensor, "N *C Y X"]:
    """Images moved by whole pixels."""
    found = torch.zeros_like(pixels)
    rows, columns = pixels.shape[-2:]
    into = (slice(max(0, down), rows + min(0, down)), slice(max(0, right), columns + min(0, right)))
    out = (slice(max(0, -down), rows - max(0, down)), slice(max(0, -right), columns - max(0, right)))
    found[..., *into] = pixels[..., *out]
    return found
