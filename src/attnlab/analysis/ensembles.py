"""Several readers as one: how good their averaged probabilities are, and how much they differ.

Which of them are taken is decided on validation images; test images only tell how good the choice was.
"""

from itertools import combinations
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlab.analysis.calibration import calibrate, log_loss
from attnlab.analysis.evaluate import share
from attnlab.analysis.image_classifier import ImageClassifier, join_classifiers
from attnlab.errors import InputError
from attnlab.progress import Progress, silent
from attnlab.spec import Split


def measure_ensemble(
    readers: list[ImageClassifier], *, best: int = 0, progress: Progress = silent
) -> tuple[list[int], dict[str, Any]]:
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

    valid = [_measured(*read(reader, "valid")) for reader in readers]
    order = sorted(range(len(readers)), key=lambda i: (-valid[i]["exact_match"], valid[i]["loss"]))
    chosen = order[: best or len(readers)]
    tested = {i: read(readers[i], "test") for i in order}
    joined = join_classifiers("ensemble", [readers[i] for i in chosen])
    if joined.task.start is not None:
        said, truth = read(joined, "test")
    else:  # answers at once, so averages of what each says are what all say together
        said, truth = torch.stack([tested[i][0] for i in chosen]).mean(dim=0), tested[chosen[0]][1]
        progress(total, total)
    found = {
        "members": [
            {
                "run": readers[i].name,
                "chosen": i in chosen,
                "valid": valid[i],
                "test": _measured(*tested[i]),
            }
            for i in order
        ],
        "test": _measured(said, truth),
        "disagreement": disagreement([tested[i][0] for i in chosen]),
        "against_the_best": _against(said, tested[chosen[0]][0], truth),
    }
    return chosen, found


def _measured(said: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]) -> dict[str, Any]:
    right = (said.argmax(dim=-1) == truth).all(dim=1)
    return {
        **share("exact_match", right),
        "loss": log_loss(said, truth),
        "ece": calibrate(said, truth)["ece"],
    }


def disagreement(said: list[Float[Tensor, "N D V"]]) -> dict[str, Any]:
    """The share of images that two readers answer differently on average, and that not all answer alike."""
    answers = [each.argmax(dim=-1) for each in said]
    pairs = [(a != b).any(dim=1).double().mean().item() for a, b in combinations(answers, 2)]
    split = torch.stack([(each != answers[0]).any(dim=1) for each in answers]).any(dim=0)
    return {"pairs": mean(pairs) if pairs else 0.0, "any": split.double().mean().item()}


def _against(
    said: Float[Tensor, "N D V"], best: Float[Tensor, "N D V"], truth: Int[Tensor, "N D"]
) -> dict[str, int]:
    """Images that all together get right where the best alone is wrong, and the other way round."""
    mine, other = ((each.argmax(dim=-1) == truth).all(dim=1) for each in (said, best))
    return {"mended": int((mine & ~other).sum()), "spoiled": int((other & ~mine).sum())}
