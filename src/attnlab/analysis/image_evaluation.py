"""How well classes of images are told: accuracy, confusions, calibration, mistakes.

A grid is right if every class that greedy decoding says is right. With p the share of classes right and C
cells, p^C of the grids would be right if mistakes fell on them independently.

Is a model that is sure to 90% right in 90% of the cases? Answers are sorted into bins of equal width by
their probability. With n_b answers in bin b, of which a share acc_b is right at a mean probability of
conf_b, the expected calibration error (Naeini, Cooper and Hauskrecht, 2015; Guo et al., 2017) is

    ECE = sum over b of n_b / N |acc_b - conf_b|

What the average over views of the same image, a pixel up, down and to the sides, would add:

    p(d | image) = 1/V sum over views v of p(d | image moved by v)

with v = (0, 0) first, then its four neighbours, then the four corners. Pixels that move in are 0. This
costs V passes and is no property of the model alone: it is told beside its accuracy, never in its place.

Who leaves out answers below a threshold t is right more often, and answers less:

    answered(t) = 1/N sum over answers of [p >= t]    accuracy(t) = the share of these that is right

Several readers as one: how good their averaged probabilities are, and how much they differ. Which of them
are taken is decided on validation images; test images only tell how good the choice was.
"""

import statistics
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from attnlab.analysis.choices import check_views
from attnlab.analysis.evaluate import Forced, mean, proportion
from attnlab.analysis.image_classifier import BATCH, ImageClassifier, image_classifier, join_classifiers
from attnlab.analysis.mistakes import ImageMistakes, find_mistakes, gallery, mistaken_digits
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.results import Interval, Result, Row, interval_columns, plain_fields
from attnlab.runs import RunFolder
from attnlab.specs import Split
from attnlab.specs.codec import later, unwritten
from attnlab.training.measuring import measure

BINS = 15
THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
MOVES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))


@dataclass(frozen=True)
class Bin:
    """Answers whose probability lies between ``low`` and ``high``, with means if there are any."""

    low: float
    high: float
    count: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Calibration:
    """The expected calibration error, the means of all answers, and the bins it is made of."""

    ece: float
    confidence: float
    accuracy: float
    bins: list[Bin]


@dataclass(frozen=True)
class Coverage:
    """Of the answers with a probability of at least ``threshold`` the share of all, and how many of them
    are right if there are any.
    """

    threshold: float
    answered: float
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Scores(Result):
    """How good probabilities are: images wholly right, -log p(truth), calibration."""

    examples: int
    exact_match: float
    exact_match_interval: Interval
    loss: float
    ece: float


@dataclass(frozen=True, kw_only=True)
class ViewsScores(Scores):
    run: str = later("")
    views: int


@dataclass(frozen=True)
class DigitClass:
    class_: int
    examples: int
    exact_match: float
    exact_match_interval: Interval
    name: str


@dataclass(frozen=True)
class GridClass:
    class_: int
    examples: int
    accuracy: float
    accuracy_interval: Interval
    name: str


@dataclass(frozen=True)
class GridCell:
    cell: str
    examples: int
    accuracy: float
    accuracy_interval: Interval


@dataclass(frozen=True, kw_only=True)
class ImageEvaluation(Result):
    """What is measured of all tasks with images; ``confusion`` has a row for each class that is shown."""

    shown_by: ClassVar[str] = "attnlab.tables.image_evaluation"

    run: str = later("")
    shows: str = later("digit")
    """What the task calls one of the things that its images show."""
    split: Split
    examples: int
    exact_match: float
    exact_match_interval: Interval
    confusion: list[list[int]]
    data: str
    sample: bool
    loss: float
    calibration: Calibration
    mistakes: ImageMistakes
    classes: list[str]
    views: ViewsScores | None = later(None)
    coverage: tuple[Coverage, ...] = later(())
    pictures: UInt8[Tensor, "M *C y x"] | None = unwritten(None)
    """Those of the mistakes that a gallery shows."""

    def records(self) -> list[Row]:
        """A row for all images together, and one for each class."""
        whole = ("all", self.examples, self.exact_match, self.exact_match_interval)
        return [
            {"class": name, "examples": count, "accuracy": share, **interval_columns("accuracy", ends)}
            for name, count, share, ends in (whole, *self._classes())
        ]

    def _classes(self) -> list[tuple[str, int, float, Interval]]:
        return []


@dataclass(frozen=True, kw_only=True)
class DigitEvaluation(ImageEvaluation):
    by_class: list[DigitClass]
    accuracy: float
    accuracy_interval: Interval

    def _classes(self) -> list[tuple[str, int, float, Interval]]:
        return [
            (row.name, row.examples, row.exact_match, row.exact_match_interval) for row in self.by_class
        ]


