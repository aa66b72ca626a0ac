"""What probes found while several variants trained: how even attention was, and what shuffling moved."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import GREY, MARKED, new_figure, styled


def probe_curves_data(found: dict[str, Any]) -> dict[str, Any]:
    """A curve for each variant: for both probes the mean over seeds, the lowest and the highest."""
    return {
        "curves": [
            {
                "variant": variant["name"],
                "epoch": variant["epoch"],
                **{probe: _spread(variant[probe]) for probe in ("entropy", "moved")},
            }
            for variant in found["variants"]
        ]
    }


def draw_probe_curves(data: dict[str, Any]) -> Figure:
    """Two panels, a curve for each variant, bands from the lowest seed to the highest."""
    figure = new_figure(10.4, 4.0)
    titles = {
        "entropy": "entropy of attention (1 = uniform)",
        "moved": "answer moved by shuffled patches",
    }
    with styled():
        for axes, (probe, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
            for curve, (colour, marker) in zip(data["curves"], MARKED, strict=False):
                found = curve[probe]
                axes.plot(
                    curve["epoch"], found["mean"], color=colour, marker=marker, label=curve["variant"]
                )
                axes.fill_between(
                    curve["epoch"], found["low"], found["high"], color=colour, alpha=0.12, linewidth=0
                )
            axes.axhline(1, color=GREY, linewidth=0.6)
            axes.set(ylim=(-0.03, 1.05), xlabel="epoch", title=title)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _spread(seeds: list[list[float]]) -> dict[str, list[float]]:
    """Over seeds, for each probe in turn."""
    columns = list(zip(*seeds, strict=True))
    return {
        "mean": [sum(column) / len(column) for column in columns],
        "low": [min(column) for column in columns],
        "high": [max(column) for column in columns],
    }
