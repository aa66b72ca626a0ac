"""What runs and ensembles that classify images share: measuring them, asking them, showing images."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from attnlab.analysis.given_images import separate
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.image_evaluation import ImageEvaluation, evaluate_reader, measure_views
from attnlab.analysis.samples import ImagePrediction, Refused, ShownImages, predict_images, show_images
from attnlab.display import Meter, meters
from attnlab.errors import InputError
from attnlab.runs import RunFolder
from attnlab.specs import Split

OnRefusal = Literal["raise", "keep"]


def evaluated(
    reader: ImageClassifier, split: Split, views: int, *, run: RunFolder | None = None
) -> ImageEvaluation:
    """How good ``reader`` is, which ``run`` keeps; with what views of each image give, if several."""
    with Meter("evaluating", 1) as meter:
        found = evaluate_reader(reader, split, progress=meter.update)
    if run is not None:
        run.keep(f"evaluate-{split}", found)
    if views == 1:
        return found
    with Meter("evaluating views", views) as meter:
        return replace(found, views=measure_views(reader, split, views, progress=meter.update))


def answers(
    reader: ImageClassifier, inputs: Any, refused: OnRefusal, sure: float
) -> "ImagePrediction | list[ImagePrediction | Refused]":
    """One answer, or a list for a list, for a folder and for an array of several images."""
    folder = isinstance(inputs, str | Path) and os.path.isdir(inputs)  # noqa: PTH112
    several = separate(inputs, reader.task) is not None
    many = folder or several or isinstance(inputs, list | tuple)
    given = inputs if several or isinstance(inputs, list | tuple) else [inputs]
    with meters() as stages:
        found = predict_images(reader, given, stages, sure=sure)
    if not found:
        raise InputError("there is nothing to answer; give at least one image")
    first = next((each for each in found if isinstance(each, Refused)), None)
    if first is not None and (refused == "raise" or not many):
        raise first.error
    return found if many else next(each for each in found if not isinstance(each, Refused))


def shown(reader: ImageClassifier, *, samples: int, wrong: bool, split: Split, seed: int) -> ShownImages:
    """Images in a random order, with what is said about them."""
    with meters() as stages:
        return show_images(reader, split=split, count=samples, wrong=wrong, seed=seed, stages=stages)
