"""What the report of a run that reads digits shows besides its training."""

from typing import Any

import torch
from torch import nn

from attnlab.analysis import percent
from attnlab.analysis.mistakes import mistaken_digits
from attnlab.analysis.reading import Reader
from attnlab.figures import (
    confusion_data,
    draw_confusion,
    draw_gaze,
    draw_mistakes,
    draw_probes,
    draw_reliability,
    gaze_data,
    mistakes_data,
    probes_data,
    reliability_data,
)
from attnlab.figures.mistakes import SHOWN as GALLERY
from attnlab.models import attentions
from attnlab.report.figure import Figure, figure
from attnlab.taps import record
from attnlab.tasks import Digits

SHOWN = 8


def digit_figures(
    task: Digits, model: nn.Module, *, seed: int, found: dict[str, Any], metrics: list[dict[str, Any]]
) -> list[Figure]:
    """Confusions, and for a model with attention where it goes and how it came to it."""
    figures = [confusion_figure(found, "images")]
    if attentions(model):
        figures += [_gaze(task, model, seed), _probes(metrics)]
    return figures


def reader_figures(reader: Reader, found: dict[str, Any]) -> list[Figure]:
    """Whether a reader is as sure as right, and its most confident mistakes."""
    return [_reliability(found), _mistakes(reader, found)]


def _reliability(found: dict[str, Any]) -> Figure:
    data = reliability_data(found["calibration"])
    sure, right = found["calibration"]["confidence"], found["calibration"]["accuracy"]
    reading = (
        f"The mean probability of its answers is {percent(sure)}, and {percent(right)} of them are right: "
        f"the expected calibration error is {data['ece']:.2f}%. A dot above the diagonal is a group of "
        "answers that are more often right than the model is sure; a dot below, the other way round."
    )
    return figure("Is it as sure as it is right?", reading, data, draw_reliability(data))


def _mistakes(reader: Reader, found: dict[str, Any]) -> Figure:
    mistakes = found["mistakes"]
    worst = mistakes["worst"][:GALLERY]
    data = mistakes_data(mistaken_digits(reader, found["split"], worst), worst)
    reading = (
        f"{mistakes['count']:,} digits are read wrongly; here are the {len(worst)} most confident of them. "
        f"{mistakes['likely_mislabelled']:,} are likely mislabelled, which is framed: the answer is at "
        "least as sure as is usual for its digit, and of the ten training digits with the nearest pixels "
        "at least eight bear the answer and none the label."
    )
    return figure("What it gets wrong", reading, data, draw_mistakes(data))


def confusion_figure(found: dict[str, Any], what: str) -> Figure:
    """Which digits are taken for which; ``what`` are those that are counted."""
    data = confusion_data(found["confusion"])
    count, shown, answer = max(
        (count, shown, answer)
        for shown, row in enumerate(data["counts"])
        for answer, count in enumerate(row)
        if shown != answer
    )
    reading = (
        f"Of {sum(map(sum, data['counts'])):,} test {what}; a row is the digit that is shown. "
        + (
            f"Most often a {shown} is taken for a {answer}, {count:,} times."
            if count
            else "None is mistaken."
        )
        + " A column that is bright all along would mean a model that always says the same."
    )
    return figure("How good it is", reading, data, draw_confusion(data))


@torch.inference_mode()
def _gaze(task: Digits, model: nn.Module, seed: int) -> Figure:
    examples = task.splits(seed).test
    images, truth = examples.inputs[0][:SHOWN], examples.targets[:SHOWN]
    with record(model, "encoder.0.self.pattern") as seen:
        said = model(images).argmax(dim=1)
    words = [
        str(int(answer)) if answer == true else f"{int(answer)}, is {int(true)}"
        for answer, true in zip(said, truth, strict=True)
    ]
    data = gaze_data(images, seen["encoder.0.self.pattern"], words)
    strongest = max(value for grid in data["received"] for row in grid for value in row)
    reading = (
        f"The first {len(images)} test images with the model's answers, and below them how much attention "
        "each patch receives from all others, as a multiple of an even share. "
        f"The most is {strongest:.1f} times. Where attention goes is not yet what it does."
    )
    return figure("Where attention goes", reading, data, draw_gaze(data))


def _probes(metrics: list[dict[str, Any]]) -> Figure:
    data = probes_data(metrics)
    if not data["step"]:
        return figure("Does it know where a patch stands?", "Nothing was probed.", data, draw_probes(data))
    reading = (
        f"The entropy of attention went from {data['entropy'][0]:.3f} to {data['entropy'][-1]:.3f} of the "
        "most there can be. "
    )
    if data["moved"][-1] is not None:
        reading += (
            f"Shuffling the patches of an image moved the answer by {data['moved'][0]:.3f} before training "
            f"and by {data['moved'][-1]:.3f} after (total variation, 0 to 1). With even attention and a "
            "mean over tokens, positions cancel and the model sees a bag of patches."
        )
    return figure("Does it know where a patch stands?", reading, data, draw_probes(data))
