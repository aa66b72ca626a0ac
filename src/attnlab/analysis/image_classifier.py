"""What tells the classes of images: the model of a run, or several whose probabilities are averaged.

    p(c | image) = 1/M sum over models m of p_m(c | image),    p_m = softmax(logits_m / temperature_m)

An image shows D classes, one in each of its cells, row by row; one, unless it is a grid. A classifier
answers at once; encoder-decoders say one class after the other, the likeliest by the averaged
probabilities, each given what was said before. The start token is no class and is never said.

Pixels are given as they are and scaled as each of the models has learned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.devices import device_of
from attnlab.errors import RunError, brief
from attnlab.images import ImageTask, Scale, has_images, scaled
from attnlab.model import Model
from attnlab.progress import Progress, silent
from attnlab.runs import Ensemble, RunFolder
from attnlab.specs import Split

BATCH = 250

HEADLESS = "use show or project instead"
"""What to do with a model of images that has no attention."""


@dataclass(frozen=True)
class Member:
    name: str
    model: Model
    scale: Scale

    def scaled(self, pixels: UInt8[Tensor, "N *C Y X"]) -> Float[Tensor, "N *C Y X"]:
        """Images as its model takes them."""
        return scaled(pixels.to(device_of(self.model)), self.scale)

    def probabilities(self, logits: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
        """Of all that ``logits`` are of."""
        return (logits / self.model.temperature).softmax(dim=-1)


@dataclass(frozen=True)
class Images:
    pixels: UInt8[Tensor, "N *C Y X"]
    truth: Int[Tensor, "N D"]


def cut_cells(pixels: UInt8[Tensor, "N *C Y X"], task: ImageTask) -> UInt8[Tensor, "N R K *C y x"]:
    """Rows of cells of each image; nothing is copied."""
    _, height, width = task.cell_shape
    parted = pixels.reshape(*pixels.shape[:-2], task.rows, height, task.columns, width)
    return parted.movedim((-4, -2), (1, 2))


@dataclass(frozen=True)
class ImageClassifier:
    """``seed`` is that of the task's splits."""

    name: str
    task: ImageTask
    members: tuple[Member, ...]
    seed: int = 0

    @cached_property
    def images(self) -> Callable[[Split], Images]:
        """The images of a split, which are made once."""
        return cache(lambda split: Images(*self.task.pixels(split, self.seed)))

    def predict_proba(
        self, pixels: UInt8[Tensor, "N *C Y X"], *, progress: Progress = silent
    ) -> Float[Tensor, "N D V"]:
        """How probable each class is at each place of each image."""
        answer = self._at_once if self.task.start is None else self._in_turn
        parts: list[Tensor] = []
        for part in in_order(answer, torch.split(pixels, BATCH), device=self._device):
            parts.append(part)
            progress(min(BATCH * len(parts), len(pixels)), len(pixels))
        return torch.cat(parts)

    def _at_once(self, pixels: UInt8[Tensor, "B *C Y X"]) -> Float[Tensor, "B 1 V"]:
        each = [member.probabilities(member.model(member.scaled(pixels))) for member in self.members]
        return torch.stack(each).mean(dim=0)[:, None].cpu()

    def _in_turn(self, pixels: UInt8[Tensor, "B *C Y X"]) -> Float[Tensor, "B D V"]:
        assert self.task.start is not None
        steps = [member.model.begin(member.scaled(pixels)) for member in self.members]
        token = torch.full((len(pixels), 1), self.task.start, device=self._device)
        said = []
        for _ in range(self.task.target_length):
            each = [
                member.probabilities(step(token)[..., : len(self.task.classes)])
                for member, step in zip(self.members, steps, strict=True)
            ]
            said.append(torch.stack(each).mean(dim=0))
            token = said[-1].argmax(dim=-1)
        return torch.cat(said, dim=1).cpu()

    @property
    def _device(self) -> torch.device:
        return device_of(self.members[0].model)


def image_classifier(run: RunFolder) -> ImageClassifier:
    spec = run.spec()
    if not has_images(spec.task):
        raise RunError(
            f"run {run.name} does the task {brief(spec.task.kind)}; this needs a run of a task with images"
        )
    kept = run.environment().data  # the scale it learned with, also where other images are at hand now
    mean, deviation = spec.task.scale if kept is None or kept.scale is None else kept.scale
    member = Member(run.name, run.model, (mean, deviation))
    return ImageClassifier(run.name, spec.task, (member,), spec.seed)


def join_classifiers(name: str, classifiers: Sequence[ImageClassifier]) -> ImageClassifier:
    """One of all members; they must be for the same images."""
    first = classifiers[0]

    def images(task: ImageTask) -> list[object]:
        return [task.kind, *(getattr(task, name) for name in (*task.paired_by, "valid", "test"))]

    for other in classifiers[1:]:
        if images(other.task) != images(first.task):
            raise RunError(
                f"runs {first.name} and {other.name} do not read the same images; an ensemble needs runs "
                "with the same task, directory, rows, columns and number of images"
            )
    members = tuple(member for each in classifiers for member in each.members)
    return ImageClassifier(name, first.task, members, first.seed)


def open_classifier(opened: RunFolder | Ensemble) -> ImageClassifier:
    if isinstance(opened, Ensemble):
        return join_classifiers(opened.name, [image_classifier(run) for run in opened.runs()])
    return image_classifier(opened)
