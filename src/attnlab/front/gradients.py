"""The check of hand-written gradients by plain numbers; not public."""

from typing import TYPE_CHECKING

from attnlab.lazy import Later
from attnlab.specs import PatchAttentionModel, SinusoidalStart, require
from attnlab.specs.models import require_patch

if TYPE_CHECKING:
    from attnlab.analysis import gradients
    from attnlab.analysis.gradients import GradientCheck
else:
    gradients = Later("attnlab.analysis.gradients")

SIDE = 28
"""Pixels along each side of the images."""


def gradcheck(
    *,
    width: int = 16,
    hidden: int = 32,
    patch: int = 4,
    batch: int = 5,
    threads: int = 2,
    entries: int = 200,
    seed: int = 0,
) -> "GradientCheck":
    """Compare the hand-written gradients of patch attention with autograd and with central differences, for
    which ``entries`` weights of each tensor are moved.
    """
    for name, value in (("batch", batch), ("threads", threads), ("entries", entries)):
        require(value >= 1, name, value, "at least 1")
    positions = SinusoidalStart() if width % 2 == 0 else PatchAttentionModel().positions
    spec = PatchAttentionModel(width=width, hidden=hidden, patch=patch, positions=positions)
    require_patch(patch, SIDE, SIDE)
    return gradients.check_gradients(spec, batch=batch, seed=seed, entries=entries, threads=threads)
