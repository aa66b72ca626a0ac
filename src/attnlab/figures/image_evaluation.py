"""How well images are classified: confusions, calibration, and a gallery of mistakes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import UInt8
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from attnlab.analysis.image_evaluation import Calibration, Coverage
from attnlab.analysis.mistakes import ImageMistake
from attnlab.figures.parts import heat_map, in_grey, panels, show_image
from attnlab.figures.style import BLUE, GREY, ORANGE, new_axes, new_figure, styled

ACROSS = 8  # mistakes in a row of the gallery


@dataclass(frozen=True)
class Confusion:
    """How many images of each class, a row, are given each answer, and of how many percent of the row."""

    classes: list[str]
    counts: list[list[int]]
    percent: list[list[float]]


def confusion_data(confusion: list[list[int]], classes: list[str]) -> Confusion:
    shares = [[100 * count / max(1, sum(row)) for count in row] for row in confusion]
    return Confusion(classes, confusion, shares)


@styled()
def draw_confusion(data: Confusion) -> Figure:
    """A map: a row is the class that is shown, a column the answer; cells carry their number."""
    size, names = len(data.counts), data.classes
    figure, axes = new_axes(max(6.8, 0.42 * size), max(5.4, 0.36 * size))
    words = [[f"{count:,}" if count else "" for count in row] for row in data.counts]
    mesh = heat_map(axes, data.percent, (0, 100), rows=names, columns=names, words=words, size=8)
    axes.set_aspect("equal")
    axes.set(xlabel="answer", ylabel="shown")
    word = "digit" if names == list(map(str, range(10))) else "class"
    figure.colorbar(mesh, ax=axes, label=f"% of the {word}'s images", shrink=0.8)
    return figure


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Bins that hold an answer, in percent."""

    ece: float
    low: list[float]
    high: list[float]
    confidence: list[float]
    accuracy: list[float]
    share: list[float]
    count: list[int]


def reliability_data(calibration: Calibration) -> Reliability:
    held = [row for row in calibration.bins if row.count]
    total = sum(row.count for row in held)
    return Reliability(
        ece=100 * calibration.ece,
        low=[100 * row.low for row in held],
        high=[100 * row.high for row in held],
        confidence=[100 * row.confidence for row in held if row.confidence is not None],
        accuracy=[100 * row.accuracy for row in held if row.accuracy is not None],
        share=[100 * row.count / total for row in held],
        count=[row.count for row in held],
    )


@styled()
def draw_reliability(data: Reliability) -> Figure:
    """Above, what is right over how sure the model was; below, how often it was so sure."""
    figure = new_figure(5.2, 5.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, linestyle="--", label="as sure as right")
    above.plot([data.confidence] * 2, [data.confidence, data.accuracy], color=ORANGE, linewidth=2)
    above.plot(data.confidence, data.accuracy, "o-", color=BLUE, label="a bin of answers")
    above.set(ylabel="right, %", xlim=(-2, 102), ylim=(-3, 103))
    above.set_title(f"expected calibration error {data.ece:.2f}%")
    above.legend(loc="upper left")
    width = [high - low for low, high in zip(data.low, data.high, strict=True)]
    below.bar(data.low, data.share, width=width, align="edge", color=BLUE, edgecolor="white")
    below.set(xlabel="probability of the answer, %", ylabel="answers, %", yscale="log")
    return figure


@dataclass(frozen=True, kw_only=True)
class CoverageCurve:
    """Answers by their least probability, in percent."""

    threshold: list[float]
    answered: list[float]
    accuracy: list[float]


def coverage_data(coverage: Sequence[Coverage]) -> CoverageCurve:
    held = [(row, row.accuracy) for row in coverage if row.accuracy is not None]
    return CoverageCurve(
        threshold=[100 * row.threshold for row, _ in held],
        answered=[100 * row.answered for row, _ in held],
        accuracy=[100 * accuracy for _, accuracy in held],
    )


@styled()
def draw_coverage(data: CoverageCurve) -> Figure:
    """What is right of the answers that are left over how many there are; a dot is a threshold."""
    figure = new_figure(5.2, 3.6)
    axes = figure.subplots()
    axes.plot(data.answered, data.accuracy, "o-", color=BLUE)
    last = ("", -1.0)
    for threshold, share, right in zip(data.threshold, data.answered, data.accuracy, strict=True):
        if abs(share - last[1]) > 0.02 * (max(data.answered) - min(data.answered) or 1):  # room for words
            axes.annotate(
                f"{threshold:g}%", (share, right), textcoords="offset points", xytext=(4, 5), fontsize=7
            )
            last = ("", share)
    axes.set(xlabel="answered, %", ylabel="of these right, %")
    axes.set_title('"not sure" below a probability of ...')
    return figure


@dataclass(frozen=True)
class ShownMistake(ImageMistake):
    """A mistake with its image."""

    image: list[Any]


@dataclass(frozen=True)
class Gallery:
    """The most confident mistakes first."""

    mistakes: list[ShownMistake]


def mistakes_data(images: UInt8[Tensor, "M *C Y X"], worst: list[ImageMistake]) -> Gallery:
    shown = zip(worst, images, strict=True)
    return Gallery([ShownMistake(**vars(row), image=image.tolist()) for row, image in shown])


def caption(row: ImageMistake) -> str:
    """What is said, how surely, and which image it is."""
    words = f"{row.labelled} read as {row.read_as}, {100 * row.probability:.1f}%"
    return f"{words}{' ?' if row.likely_mislabelled else ''}\n{row.name}"


@styled()
def draw_mistakes(data: Gallery) -> Figure:
    """Each image with its label, the answer and its probability; those likely mislabelled are framed."""
    count = len(data.mistakes)
    figure = new_figure(1.25 * ACROSS, 1.62 * max(1, -(-count // ACROSS)) + 0.35)
    for axes, row in zip(panels(figure, count, ACROSS), data.mistakes, strict=True):
        show_image(axes, row.image, most=255)
        axes.axis("off")
        likely = row.likely_mislabelled
        axes.set_title(caption(row), fontsize=7, loc="center", color=ORANGE if likely else "black")
        if likely:
            high, wide = in_grey(row.image).shape
            frame = Rectangle((-0.5, -0.5), wide, high, fill=False, edgecolor=ORANGE, linewidth=2.5)
            axes.add_patch(frame)
    figure.supxlabel("framed, with a question mark: likely mislabelled", fontsize=8)
    return figure
