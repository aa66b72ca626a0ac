"""Two runs side by side: how they trained, and how they differ on the same examples."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.compare import PairedShares
from attnlab.figures.curves import curves_data
from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled

_LOOKS = ((BLUE, "o-"), (ORANGE, "s--"))
_ROW = 0.3  # inches


def both_curves_data(runs: list[tuple[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """The curves of each run, by its metrics."""
    return {"runs": [{"run": name, **curves_data(metrics)} for name, metrics in runs]}


def draw_both_curves(data: dict[str, Any]) -> Figure:
    """Validation with marks, training batches as a thin line of the same colour."""
    figure = new_figure(9.0, 3.5)
    with styled():
        left, right = figure.subplots(1, 2)
        for run, (colour, look) in zip(data["runs"], _LOOKS, strict=True):
            steps, epochs = run["steps"], run["epochs"]
            name = run["run"]
            left.plot(steps["step"], steps["loss"], color=colour, linewidth=0.8, alpha=0.5)
            left.plot(epochs["step"], epochs["valid_loss"], look, color=colour, markersize=4, label=name)
            shares = [
                [100 * value for value in values]
                for values in (steps["exact_match"], epochs["valid_exact_match"])
            ]
            right.plot(steps["step"], shares[0], color=colour, linewidth=0.8, alpha=0.5)
            right.plot(epochs["step"], shares[1], look, color=colour, markersize=4)
        left.set(yscale="log", xlabel="step", ylabel="cross-entropy", title="Loss")
        right.set(ylim=(-2, 102), xlabel="step", ylabel="% wholly right", title="Right answers")
        figure.legend(loc="outside lower center", ncols=2, title="validation (thin: training batches)")
    return figure


def differences_data(names: list[str], rows: Sequence[PairedShares]) -> dict[str, Any]:
    """Differences in points, the whole first, then each group."""
    return {
        "runs": names,
        "groups": [row.group for row in rows],
        "examples": [row.examples for row in rows],
        "right": [[100 * share for share in row.right] for row in rows],
        "difference": [100 * row.difference for row in rows],
        "interval": [[100 * end for end in row.interval] for row in rows],
    }


def draw_differences(data: dict[str, Any]) -> Figure:
    """Left, how often each run is right; right, the difference with its 95% interval."""
    places = range(len(data["groups"]))
    figure = new_figure(9.0, 1.4 + _ROW * len(data["groups"]))
    with styled():
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.2))
        for number, (colour, look) in enumerate(_LOOKS):
            shares = [pair[number] for pair in data["right"]]
            shift = [place + 0.16 * (2 * number - 1) for place in places]
            left.plot(
                shares,
                shift,
                look[0],
                color=colour,
                label=data["runs"][number],
                clip_on=False,
                markersize=5,
            )
        low, high = zip(*data["interval"], strict=True)
        right.axvline(0, color=GREY, linewidth=0.8)
        right.hlines(places, low, high, color="#111111", linewidth=2)
        right.plot(data["difference"], places, "D", color="#111111", markersize=5)
        for axes in (left, right):
            axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        left.set_yticks(
            places, [f"{name} ({n:,})" for name, n in zip(data["groups"], data["examples"], strict=True)]
        )
        left.set(ylim=(len(data["groups"]) - 0.4, -0.6), xlabel="% right")
        right.set(xlabel=f"points by which {data['runs'][0]} is better, 95% interval")
        figure.legend(loc="outside upper center", ncols=2)
    return figure
