"""Several readers as one: how good their averaged probabilities are, and how much they differ.

Which of them are taken is decided on validation images; test images only tell how good the choice was.
"""

from dataclasses import dataclass
from itertools import combinations
from statistics import mean

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.image_classifier import ImageClassifier, join_classifiers
from attnlab.analysis.image_evaluation import Scores, score_images
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.results import Result
from attnlab.spec import Split


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

    members: list[MemberScores]
    test: Scores
    disagreement: Disagreement
    against_the_best: AgainstBest


def measure_ensemble(
    readers: list[ImageClassifier], *, best: int = 0, progress: Progress = silent
) -> tuple[list[int], EnsembleScores]:
    """Which readers are taken, the best first, and what they are worth alone and together.

    ``best`` is how many of them, by exact match on validation images and then by loss; 0 takes all.
    """
    if best != 0 and not 2 <= best <= len(readers):
        raise InputError(f"--best is {best}; it must be from 2 to {len(readers)}, the number of runs")
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
    pairs = [(a != b).any(dim=1).double().mean().item() for a, b in combinations(answers, 2)]
    split = torch.stack([(each != answers[0]).any(dim=1) for each in answers]).any(dim=0)
    return Disagreement(mean(pairs) if pairs else 0.0, split.double().mean().item())
