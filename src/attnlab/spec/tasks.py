"""Task specs: which problem, how large, and how its examples are drawn."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from attnlab.spec.augment import Augment
from attnlab.spec.codec import later
from attnlab.spec.grids import GridsTask
from attnlab.spec.rules import require
from attnlab.spec.sorting import SortingTask


@dataclass(frozen=True, kw_only=True)
class AdditionTask:
    """Adding two numbers, digit by digit."""

    kind: ClassVar[str] = "addition"

    digits: int = 3
    """Digits of an operand, 1 to 12."""
    operands: Literal["full", "reference"] = "full"
    """``full``: 0 to 10^digits - 1; ``reference``: no leading zero (100 to 999 for three digits)."""
    order: Literal["most", "least"] = "most"
    """Which digit of operands and answer comes first: the most or the least significant one."""
    sampling: Literal["uniform", "balanced"] = "uniform"
    """``balanced`` gives short operands and long carry chains their share of training pairs."""
    train: int = 10_000
    """Training pairs. Splits are disjoint as unordered pairs."""
    valid: int = 2_000
    """Validation pairs, drawn as the training pairs are."""
    test: int = 2_000
    """Test pairs, always drawn uniformly."""

    def __post_init__(self) -> None:
        require(1 <= self.digits <= 12, "task.digits", self.digits, "from 1 to 12")
        for name in ("train", "valid", "test"):
            require(getattr(self, name) >= 1, f"task.{name}", getattr(self, name), "at least 1")
        wanted = self.train + self.valid + self.test
        low, high = self.operand_range
        available = (high - low + 1) * (high - low + 2) // 2
        rule = (
            f"at most {available:,}, all unordered pairs of {low} to {high}; ask for fewer or more digits"
        )
        require(wanted <= available, "task.train + task.valid + task.test", wanted, rule)

    @property
    def operand_range(self) -> tuple[int, int]:
        """Smallest and largest operand."""
        return (0 if self.operands == "full" else 10 ** (self.digits - 1)), 10**self.digits - 1


@dataclass(frozen=True, kw_only=True)
class DigitsTask:
    """Telling which digit an image of 28 x 28 pixels shows: MNIST, or any set of that form."""

    kind: ClassVar[str] = "digits"

    train: int = 54_000
    """Training images, at most; the first of those that are not validation images."""
    valid: int = 6_000
    """Validation images: the same part of the training set for every seed, at most a tenth of it."""
    test: int = 10_000
    """Test images, at most; the first of the test set."""
    scaling: Literal["unit", "signed", "standard"] = "unit"
    """Pixels from 0 to 1, from -1 to 1, or with mean 0 and deviation 1 over the training images."""
    directory: str = ""
    """A folder with IDX or Parquet files to use instead of MNIST."""
    augment: Augment = later(Augment())
    """How far training images are moved, turned, resized and bent, anew at each step."""

    def __post_init__(self) -> None:
        for name in ("train", "valid", "test"):
            require(getattr(self, name) >= 1, f"task.{name}", getattr(self, name), "at least 1")


TaskSpec = AdditionTask | DigitsTask | SortingTask | GridsTask
