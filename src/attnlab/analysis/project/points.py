"""Short names of places in a model, the same for every model that has them.

    patches    tokens before any block: the patches of an image, or what stands for tokens of text
    block:n    tokens after block n of the encoder, from 0 on
    read       what the readout sees, or nearly so

Any tap and any module goes by its path as well.

Vectors to project: the value at any tap, or what any module gives, for many examples.

The value is (B, D), one vector an image, or (B, T, D), one for each token; taps inside heads, (B, H, T, K),
are read with the heads side by side. Tokens are patches, with or without one in front, or digits (cells of
a grid, what a decoder says). Of patches a point is

    digit    the mean over the patches of a digit
    all      each patch
    cls      the token in front
    3,2      the patch in row 3 and column 2 of a digit

Of tokens a point is what stands for an answer: the class, or one token of a sequence. A decoder is fed
the true answer.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.image_classifier import BATCH, ImageClassifier, cut_cells, image_classifier
from attnlab.analysis.maps import patch_place
from attnlab.devices import to_device_of
from attnlab.errors import InputError, LabError, brief, nearest
from attnlab.images import ImageTask, has_images
from attnlab.model import Model
from attnlab.models.images import patch_grid
from attnlab.progress import Progress, silent
from attnlab.results import Result, Row
from attnlab.runs import RunFolder
from attnlab.sets import Examples, one_example, shifted
from attnlab.specs import Split, Task
from attnlab.taps import record, taps

_BLOCK = re.compile(r"encoder\.\d+\.feed_residual\.out")


def short_names(model: Model) -> dict[str, str]:
    """Paths by their short names, as far as the model has such a place."""
    found = {"read": model.read_path} if model.read_path else {}
    if model.input_path is not None:
        found["patches"] = model.input_path
    blocks = [path for path in taps(model) if _BLOCK.fullmatch(path)]
    return found | {f"block:{layer}": path for layer, path in enumerate(blocks)}


def module_names(model: Model) -> list[str]:
    return [path for path, _ in model.named_modules() if path]


@dataclass(frozen=True, kw_only=True)
class TapNames(Result):
    """What a tap of a run can be called: short names with the paths that they stand for, and all paths."""

    shown_by: ClassVar[str] = "attnlab.tables.taps"

    run: str
    short: dict[str, str]
    paths: list[str]

    def records(self) -> list[Row]:
        """A row for each path."""
        names = {path: name for name, path in self.short.items()}
        return [{"path": path, "short": names.get(path, "")} for path in self.paths]


def tap_names(run: RunFolder) -> TapNames:
    return TapNames(run=run.name, short=short_names(run.model), paths=module_names(run.model))


def tap_path(model: Model, name: str) -> str:
    """The path that ``name`` means: a short name, or a path itself; without one, what the readout sees."""
    short, paths = short_names(model), module_names(model)
    path = short.get(name or "read", name)
    if path not in paths:
        blocks = [each for each in short if each.startswith("block:")]  # the last tells how many there are
        first = [*(each for each in ("patches", "read") if each in short), *blocks[-1:]]
        told = nearest(name, [*short, *paths], first=first, command="tap list")
        raise LabError(f"the model {type(model).__name__} has no tap or module {brief(name)}{told}")
    return path


@dataclass(frozen=True)
class Points:
    """Vectors, each of one digit or answer: ``labels`` says which, ``image`` where it is among ``names``
    and ``pixels``, of which there are none for tokens.

    ``patch`` is the patch's number within its digit, row by row, where a point is a patch; -1 elsewhere.
    ``side`` is the number of patches along a digit, ``tokens`` that of the tap's tokens for a digit.
    """

    vectors: Float[Tensor, "N D"]
    labels: Int[Tensor, "N"]
    image: Int[Tensor, "N"]
    patch: Int[Tensor, "N"]
    side: int
    pixels: UInt8[Tensor, "M *C y x"] | None
    names: list[str]
    tokens: int

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, order: Int[Tensor, "K"]) -> "Points":
        """Only these points, and only the digits that they are of."""
        images, image = torch.unique(self.image[order], return_inverse=True)
        return replace(
            self,
            vectors=self.vectors[order],
            labels=self.labels[order],
            image=image,
            patch=self.patch[order],
            pixels=None if self.pixels is None else self.pixels[images],
            names=[self.names[place] for place in images.tolist()],
        )


def collect_points(
    run: RunFolder,
    model: Model,
    tap: str,
    *,
    token: str = "digit",
    samples: int = 1000,
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> Points:
    """``samples`` points at ``tap``, of the run's task, whatever it is, and of ``model``."""
    spec = run.spec()
    if not has_images(spec.task):
        if token != "digit":
            raise InputError(
                f"token is {brief(token)}, but only runs that read images have patches to choose from"
            )
        examples = spec.task.splits(spec.seed)[split]
        order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
        return collect_answers(spec.task, model, examples, tap, order=order, samples=samples)
    classifier = image_classifier(run)
    (member,) = classifier.members
    classifier = replace(classifier, members=(replace(member, model=model),))
    return collect(classifier, tap, token=token, samples=samples, split=split, seed=seed, progress=progress)


