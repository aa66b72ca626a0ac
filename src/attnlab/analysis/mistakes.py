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

from attnlab.analysis.image_classifier import ImageClassifier, Images
from attnlab.images import ImageTask
from attnlab.spec import Split

NEIGHBOURS, AGREEING = 10, 8
LOOKED_AT = 300
"""Mistakes whose neighbours are looked for, the most confident ones."""
KEPT = 1000
"""Mistakes that are told one by one."""
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
    digits = _names(reader.task, images, image, cell)
    first = {digit: number for number, digit in reversed(list(enumerate(digits)))}
    mistakes = [
        ImageMistake(
            input=f"{split}:{place}",
            cell=where,
            name=f"{split}:{place}" + (f", digit {where + 1}" if cells > 1 else ""),
            truth=int(images.truth[place, where]),
            answer=int(answer[place, where]),
            labelled=classes[int(images.truth[place, where])],
            read_as=classes[int(answer[place, where])],
            probability=float(sure[place, where]),
            likely_mislabelled=number < len(marked) and bool(marked[number]),
            again=first[digits[number]] < number,
        )
        for number, (place, where) in enumerate(
            zip(image[:KEPT].tolist(), cell[:KEPT].tolist(), strict=True)
        )
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


def _names(task: ImageTask, images: Images, image: Int[Tensor, "M"], cell: Int[Tensor, "M"]) -> list[bytes]:
    """The pixels of each of the given cells, by which two digits are the same."""
    places = zip(image.tolist(), cell[:, None], strict=True)  # one by one: there may be many grids
    return [
        cut_cells(images.pixels[at : at + 1], one, *task.cell_shape[1:]).numpy().tobytes()
        for at, one in places
    ]


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
    usual = torch.stack(
        [
            chances[labels == j, j].mean() if (labels == j).any() else torch.tensor(2.0)
            for j in range(len(reader.task.classes))
        ]
    )
    answer, label = said[image, cell].argmax(dim=-1), images.truth[image, cell]
    marked = said[image, cell].amax(dim=-1) >= usual[answer]
    if not marked.any():
        return marked
    digits = cut_cells(images.pixels[image], cell, *reader.task.cell_shape[1:])
    near = nearest_labels(digits[marked], *reader.task.cell_pixels("train"), count=NEIGHBOURS + among)[
        :, among:
    ]
    agree = (near == answer[marked, None]).sum(dim=1) >= AGREEING
    marked[marked.clone()] = agree & (near != label[marked, None]).all(dim=1)
    return marked


def cut_cells(
    pixels: UInt8[Tensor, "M *C Y X"], cell: Int[Tensor, "M"], height: int, width: int
) -> UInt8[Tensor, "M *C y x"]:
    columns = pixels.shape[-1] // width
    tops, lefts = (cell // columns * height).tolist(), (cell % columns * width).tolist()
    if not tops:
        return pixels.new_empty(0, *pixels.shape[1:-2], height, width)
    return torch.stack(
        [
            image[..., top : top + height, left : left + width]
            for image, top, left in zip(pixels, tops, lefts, strict=True)
        ]
    )


def mistaken_digits(
    reader: ImageClassifier, split: Split, mistakes: list[ImageMistake]
) -> UInt8[Tensor, "M *C y x"]:
    places = torch.tensor([int(row.input.rpartition(":")[2]) for row in mistakes], dtype=torch.long)
    cells = torch.tensor([row.cell for row in mistakes], dtype=torch.long)
    return cut_cells(reader.images(split).pixels[places], cells, *reader.task.cell_shape[1:])


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
