"""Untrained readers of the small images whose attention maps are looked at."""

from dataclasses import replace
from pathlib import Path

from attnlab.analysis.maps import Watched, maps_reader, watch
from attnlab.analysis.samples import Sample, first_samples
from attnlab.runs import RunFolder
from attnlab.specs import PatchSeq2SeqModel
from tiny_digits import VIT, untrained_digits, untrained_grids

GRID = PatchSeq2SeqModel(
    rows=1, columns=3, patch=7, width=12, heads=2, hidden=5, encoder_layers=1, decoder_layers=2
)
"""Three digits beside each other, of 4 x 4 patches each."""


def untrained_readers(folder: Path, grid: PatchSeq2SeqModel = GRID) -> None:
    """Runs ``vit``, ``grid``, and ``cells`` with one vector a digit, each with its first weights."""
    untrained_digits(folder, VIT)
    untrained_grids(folder, grid, test=7)
    untrained_grids(folder, replace(grid, bridge="cells"), test=7, name="cells")


def seen(path: Path) -> tuple[Sample, Watched]:
    """The first test image of a run, and what its model attends to."""
    reader = maps_reader(RunFolder(path))
    (sample,) = first_samples(reader, split="test", count=1)
    return sample, watch(reader, sample)
