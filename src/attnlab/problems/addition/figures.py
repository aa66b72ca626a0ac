"""Right sums by their longest carry chain."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.statistics import percent
from attnlab.figures.style import BLUE, GREY, new_figure, styled
from attnlab.problems.addition.evaluate import Chain


def chains_data(by_chain: Sequence[Chain]) -> dict[str, Any]:
    """Columns of an evaluation's rows, shares in percent."""
    return {
        "chain": [row.chain for row in by_chain],
        "examples": [row.examples for row in by_chain],
        "percent": [100 * row.exact_match for row in by_chain],
        "interval": [[100 * end for end in row.exact_match_interval] for row in by_chain],
    }


def draw_chains(data: dict[str, Any]) -> Figure:
    """A bar for each chain length, with its 95% interval and the number of examples."""
    figure = new_figure(9.0, 3.0)
    with styled():
        axes = figure.subplots()
        below = [p - low for p, (low, _) in zip(data["percent"], data["interval"], strict=True)]
        above = [high - p for p, (_, high) in zip(data["percent"], data["interval"], strict=True)]
        spread = [[max(0.0, value) for value in side] for side in (below, above)]
        axes.bar(data["chain"], data["percent"], yerr=spread, color=BLUE, ecolor=GREY, capsize=4, width=0.6)
        labels = zip(data["chain"], data["percent"], data["examples"], strict=True)
        for chain, share, examples in labels:
            axes.text(chain, 107, percent(share / 100), ha="center")
            axes.text(chain, -13, f"n = {examples:,}", ha="center", va="top", color=GREY, fontsize=8)
        axes.set_xticks(data["chain"])
        axes.set(ylim=(0, 104), xlabel="\ncarries in a row", ylabel="% wholly right")
        axes.set_title("Exact match by longest carry chain", pad=18)
    return figure
