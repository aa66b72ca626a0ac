"""Whoever reads digits from images: the model of a run, or several whose probabilities are averaged.

    p(d | image) = 1/M sum over models m of p_m(d | image)

An image holds D digits, left to right and top to bottom in a grid of rows and columns; one in the task
digits. Readers are given pixels as they are and scale them as each of their models has learned.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from attnlab.analysis.decoding import Progress, silent
from attnlab.runs import Run, load_digits
from attnlab.tasks import Digits
from attnlab.tasks.digits import CLASSES, Scale, scaled
from attnlab.tasks.examples import Split

BATCH = 500

ImageTask = Digits
"""Tasks whose examples are images of digits."""


@dataclass(frozen=True)
class Member:
    """A model, and the scale of its pixels."""

    name: str
    model: nn.Module
    scale: Scale


@dataclass(frozen=True)
class Reader:
    """``seed`` is that of the task's splits."""

    name: str
    task: ImageTask
    members: tuple[Member, ...]
    seed: int = 0

    @property
    def rows(self) -> int:
        return 1

    @property
    def columns(self) -> int:
        return 1


@dataclass(frozen=True)
class Images:
    """Images with the digits they show."""

    pixels: UInt8[Tensor, "N R C"]
    truth: Int[Tensor, "N D"]


def run_reader(run: Run) -> Reader:
    """The model of a run that reads digits."""
    task, model = load_digits(run)
    return Reader(run.name, task, (Member(run.name, model, learned_scale(run, task)),), run.spec().seed)


def learned_scale(run: Run, task: ImageTask) -> Scale:
    """The scale that a run learned with, also where other images are at hand now."""
    kept = run.environment().get("data", {}).get("scale")
    return task.scale if kept is None else (float(kept[0]), float(kept[1]))


def images_of(reader: Reader, split: Split) -> Images:
    """The images of a split."""
    pixels, labels = reader.task.pixels(split)
    return Images(pixels, labels.long()[:, None])


@torch.inference_mode()
def chances(
    reader: Reader, pixels: UInt8[Tensor, "N R C"], *, progress: Progress = silent
) -> Float[Tensor, "N D 10"]:
    """How probable each digit is at each place of each image."""
    parts = []
    for start in range(0, len(pixels), BATCH):
        parts.append(_averaged(reader, pixels[start : start + BATCH]))
        progress(min(start + BATCH, len(pixels)), len(pixels))
    return torch.cat(parts) if parts else torch.empty(0, reader.rows * reader.columns, CLASSES)


def _averaged(reader: Reader, pixels: UInt8[Tensor, "B R C"]) -> Float[Tensor, "B D 10"]:
    each = [member.model(scaled(pixels, member.scale)).softmax(dim=-1) for member in reader.members]
    return torch.stack(each).mean(dim=0)[:, None]
