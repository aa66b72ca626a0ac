"""Mistakes of a reader, the most confident first, with those marked whose label is likely wrong.

An image is likely mislabelled if three things come together, of which the last is not the reader's:

1. the reader says j, not the label;
2. it says j with at least t_j, the mean probability of j over all images that are labelled j: then
   confident learning (Northcutt, Jiang and Chuang, 2021) counts the image among those of class j;
3. of the ``NEIGHBOURS`` training digits with the nearest pixels at least ``AGREEING`` are labelled j, and
   none as the image is.

A mark is a reason to look, not a proof.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, Images, cut_cells
from attnlab.specs import Split

NEIGHBOURS, AGREEING = 10, 8
LOOKED_AT = 300
"""Mistakes whose neighbours are looked for, the most confident ones."""
KEPT = 1000
"""Mistakes that are told one by one."""
SHOWN = 40
"""Mistakes in a gallery."""
_PART = 6000  # training digits at a time, to bound memory


@dataclass(frozen=True)
class ImageMistake:
    """A digit that is read wrongly; ``again`` if a more confident mistake is about the same digit."""

    input: str
    cell: int
    name: str
    truth: int
    answer: int
    labelled: str
    read_as: str
    probability: float
    likely_mislabelled: bool
    again: bool


@dataclass(frozen=True)
class ImageMistakes:
    """How many digits are read wrongly, and the most confident of these mistakes.

    Grids show a digit several times, so ``distinct`` and ``distinct_mislabelled`` count different digits.
    """

    count: int
    distinct: int
    looked_at: int
    likely_mislabelled: int
    distinct_mislabelled: int
    worst: list[ImageMistake]


def find_mistakes(
    reader: ImageClassifier, split: Split, images: Images, said: Float[Tensor, "N D V"]
) -> ImageMistakes:
    sure, answer = said.max(dim=-1)
    image, cell = (answer != images.truth).nonzero(as_tuple=True)
    order = sure[image, cell].argsort(descending=True, stable=True)
    image, cell = image[order], cell[order]
    marked = _mislabelled(reader, images, said, image[:LOOKED_AT], cell[:LOOKED_AT], among=split == "train")
    classes, cells = reader.task.classes, images.truth.shape[1]
    digits = [each.numpy().tobytes() for each in _cells(reader, images, image, cell)]  # the same by pixels
    first = {digit: number for number, digit in reversed(list(enumerate(digits)))}
    shown = image[:KEPT], cell[:KEPT]
    rows = (each.tolist() for each in (*shown, images.truth[shown], answer[shown], sure[shown]))
    mistakes = [
        ImageMistake(
            input=f"{split}:{place}",
            cell=where,
            name=f"{split}:{place}" + (f", {reader.task.shows} {where + 1}" if cells > 1 else ""),
            truth=label,
            answer=one,
            labelled=classes[label],
            read_as=classes[one],
            probability=chance,
            likely_mislabelled=number < len(marked) and bool(marked[number]),
            again=first[digits[number]] < number,
        )
        for number, (place, where, label, one, chance) in enumerate(zip(*rows, strict=True))
    ]
    likely = marked.nonzero()[:, 0]
    return ImageMistakes(
        count=len(image),
        distinct=len(set(digits)),
        looked_at=len(marked),
        likely_mislabelled=len(likely),
        distinct_mislabelled=len({digits[place] for place in likely.tolist()}),
        worst=mistakes,
    )


def _mislabelled(
    reader: ImageClassifier,
    images: Images,
    said: Float[Tensor, "N D V"],
    image: Int[Tensor, "M"],
    cell: Int[Tensor, "M"],
    *,
    among: bool,
) -> Bool[Tensor, "M"]:
    """``among``: the digits are training digits themselves, each its own nearest neighbour."""
    chances, labels = said.flatten(0, 1), images.truth.flatten()
    # the mean of a class that is not there is nan, which nothing reaches
    usual = torch.stack([chances[labels == j, j].mean() for j in range(len(reader.task.classes))])
    answer, label = said[image, cell].argmax(dim=-1), images.truth[image, cell]
    marked = said[image, cell].amax(dim=-1) >= usual[answer]
    if not marked.any():
        return marked
    digits = _cells(reader, images, image[marked], cell[marked])
    near = nearest_labels(digits, *reader.task.cell_pixels("train"), count=NEIGHBOURS + among)[:, among:]
    agree = (near == answer[marked, None]).sum(dim=1) >= AGREEING
    marked[marked.clone()] = agree & (near != label[marked, None]).all(dim=1)
    return marked


def _cells(
    reader: ImageClassifier, images: Images, image: Int[Tensor, "M"], cell: Int[Tensor, "M"]
) -> UInt8[Tensor, "M *C y x"]:
    columns = reader.task.columns
    return cut_cells(images.pixels, reader.task)[image, cell // columns, cell % columns]


def gallery(worst: list[ImageMistake]) -> list[ImageMistake]:
    """Which mistakes are shown: those likely mislabelled, then the most confident, in their order.

    An image that stands in several grids is shown once.
    """
    new = [row for row in worst if not row.again]
    order = sorted(range(len(new)), key=lambda place: (not new[place].likely_mislabelled, place))
    return [new[place] for place in sorted(order[:SHOWN])]


def mistaken_digits(
    reader: ImageClassifier, split: Split, mistakes: list[ImageMistake]
) -> UInt8[Tensor, "M *C y x"]:
    places = torch.tensor([int(row.input.rpartition(":")[2]) for row in mistakes], dtype=torch.long)
    cells = torch.tensor([row.cell for row in mistakes], dtype=torch.long)
    return _cells(reader, reader.images(split), places, cells)


def nearest_labels(
    digits: UInt8[Tensor, "M *C y x"],
    known: UInt8[Tensor, "N *C y x"],
    labels: Int[Tensor, "N"],
    *,
    count: int = NEIGHBOURS,
) -> Int[Tensor, "M K"]:
    """Labels of the nearest of the known digits, by the distance of their pixels."""
    asked = digits.flatten(1).float()
    best, found = torch.empty(len(digits), 0), torch.empty(len(digits), 0, dtype=torch.long)
    for start in range(0, len(known), _PART):
        part = known[start : start + _PART].flatten(1).float()
        apart = torch.cat((best, part.square().sum(dim=1) - 2 * asked @ part.T), dim=1)
        names = labels[start : start + _PART].expand(len(digits), -1)
        best, place = apart.topk(min(count, apart.shape[1]), largest=False)
        found = torch.cat((found, names), dim=1).gather(1, place)
    return found
