"""New lists in every epoch: a function of seed and epoch alone, whatever happens on the way."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnlab.problems.sorting import Sorting
from attnlab.runs import create_run
from attnlab.sets import Examples
from attnlab.specs import Randomised, Spec, TokensModel, Training
from attnlab.training import train_run
from attnlab.training.trainer import Trainer

TASK = Sorting(low=3, high=5, train=23, valid=7, test=5, fresh=True)
TINY = Spec(
    task=TASK,
    model=TokensModel(
        width=6, heads=3, layers=1, hidden=5, dropout=0.1, pooling="lowest", positions=Randomised()
    ),
    training=Training(epochs=3, batch=5, lr=0.01, threads=1),
    seed=3,
)


def batches(spec: Spec) -> list[Tensor]:
    """The lists of every batch, in the order of training."""
    trainer, seen = Trainer(spec), []
    update = trainer.update

    def look(batch: Examples) -> None:
        seen.append(batch.inputs[0])
        update(batch)

    trainer.update = look  # type: ignore[method-assign]
    trainer.train()
    return seen


def test_every_epoch_has_its_own_lists() -> None:
    seen = batches(TINY)
    assert [len(batch) for batch in seen] == [5, 5, 5, 5, 3] * 3
    task = TASK
    for epoch in range(3):
        lists = torch.cat(seen[5 * epoch : 5 * epoch + 5]).tolist()
        assert sorted(lists) == sorted(task.training(3, epoch).inputs[0].tolist())


def test_without_fresh_every_epoch_has_the_same_lists() -> None:
    seen = batches(replace(TINY, task=replace(TASK, fresh=False)))
    epochs = [sorted(torch.cat(seen[start : start + 5]).tolist()) for start in (0, 5, 10)]
    assert epochs[0] == epochs[1] == epochs[2]


@pytest.mark.parametrize("pieces", [[5], [7], [1, 5, 7], [10, 1]])
def test_stopped_anywhere_it_ends_with_the_same_bytes(pieces: list[int], tmp_path: Path) -> None:
    whole, parts = (create_run(tmp_path / name, TINY) for name in ("whole", "parts"))
    train_run(whole)
    for steps in pieces:
        asked = iter([False] * steps + [True])
        assert train_run(parts, stopping=lambda asked=asked: next(asked)) is None  # type: ignore[misc]
    train_run(parts)
    for name in ("best.safetensors", "last.safetensors"):
        assert parts.file(name).read_bytes() == whole.file(name).read_bytes()
