"""Whether a model is as often right as it is sure: the reliability diagram."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.image_evaluation import Calibration
from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled


def reliability_data(calibration: Calibration) -> dict[str, Any]:
    """Bins that hold an answer, in percent."""
    held = [row for row in calibration.bins if row.count]
    total = sum(row.count for row in held)
    return {
        "ece": 100 * calibration.ece,
        "low": [100 * row.low for row in held],
        "high": [100 * row.high for row in held],
        "confidence": [100 * row.confidence for row in held if row.confidence is not None],
        "accuracy": [100 * row.accuracy for row in held if row.accuracy is not None],
        "share": [100 * row.count / total for row in held],
        "count": [row.count for row in held],
    }


def draw_reliability(data: dict[str, Any]) -> Figure:
    """Above, what is right over how sure the model was; below, how often it was so sure."""
    figure = new_figure(5.2, 5.4)
    with styled():
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        above.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, linestyle="--", label="as sure as right")
        for sure, right in zip(data["confidence"], data["accuracy"], strict=True):
            above.plot([sure, sure], [sure, right], color=ORANGE, linewidth=2)
        above.plot(data["confidence"], data["accuracy"], "o-", color=BLUE, label="a bin of answers")
        above.set(ylabel="right, %", xlim=(-2, 102), ylim=(-3, 103))
        above.set_title(f"expected calibration error {data['ece']:.2f}%")
        above.legend(loc="upper left")
        width = [high - low for low, high in zip(data["low"], data["high"], strict=True)]
        below.bar(data["low"], data["share"], width=width, align="edge", color=BLUE, edgecolor="white")
        below.set(xlabel="probability of the answer, %", ylabel="answers, %")
        below.set_yscale("log")
    return figure
