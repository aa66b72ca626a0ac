"""How often groups of examples are right: a dot with its 95% interval for each group."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.statistics import percent
from attnlab.figures.style import BLUE, GREY, ORANGE, new_figure, styled

_ROW = 0.27  # inches


def strata_data(
    rows: list[dict[str, Any]], *, group: str, share: str, whole: float, what: str
) -> dict[str, Any]:
    """Columns of an evaluation's rows, in percent; ``group`` and ``share`` are keys of a row."""
    return {
        "what": what,
        "whole": 100 * whole,
        "groups": [str(row[group]) for row in rows],
        "examples": [row["examples"] for row in rows],
        "percent": [100 * row[share] for row in rows],
        "interval": [[100 * end for end in row[f"{share}_interval"]] for row in rows],
    }


def draw_strata(data: dict[str, Any]) -> Figure:
    """Groups downwards; the dotted line is the share of all examples together."""
    groups, places = data["groups"], range(len(data["groups"]))
    low, high = zip(*data["interval"], strict=True)
    left = max(0.0, min(low) - 0.08 * (100 - min(low)) - 0.1)
    room = 0.03 * (100 - left)  # for dots at the ends
    figure = new_figure(8.0, 1.1 + _ROW * len(groups))
    with styled():
        axes = figure.subplots()
        axes.axvline(data["whole"], color=GREY, linestyle=":", linewidth=1.2, label="all together")
        axes.hlines(places, low, high, color=ORANGE, linewidth=2, label="95% interval")
        axes.plot(data["percent"], places, "o", color=BLUE, zorder=3, clip_on=False, label="right")
        for place, share, examples in zip(places, data["percent"], data["examples"], strict=True):
            words = f"{percent(share / 100)} of {examples:,}"
            axes.text(1.03, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_yticks(places, groups)
        axes.set(
            xlim=(left - room, 100 + room),
            ylim=(len(groups) - 0.4, -0.6),
            xlabel="% right",
            ylabel=data["what"],
        )
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        figure.legend(loc="outside upper center", ncols=3)
    return figure
