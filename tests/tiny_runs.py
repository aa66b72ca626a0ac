"""A trained run of each of the four tasks, in a second or two each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.problems.addition import Addition
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.runs import RunFolder, create_run
from attnlab.specs import PatchSeq2SeqModel, Seq2SeqModel, Spec, TokensModel, Training, VitModel
from attnlab.training import train_run
from tiny_digits import squares_spec, write_squares

SMALL: dict[str, Any] = {"width": 8, "heads": 2, "hidden": 11}
TRAINING = Training(epochs=2, batch=7, threads=1)


def train_four(folder: Path) -> dict[str, RunFolder]:
    """Runs called adder, sorter, digit and grid."""
    squares = write_squares(folder / "squares")
    images = replace(squares_spec(squares, epochs=1), engine="torch")
    grids = Grids(rows=1, columns=2, train=30, valid=7, test=11, directory=str(squares))
    specs = {
        "adder": Spec(
            task=Addition(digits=1, train=30, valid=5, test=7),
            model=Seq2SeqModel(encoder_layers=1, decoder_layers=1, **SMALL),
            training=TRAINING,
        ),
        "sorter": Spec(
            task=Sorting(low=3, high=5, train=30, valid=10, test=12),
            model=TokensModel(layers=1, **SMALL),
            training=TRAINING,
        ),
        "digit": replace(images, model=VitModel(patch=14, layers=1, **SMALL)),
        "grid": replace(
            images,
            task=grids,
            model=PatchSeq2SeqModel(
                rows=1, columns=2, patch=14, encoder_layers=1, decoder_layers=1, **SMALL
            ),
        ),
    }
    runs = {}
    for name, spec in specs.items():
        runs[name] = create_run(folder / name, spec)
        train_run(runs[name])
    return runs
