"""Images with what a model says about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.samples import Sample
from attnlab.figures.parts import panels, show_image
from attnlab.figures.style import ORANGE, new_figure, styled

ACROSS = 5
SIDE = 1.7  # inches


@dataclass(frozen=True)
class AnsweredImage:
    """An image, its name, what it shows if that is known, the answer and its probability in percent."""

    name: str
    shown: str | None
    answer: str
    probability: float
    image: list[Any]


@dataclass(frozen=True)
class AnsweredImages:
    images: list[AnsweredImage]


def samples_data(samples: Sequence[Sample]) -> AnsweredImages:
    return AnsweredImages(
        [
            AnsweredImage(each.name, each.shown, each.output, 100 * each.probability, each.pixels.tolist())
            for each in samples
        ]
    )


@styled()
def draw_samples(data: AnsweredImages) -> Figure:
    """A panel for each image; the title is the answer, in another colour and with the truth if wrong."""
    count = len(data.images)
    across = min(ACROSS, count)
    figure = new_figure(SIDE * max(2, across), (SIDE + 0.4) * -(-count // across))
    for axes, each in zip(panels(figure, count, across), data.images, strict=True):
        show_image(axes, each.image, most=255)
        axes.axis("off")
        wrong = each.shown is not None and each.shown != each.answer
        truth = f", shown: {each.shown}" if wrong else ""
        words = f"{each.answer} ({each.probability:.1f}%){truth}\n{each.name}"
        axes.set_title(words, fontsize=8, loc="center", color=ORANGE if wrong else "black")
    return figure