@dataclass(frozen=True, kw_only=True)
class GridEvaluation(ImageEvaluation):
    """Images with several cells; an ensemble is not teacher-forced."""

    digit_accuracy: float
    if_independent: float
    by_cell: list[GridCell]
    by_class: list[GridClass]
    rows: int
    columns: int
    teacher_forced: Forced | None = later(None)

    def _classes(self) -> list[tuple[str, int, float, Interval]]:
        return [(row.name, row.examples, row.accuracy, row.accuracy_interval) for row in self.by_class]


def evaluate_reader(
    reader: ImageClassifier, split: Split = "test", *, progress: Progress = silent
) -> DigitEvaluation | GridEvaluation:
    task, images = reader.task, reader.images(split)
    said, truth = reader.predict_proba(images.pixels, progress=progress), images.truth
    answer = said.argmax(dim=-1)
    right = answer == truth
    examples, exact, interval = proportion(right.all(dim=1))
    mistakes = find_mistakes(reader, split, images, said)
    shared = ImageEvaluation(
        run=reader.name,
        shows=task.shows,
        split=split,
        examples=examples,
        exact_match=exact,
        exact_match_interval=interval,
        confusion=confusions(truth, answer, len(task.classes)),
        data=task.data.source,
        sample=task.data.sample,
        loss=log_loss(said, truth),
        calibration=measure_calibration(said, truth),
        mistakes=mistakes,
        classes=list(task.classes),
        coverage=measure_coverage(said, truth),
        pictures=mistaken_digits(reader, split, gallery(mistakes.worst)),
    )
    by_class = [
        (number, *proportion(right[truth == number]), name)
        for number, name in enumerate(task.classes)
        if (truth == number).any()
    ]
    if task.start is None:
        rows = [DigitClass(*row) for row in by_class]
        return DigitEvaluation(**vars(shared), by_class=rows, accuracy=exact, accuracy_interval=interval)
    forced = None
    if len(reader.members) == 1:
        model, given = reader.members[0].model, task.splits(reader.seed)[split]
        fed = measure(model, given, batch=BATCH, temperature=model.temperature)
        forced = Forced(fed.exact_match, fed.token_accuracy, fed.loss)
    every = mean(right)
    return GridEvaluation(
        **vars(shared),
        digit_accuracy=every,
        if_independent=every**task.target_length,
        by_cell=[GridCell(name, *proportion(right[:, place])) for place, name in enumerate(task.places())],
        by_class=[GridClass(*row) for row in by_class],
        rows=task.rows,
        columns=task.columns,
        teacher_forced=forced,
    )


def evaluate_images(
    run: RunFolder, split: Split = "test", *, progress: Progress = silent
) -> DigitEvaluation | GridEvaluation:
    return run.keep(f"evaluate-{split}", evaluate_reader(image_classifier(run), split, progress=progress))


def confusions(given: Int[Tensor, "N C"], said: Int[Tensor, "N C"], classes: int) -> list[list[int]]:
    """How often each class is taken for each; what is no class counts for none."""
    pairs = (given * classes + said)[said < classes]
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes).tolist()


def measure_calibration(
    said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"], *, bins: int = BINS
) -> Calibration:
    """The calibration error over all digits of all images, and the bins it is made of."""
    sure, answer = said.double().flatten(0, 1).max(dim=1)
    right = (answer == truth.flatten()).double()
    place = (sure * bins).long().clamp(0, bins - 1)
    count, sums, hits = (
        torch.bincount(place, weights=each, minlength=bins) for each in (None, sure, right)
    )
    means = [(each / count).tolist() for each in (sums, hits)]
    return Calibration(
        ((hits - sums).abs().sum() / len(sure)).item(),
        sure.mean().item(),
        right.mean().item(),
        [
            Bin(each / bins, (each + 1) / bins, held, *(share[each] if held else None for share in means))
            for each, held in enumerate(count.tolist())
        ],
    )


