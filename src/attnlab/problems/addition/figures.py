"""Right sums by their longest carry chain, and by their length."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.statistics import percent
from attnlab.figures.style import BLUE, GREY, MARKED, new_figure, styled
from attnlab.problems.addition.evaluate import Chain
from attnlab.problems.addition.lengths import AdditionLengths, LengthRow


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
        axes.set(ylim=(0, 104), xlabel="\ncarries in a row", ylabel="% correct")
        axes.set_title("Exact match by longest carry chain", pad=18)
    return figure


def lengths_data(found: AdditionLengths) -> dict[str, Any]:
    """A curve for each set of sums; shares in percent."""
    sets = dict.fromkeys(row.sums for row in found.rows)
    return {
        "run": found.run,
        "trained": list(found.trained),
        "curves": [_curve(name, [row for row in found.rows if row.sums == name]) for name in sets],
    }


def _curve(name: str, rows: Sequence[LengthRow]) -> dict[str, Any]:
    return {
        "sums": name,
        "length": [row.length for row in rows],
        "percent": [100 * row.exact_match for row in rows],
        "interval": [[100 * end for end in row.exact_match_interval] for row in rows],
    }


def draw_lengths(data: dict[str, Any]) -> Figure:
    """Curves with their 95% intervals; the lengths of training are shaded."""
    figure = new_figure(9.0, 3.6)
    first, last = data["trained"]
    with styled():
        axes = figure.subplots()
        axes.axvspan(first, last, color=GREY, alpha=0.2, linewidth=0)
        for place, curve in enumerate(data["curves"]):
            colour, marker = MARKED[place % len(MARKED)]
            low, high = zip(*curve["interval"], strict=True)
            axes.fill_between(curve["length"], low, high, color=colour, alpha=0.15, linewidth=0)
            line = f"{marker}-" if place == 0 else f"{marker}--"
            axes.plot(curve["length"], curve["percent"], line, color=colour, label=curve["sums"])
        axes.set(ylim=(-3, 103), xlabel="digits of an operand", ylabel="% correct")
        axes.set_title("Right sums by length (shaded: of training)")
        axes.legend(title="sums", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
