"""The spec of the task of reading a grid of digits."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from attnlab.spec.augment import Augment
from attnlab.spec.rules import require

MOST_CELLS = 64
"""Digits that a grid may have."""
MOST_GRIDS = 10_000_000
"""Grids of a split: their digits are drawn together."""


@dataclass(frozen=True, kw_only=True)
class GridsTask:
    """Reading all digits of a grid, left to right and top to bottom."""

    kind: ClassVar[str] = "grids"

    rows: int = 2
    columns: int = 2
    train: int = 60_000
    """Grids of an epoch, of digits to learn from."""
    valid: int = 2_000
    """Validation grids, of the training set's digits that nobody learns from; the same for every seed."""
    test: int = 10_000
    """Test grids, of test digits; the same for every seed."""
    fresh: bool = False
    """New training grids for every epoch."""
    scaling: Literal["unit", "signed", "standard"] = "unit"
    """Pixels from 0 to 1, from -1 to 1, or with mean 0 and deviation 1 over the training images."""
    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""
    augment: Augment = Augment()
    """How far each digit of a training grid is moved, turned, resized and bent, anew at each step."""

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "train", "valid", "test"):
            require(getattr(self, name) >= 1, f"task.{name}", getattr(self, name), "at least 1")
        for name in ("train", "valid", "test"):
            given = getattr(self, name)
            require(given <= MOST_GRIDS, f"task.{name}", given, f"at most {MOST_GRIDS:,}")
        rule = f"at most {MOST_CELLS} digits in all"
        require(self.cells <= MOST_CELLS, "task.rows x task.columns", self.cells, rule)

    @property
    def cells(self) -> int:
        """Digits of a grid."""
        return self.rows * self.columns