def measure_coverage(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> tuple[Coverage, ...]:
    """What leaving out answers below each threshold gives, over all digits of all images."""
    sure, answer = said.flatten(0, 1).max(dim=1)
    right = answer == truth.flatten()
    answered = [(threshold, sure >= threshold) for threshold in THRESHOLDS]
    return tuple(
        Coverage(threshold, mean(kept), mean(right[kept]) if kept.any() else None)
        for threshold, kept in answered
    )


def log_loss(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> float:
    """Mean of -log p(truth) over all digits."""
    return -said.gather(-1, truth[..., None]).double().clamp(min=1e-38).log().mean().item()


def score_images(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> Scores:
    examples, exact, interval = proportion((said.argmax(dim=-1) == truth).all(dim=1))
    return Scores(
        examples=examples,
        exact_match=exact,
        exact_match_interval=interval,
        loss=log_loss(said, truth),
        ece=measure_calibration(said, truth).ece,
    )


def measure_views(
    reader: ImageClassifier, split: Split, views: int, *, run: str = "", progress: Progress = silent
) -> ViewsScores:
    check_views(views)
    images = reader.images(split)
    said = predict_proba_over_views(reader, images.pixels, views, progress=progress)
    return ViewsScores(run=run, views=views, **vars(score_images(said, images.truth)))


def predict_proba_over_views(
    reader: ImageClassifier, pixels: UInt8[Tensor, "N *C Y X"], views: int, *, progress: Progress = silent
) -> Float[Tensor, "N D V"]:
    total = torch.zeros(())
    for place, move in enumerate(MOVES[:views]):
        total = total + reader.predict_proba(moved(pixels, *move))
        progress(place + 1, views)
    return total / views


def moved(pixels: UInt8[Tensor, "N *C Y X"], down: int, right: int) -> UInt8[Tensor, "N *C Y X"]:
    """Images that are moved by so many pixels."""
    return F.pad(pixels, (right, -right, down, -down))


@dataclass(frozen=True)
class MemberScores:
    run: str
    chosen: bool
    valid: Scores
    test: Scores


@dataclass(frozen=True)
class Disagreement:
    """Shares of images: that two readers answer differently on average, and that not all answer alike."""

    pairs: float
    any: float


@dataclass(frozen=True)
class AgainstBest:
    """Images that all together get right where the best alone is wrong, and the other way round."""

    mended: int
    spoiled: int


@dataclass(frozen=True, kw_only=True)
class EnsembleScores(Result):
    """What runs are worth alone, the best first, and together."""

    shown_by: ClassVar[str] = "attnlab.tables.ensemble"

    members: list[MemberScores]
    test: Scores
    disagreement: Disagreement
    against_the_best: AgainstBest

    def records(self) -> list[Row]:
        """A row for each run and one for all together, on test images."""
        alone = [{"run": row.run, "chosen": row.chosen, **plain_fields(row.test)} for row in self.members]
        return [*alone, {"run": "together", "chosen": True, **plain_fields(self.test)}]


def measure_ensemble(
    readers: list[ImageClassifier], *, best: int = 0, progress: Progress = silent
) -> tuple[list[int], EnsembleScores]:
    """Which readers are taken, the best first, and what they are worth alone and together.

    ``best`` is how many of them, by exact match on validation images and then by loss; 0 takes all.
    """
    if best != 0 and not 2 <= best <= len(readers):
        raise InputError(f"best is {best}; it must be from 2 to {len(readers)}, the number of runs")
    join_classifiers("all", readers)
    total, done = 2 * len(readers) + 1, 0

    def read(reader: ImageClassifier, split: Split) -> tuple[Float[Tensor, "N D V"], Int[Tensor, "N D"]]:
        nonlocal done
        images = reader.images(split)
        said = reader.predict_proba(images.pixels)
        done += 1
        progress(done, total)
        return said, images.truth

    valid = [score_images(*read(reader, "valid")) for reader in readers]
    order = sorted(range(len(readers)), key=lambda i: (-valid[i].exact_match, valid[i].loss))
    chosen = order[: best or len(readers)]
    tested = {i: read(readers[i], "test") for i in order}
    joined = join_classifiers("ensemble", [readers[i] for i in chosen])
    if joined.task.start is not None:
        said, truth = read(joined, "test")
    else:  # answers at once, so averages of what each says are what all say together
        said, truth = torch.stack([tested[i][0] for i in chosen]).mean(dim=0), tested[chosen[0]][1]
        progress(total, total)
    mine, other = ((each.argmax(dim=-1) == truth).all(dim=1) for each in (said, tested[chosen[0]][0]))
    return chosen, EnsembleScores(
        members=[
            MemberScores(readers[i].name, i in chosen, valid[i], score_images(*tested[i])) for i in order
        ],
        test=score_images(said, truth),
        disagreement=disagreement([tested[i][0] for i in chosen]),
        against_the_best=AgainstBest(int((mine & ~other).sum()), int((other & ~mine).sum())),
    )


def disagreement(said: list[Float[Tensor, "N D V"]]) -> Disagreement:
    answers = [each.argmax(dim=-1) for each in said]
    pairs = [mean((a != b).any(dim=1)) for a, b in combinations(answers, 2)]
    split = torch.stack([(each != answers[0]).any(dim=1) for each in answers]).any(dim=0)
    return Disagreement(statistics.mean(pairs) if pairs else 0.0, mean(split))
