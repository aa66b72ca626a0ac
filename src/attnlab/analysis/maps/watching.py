"""A model while it reads one image: every pattern, and what the patches are."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnlab.analysis.image_classifier import HEADLESS, ImageClassifier, require_images, use_instead
from attnlab.analysis.samples import Sample
from attnlab.analysis.subjects import require_attention
from attnlab.images import scaled
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.models.images import patch_grid
from attnlab.runs import Run
from attnlab.taps import record


@dataclass(frozen=True)
class Watched:
    """The image as the model got it, patterns by the path of their attention, and the digits said."""

    model: Model
    image: Float[Tensor, "*C Y X"]
    patterns: dict[str, Float[Tensor, "1 H T S"]]
    said: list[int]
    cells: tuple[int, int] = (1, 1)
    """Rows and columns of what is said."""

    def looking(self, kind: Literal["self", "cross"]) -> list[str]:
        """Attentions whose keys come from the image: of the encoder itself, or of the decoder to it."""
        sites = [site for site in self.model.sites() if site.path in self.patterns]
        return [site.path for site in sites if site.kind == kind and site.keys == "input"]

    def grid(self, keys: int) -> tuple[int, int]:
        """Rows and columns of the patches, or cells, among so many keys."""
        return patch_grid(self.image.shape[-2:], keys)

    @property
    def front(self) -> int:
        """Tokens in front of the patches."""
        sizes = [self.patterns[path].shape[-1] for path in self.looking("self")]
        return sizes[0] - math.prod(self.grid(sizes[0])) if sizes else 0


@torch.inference_mode()
def watch(reader: ImageClassifier, sample: Sample) -> Watched:
    """Look at the one model of ``reader`` while it says what it reads in ``sample``."""
    (member,) = reader.members
    image = scaled(sample.pixels[None], member.scale)
    fed = (
        [torch.tensor([[reader.task.start, *sample.answer[:-1]]])] if reader.task.start is not None else []
    )
    with record(member.model, "*.pattern") as seen:
        member.model(image, *fed)
    found = {path: seen[f"{path}.pattern"] for path in attentions(member.model)}
    cells = reader.task.rows, reader.task.columns
    return Watched(member.model, image[0], found, sample.answer, cells)


def maps_reader(run: Run) -> ImageClassifier:
    """The model of ``run``; runs that read text and models without heads are refused."""
    because = "there is no image to draw a map over"
    reader = require_images(run, because=because, instead=["patterns"])
    require_attention(reader.members[0].model, instead=use_instead(run, HEADLESS))
    return reader