def collect_answers(
    task: Task, model: Model, examples: Examples, tap: str, *, order: Int[Tensor, "N"], samples: int
) -> Points:
    """Tokens that stand for an answer each: in a decoder, or one vector for all of an input."""
    path, labelled = tap_path(model, tap), len(task.labels())
    first = examples[order[:1]].targets
    chosen = order[: math.ceil(samples / int((first < labelled).sum()))]
    part = examples[chosen]
    value = value_at(model, path, list(part.inputs), len(part))
    if value.shape[1] != first.numel() or (model.decodes and model.side(path) == "input"):
        raise InputError(
            f"tap is {brief(path)}, whose tokens are no answers that points could be labelled by; "
            f"choose one that has a vector for each answer, such as {tap_path(model, 'read')}"
        )
    labels = part.targets.flatten()
    known = (labels < labelled).nonzero().flatten()[:samples]  # the end of an answer has no label
    shown = [task.show(one_example(examples, number, task.padding)).name for number in chosen.tolist()]
    if first.numel() > 1:
        shown = [f"{name}, {place}" for name in shown for place in task.places()]
    return Points(
        value.flatten(0, 1)[known], labels[known], known, torch.full_like(known, -1), 1, None, shown, 1
    )


def collect(
    reader: ImageClassifier,
    tap: str,
    *,
    token: str = "digit",
    samples: int = 1000,
    split: Split = "test",
    seed: int = 0,
    progress: Progress = silent,
) -> Points:
    """``samples`` points at ``tap``, a path or a short name, of images that ``seed`` draws from a split."""
    (member,), task = reader.members, reader.task
    path = tap_path(member.model, tap)
    found, chance = reader.images(split), torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(found.truth), generator=chance)[: math.ceil(samples / task.cells)]
    parts: list[Tensor] = []
    tokens, done = 1, 0
    for part in torch.split(chosen, BATCH):
        inputs = [member.scaled(found.pixels[part])]
        if task.start is not None:
            inputs.append(shifted(found.truth[part], task.start))
        value = value_at(member.model, path, inputs, len(part))
        tokens, done = value.shape[1] // task.cells, done + len(part)
        parts.append(_by_digit(value, task, token, path))
        progress(done, len(chosen))
    vectors = torch.cat(parts)  # (B, C, P, D)
    places = vectors.shape[2]
    order = torch.randperm(math.prod(vectors.shape[:3]), generator=chance)[:samples].sort().values
    cells = [""] if task.cells == 1 else [f", cell {cell}" for cell in task.places()]
    return Points(
        vectors.flatten(0, 2)[order],
        found.truth[chosen].flatten()[order // places],
        order // places,
        order % places if places > 1 else torch.full_like(order, -1),
        patch_grid(task.cell_shape, places)[1],
        cut_cells(found.pixels[chosen], task).flatten(0, 2),
        [f"{split}:{place}{cell}" for place in chosen.tolist() for cell in cells],
        tokens,
    )


@torch.inference_mode()
def value_at(model: Model, name: str, inputs: list[Tensor], count: int) -> Float[Tensor, "B T D"]:
    """The value at a tap, or what a module gives, by its path, with one token where it has none; on the
    CPU.
    """
    there = to_device_of(model, *inputs)
    if name in taps(model):
        with record(model, name) as seen:
            model(*there)
        value = seen[name].cpu()
        value = value.transpose(1, 2).flatten(2) if value.dim() == 4 else value
    else:
        given: list[object] = []
        module = model.get_submodule(name)
        handle = module.register_forward_hook(lambda module, inputs, value: given.append(value))
        try:
            model(*there)
        finally:
            handle.remove()
        if len(given) != 1 or not isinstance(given[0], Tensor):
            raise LabError(
                f"module {brief(name)} does not give one tensor in a pass; choose a part of it, or a tap"
            )
        value = (given[0].flatten(1) if given[0].dim() > 3 else given[0]).cpu()
    if value.dim() < 2 or value.shape[0] != count:
        raise LabError(f"{brief(name)} has no value of its own for each image; choose a tap behind it")
    return value[:, None] if value.dim() == 2 else value


def _by_digit(
    value: Float[Tensor, "B T D"], task: ImageTask, token: str, tap: str
) -> Float[Tensor, "B C P D"]:
    """The tokens that are asked for, by the digit that they belong to."""
    rows, columns, tokens = task.rows, task.columns, value.shape[1]
    if tokens == rows * columns:
        if token not in ("digit", "all"):
            raise InputError(f"token is {brief(token)}, but {tap} has one token a digit; use digit")
        return value[:, :, None]
    high, wide = patch_grid(task.image_shape, tokens)
    front = tokens - high * wide
    if front > 1 or high * wide < rows * columns:
        raise InputError(
            f"{tap} has {tokens} tokens, which are no patches of an image of {rows} x {columns} digits"
        )
    if token == "cls":
        if not front or rows * columns > 1:
            raise InputError(
                f"token is 'cls', but {tap} has no token in front of its patches; use digit or all"
            )
        return value[:, :1, None]
    side, across = high // rows, wide // columns
    cells = value[:, front:].reshape(len(value), rows, side, columns, across, -1).transpose(2, 3)
    patches = cells.flatten(3, 4).flatten(1, 2)  # (B, C, P, D)
    match token:
        case "digit":
            return patches.mean(dim=2, keepdim=True)
        case "all":
            return patches
    place = patch_place(token, side, across)
    if place is None:
        rule = f"digit, all, cls, or a row and a column from 0,0 to {side - 1},{across - 1}"
        raise InputError(f"token is {brief(token)}; it must be {rule}")
    return patches[:, :, place[0] * across + place[1]][:, :, None]
