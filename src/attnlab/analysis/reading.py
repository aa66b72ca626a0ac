"""Whoever reads digits from images: the model of a run, or several whose probabilities are averaged.

    p(d | image) = 1/M sum over models m of p_m(d | image)

An image holds D digits, left to right and top to bottom in a grid of rows and columns; one in the task
digits. A classifier answers at once; encoder-decoders say one digit after the other, the likeliest by the
averaged probabilities, each given what was said before. The start token is no digit and is never said.

Readers are given pixels as they are and scale them as each of their models has learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.parallel import in_order
from attnlab.errors import InputError, RunError
from attnlab.model import Model
from attnlab.models import Seq2Seq
from attnlab.problems.digits import Digits
from attnlab.problems.digits.pixels import scaled
from attnlab.problems.digits.task import CLASSES, Scale
from attnlab.problems.grids import Grids
from attnlab.problems.grids.task import START
from attnlab.progress import Progress, silent
from attnlab.runs import Ensemble, Run, load_digits, load_grids
from attnlab.runs.weights import other_task
from attnlab.spec import Split

BATCH = 250

ImageTask = Digits | Grids
"""Tasks whose examples are images of digits."""
HEADLESS = ("show", "project")
"""Commands for models that read images and need have no attention."""


@dataclass(frozen=True)
class Member:
    """A model, and the scale of its pixels."""

    name: str
    model: Model
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
        return self.task.rows if isinstance(self.task, Grids) else 1

    @property
    def columns(self) -> int:
        return self.task.columns if isinstance(self.task, Grids) else 1


@dataclass(frozen=True)
class Images:
    """Images with the digits they show."""

    pixels: UInt8[Tensor, "N R C"]
    truth: Int[Tensor, "N D"]


def run_reader(run: Run) -> Reader:
    """The model of a run that reads digits, one or a grid of them."""
    spec = run.spec()
    if not isinstance(spec.task, Digits | Grids):
        raise other_task(run, Digits.kind, Grids.kind)
    task, model = load_grids(run) if isinstance(spec.task, Grids) else load_digits(run)
    return Reader(run.name, task, (Member(run.name, model, learned_scale(run, task)),), spec.seed)


def image_reader(run: Run, *, because: str, instead: Sequence[str]) -> Reader:
    """The model of ``run``; one that reads text is refused, with the commands to use ``instead``."""
    task = run.spec().task
    if not task.images:
        use = use_instead(run, instead)
        raise InputError(f"run {run.name} reads text (task {task.kind}), so {because}; {use}")
    return run_reader(run)


def use_instead(run: Run, commands: Sequence[str]) -> str:
    """The end of a refusal: commands that can do something with ``run``."""
    named = " or ".join(f"'attnlab {command} {run.called}'" for command in commands)
    return f"use {named} instead"


def join_readers(name: str, readers: Sequence[Reader]) -> Reader:
    """One reader of all members; they must read the same images."""
    first = readers[0]
    for other in readers[1:]:
        if _images(other) != _images(first):
            raise RunError(
                f"runs {first.name} and {other.name} do not read the same images; an ensemble needs runs "
                "with the same task, directory, rows, columns and number of images"
            )
    return Reader(name, first.task, tuple(m for reader in readers for m in reader.members), first.seed)


def _images(reader: Reader) -> tuple[object, ...]:
    task = reader.task
    return type(task), reader.rows, reader.columns, task.directory, task.valid, task.test


def ensemble_reader(ensemble: Ensemble) -> Reader:
    """The models of an ensemble."""
    return join_readers(ensemble.name, [run_reader(run) for run in ensemble.runs()])


def open_reader(opened: Run | Ensemble) -> Reader:
    """The models of a run or an ensemble."""
    return ensemble_reader(opened) if isinstance(opened, Ensemble) else run_reader(opened)


def learned_scale(run: Run, task: ImageTask) -> Scale:
    """The scale that a run learned with, also where other images are at hand now."""
    kept = run.environment().get("data", {}).get("scale")
    return task.scale if kept is None else (float(kept[0]), float(kept[1]))


def images_of(reader: Reader, split: Split) -> Images:
    """The images of a split."""
    if isinstance(reader.task, Grids):
        return Images(*reader.task.pixels(split, reader.seed))
    pixels, labels = reader.task.pixels(split)
    return Images(pixels, labels.long()[:, None])


def chances(
    reader: Reader, pixels: UInt8[Tensor, "N R C"], *, progress: Progress = silent
) -> Float[Tensor, "N D 10"]:
    """How probable each digit is at each place of each image."""

    def answer(part: Tensor) -> Tensor:
        return _spoken(reader, part) if isinstance(reader.task, Grids) else _averaged(reader, part)

    parts: list[Tensor] = []
    for part in in_order(answer, torch.split(pixels, BATCH)):
        parts.append(part)
        progress(min(BATCH * len(parts), len(pixels)), len(pixels))
    return torch.cat(parts)


def _averaged(reader: Reader, pixels: UInt8[Tensor, "B R C"]) -> Float[Tensor, "B 1 10"]:
    each = [member.model(scaled(pixels, member.scale)).softmax(dim=-1) for member in reader.members]
    return torch.stack(each).mean(dim=0)[:, None]


def _spoken(reader: Reader, pixels: UInt8[Tensor, "B R C"]) -> Float[Tensor, "B D 10"]:
    speaking = [
        (member.model, member.model.open_caches(member.model.encode(scaled(pixels, member.scale))))
        for member in reader.members
        if isinstance(member.model, Seq2Seq)
    ]
    token = torch.full((len(pixels), 1), START)
    said = []
    for place in range(reader.rows * reader.columns):
        each = [
            model.step(token, cache, place=place)[..., :CLASSES].softmax(dim=-1)
            for model, cache in speaking
        ]
        said.append(torch.stack(each).mean(dim=0))
        token = said[-1].argmax(dim=-1)
    return torch.cat(said, dim=1)
