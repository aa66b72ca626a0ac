"""A small set of images that a small model can learn: a square of noise whose place tells the class."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.data.idx import write_images, write_labels
from attnlab.data.mnist_files import TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS
from attnlab.models import build_for
from attnlab.presets import preset
from attnlab.problems.digits import Digits
from attnlab.problems.grids import Grids
from attnlab.runs import RunFolder, create_run, save_weights
from attnlab.specs import ModelSpec, PatchSeq2SeqModel, Spec, VitModel

TRAIN, TEST = 200, 61

VIT = VitModel(patch=7, width=12, heads=3, hidden=5, layers=2, pooling="cls")
"""A transformer over 4 x 4 patches with a token in front of them."""


def squares(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images (N, 28, 28) and classes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    images = torch.randint(0, 40, (count, 28, 28), generator=generator)
    for image, label in zip(images, labels.tolist(), strict=True):
        row, column = 4 + 9 * (label // 4), 1 + 7 * (label % 4)
        image[row : row + 6, column : column + 6] += 200
    return images.to(torch.uint8), labels.to(torch.uint8)


def write_squares(folder: Path, *, train: int = TRAIN) -> Path:
    """The set as four IDX files in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for count, seed, images_file, labels_file in (
        (train, 1, TRAIN_IMAGES, TRAIN_LABELS),
        (TEST, 2, TEST_IMAGES, TEST_LABELS),
    ):
        images, labels = squares(count, seed)
        (folder / images_file).write_bytes(write_images(images))
        (folder / labels_file).write_bytes(write_labels(labels))
    return folder


def squares_spec(folder: Path, **training: Any) -> Spec:
    """The patch attention preset on that set, with one thread and some training settings."""
    base = preset("digits", "patch-attention")
    settings = {"epochs": 3, "threads": 1, "lr": 0.1, **training}
    return replace(base, task=Digits(directory=str(folder)), training=replace(base.training, **settings))


def untrained_digits(folder: Path, model: ModelSpec | None = None) -> RunFolder:
    """A run on that set in ``folder``, with its first weights."""
    spec = squares_spec(write_squares(folder / "squares"))
    spec = spec if model is None else replace(spec, model=model)
    return untrained(folder / spec.model.kind, spec)


def untrained_grids(folder: Path, model: PatchSeq2SeqModel, *, test: int, name: str = "grid") -> RunFolder:
    """A run on grids of that set in ``folder``, with its first weights and so many test grids."""
    squares = write_squares(folder / "squares")
    task = Grids(
        rows=model.rows, columns=model.columns, train=30, valid=7, test=test, directory=str(squares)
    )
    spec = replace(squares_spec(squares), task=task, model=model)
    return untrained(folder / name, spec)


def untrained(path: Path, spec: Spec) -> RunFolder:
    """A run with its first weights."""
    run = create_run(path, spec)
    save_weights(run, "best", build_for(spec).state_dict())
    return run
