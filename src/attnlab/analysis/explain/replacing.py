"""What takes the place of parts that are taken away.

    zero       nothing: pixels without ink, a vector of zeros
    mean       the mean of the parts of training examples at the same place
    resample   the parts of another training example at the same places, several times over
    repeat     of a list, instead of resampling: the part before, or the first that is left; a number drawn
               at random would be out of order, and a repeated one never is

Where inputs differ in length, the mean is that of all places. Zero and the mean are inputs that the model
may never have met, so an answer can change for that alone (Hooker et al., 2019); resampled parts are real,
but bring news of their own.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from attnlab.analysis.ablate import Baseline, mean_baseline
from attnlab.analysis.explain.questions import Space
from attnlab.analysis.explain.results import Replacement
from attnlab.examples import Examples
from attnlab.model import Model

Real = Literal["resample", "repeat"]


@dataclass(frozen=True)
class Background:
    """Parts of training examples, (N, 1, F) if places do not matter, and the mean z of every head.

    ``real`` is the replacement that leaves inputs as the model knows them; parts are occluded by it.
    """

    parts: Float[Tensor, "N S F"]
    empty: float
    heads: Baseline
    real: Real

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        return ("zero", "mean", self.real)

    def mean(self, size: int) -> Float[Tensor, "S F"]:
        """The mean part of each place."""
        return self.parts.mean(dim=0).expand(size, -1)

    def replaced(
        self,
        replacement: Replacement,
        parts: Float[Tensor, "S F"],
        away: Bool[Tensor, "N S"],
        *,
        draws: int = 1,
        seed: int = 0,
    ) -> Float[Tensor, "R N S F"]:
        """The input without the parts that are ``away``, N times, each once or ``draws`` times over."""
        match replacement:
            case "zero":
                values = torch.full_like(parts, self.empty)[None]
            case "mean":
                values = self.mean(len(parts))[None]
            case "resample":
                generator = Generator().manual_seed(seed)
                values = self.parts[torch.randint(len(self.parts), (draws,), generator=generator)]
            case "repeat":
                return parts[kept_before(away)][None]
        return torch.where(away[..., None], values[:, None], parts)


def kept_before(away: Bool[Tensor, "N S"]) -> Int[Tensor, "N S"]:
    """The nearest place at or before each that is not ``away``; where there is none, the first such."""
    places = torch.arange(away.shape[1]).expand_as(away)
    last = places.masked_fill(away, -1).cummax(dim=1).values
    first = (~away).long().argmax(dim=1, keepdim=True)
    return torch.where(last < 0, first, last)


@torch.no_grad()
def make_background(
    model: Model, space: Space, training: Examples, *, own: Bool[Tensor, "N S"] | None = None
) -> Background:
    """Of training examples; ``own`` is true where there is no padding, for lists of different lengths."""
    parts = space.parts(model, training.inputs[0])
    heads = mean_baseline(model, training, by_place=own is None)
    if own is None:
        return Background(parts, space.empty, heads, "resample")
    return Background(parts[own][:, None], space.empty, heads, "repeat")
