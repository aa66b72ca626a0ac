"""Figures that only documents show: pruned seeds, learning rates, kinds of positions, patch attention."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.positions import Slot, StackPlaces, look_at
from attnlab.figures.parts import panels
from attnlab.figures.positions import draw_alike, explain_strips
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, new_figure, styled
from attnlab.studies.outcome import StudyResult


def pruned_seeds_data(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Percent right by heads kept, a curve for each way and seed, of validation examples."""
    return {
        "seeds": [result["seed"] for result in results],
        "kept": [point["kept"] for point in results[0]["curves"]["mean"]],
        "ways": {
            name: [[100 * point["exact_match"] for point in result["curves"][name]] for result in results]
            for name in results[0]["curves"]
        },
        "trained_kept": [point["kept"] for point in results[0]["finetuned"]],
        "trained": [[100 * point["exact_match"] for point in result["finetuned"]] for result in results],
        "steps": results[0]["steps"],
        "allowed": 100 * (1 - results[0]["allowed_loss"]),
    }


WAYS = {
    "mean": "greedy, means in their place",
    "gates": "gates, maps refitted",
    "refit": "greedy, maps refitted",
}


@styled()
def draw_pruned_seeds(data: dict[str, Any]) -> Figure:
    """The median of all seeds as a line, the seeds themselves thin."""
    figure = new_figure(9.0, 4.0)
    lines = [(data["kept"], data["ways"][name], label) for name, label in WAYS.items()]
    lines.append((data["trained_kept"], data["trained"], f"the same and {data['steps']} steps of training"))
    styles = ((GREY, "P"), MARKED[2], (BLUE, "o"), (ORANGE, "s"))
    axes = figure.subplots()
    for (kept, values, label), (colour, marker) in zip(lines, styles, strict=True):
        for each in values:
            axes.plot(kept, each, color=colour, linewidth=0.6, alpha=0.5)
        middle = [median(column) for column in zip(*values, strict=True)]
        axes.plot(kept, middle, marker=marker, color=colour, markersize=5, label=label)
    axes.axhline(data["allowed"], color=GREY, linewidth=0.6, linestyle=":")
    axes.set_xticks(data["kept"])
    axes.invert_xaxis()
    axes.set(ylim=(-2, 103), ylabel="% wholly right", xlabel="heads kept")
    axes.set_title(f"Heads removed jointly: medians and all of {len(data['seeds'])} seeds")
    axes.legend(loc="lower left")
    return figure


def rates_data(result: StudyResult, *, measure: str = "accuracy") -> dict[str, Any]:
    """By width, curves of means in percent over learning rates, with every seed; epochs must be alike.

    A seed without a value diverged; it is counted.
    """
    panels: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for variant in result.variants:
        size, start, rate, *more = variant.name.split(", ")
        if more:
            continue
        found = variant.measures[measure]
        point = {
            "lr": float(rate.removeprefix("lr ")),
            "mean": None if found.mean is None else 100 * found.mean,
            "values": [100 * value for value in found.known],
            "diverged": found.values.count(None),
        }
        panels.setdefault(size, {}).setdefault(start, []).append(point)
    return {
        "panels": [
            {
                "size": size,
                "curves": [
                    {"start": start, "points": sorted(points, key=lambda point: point["lr"])}
                    for start, points in curves.items()
                ],
            }
            for size, curves in panels.items()
        ]
    }


@styled()
def draw_rates(data: dict[str, Any]) -> Figure:
    """A panel for each width."""
    panels = data["panels"]
    figure = new_figure(5.2 * len(panels), 4.2)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(curve["start"] for panel in panels for curve in panel["curves"]))
    for axes, panel in zip(grid, panels, strict=True):
        for curve in panel["curves"]:
            colour, marker = MARKED[names.index(curve["start"]) % len(MARKED)]
            known = [point for point in curve["points"] if point["mean"] is not None]
            axes.plot(
                [point["lr"] for point in known],
                [point["mean"] for point in known],
                color=colour, linewidth=1.6, marker=marker, markersize=4, label=curve["start"],
            )  # fmt: skip
            for point in known:
                axes.plot(
                    [point["lr"]] * len(point["values"]), point["values"],
                    marker=marker, color=colour, linestyle="none", markersize=4, alpha=0.65,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set(ylim=(0, 102), xlabel="learning rate")
        axes.set_title(f"width/hidden {panel['size']}")
        axes.axhline(10, color=GREY, linewidth=0.6, linestyle=":")
        axes.legend(loc="upper left", fontsize=8)
        _mark_divergence(axes, panel["curves"])
    grid[0].set_ylabel("test accuracy, %")
    return figure


def _mark_divergence(axes: Any, curves: Iterable[dict[str, Any]]) -> None:
    """How many runs diverged at each learning rate, along the bottom."""
    lost: dict[float, int] = {}
    for curve in curves:
        for point in curve["points"]:
            lost[point["lr"]] = lost.get(point["lr"], 0) + point["diverged"]
    for lr, count in lost.items():
        if count:
            axes.text(lr, 2, f"{count} diverged", ha="center", fontsize=7, color=GREY)


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


@styled()
def draw_probe_curves(data: dict[str, Any]) -> Figure:
    """Two panels, a curve for each variant, bands from the lowest seed to the highest."""
    figure = new_figure(10.4, 4.0)
    titles = {
        "entropy": "entropy of attention (1 = uniform)",
        "moved": "answer moved by shuffled patches",
    }
    for axes, (probe, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for curve, (colour, marker) in zip(data["curves"], MARKED, strict=False):
            found = curve[probe]
            axes.plot(curve["epoch"], found["mean"], color=colour, marker=marker, label=curve["variant"])
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


PANEL, ACROSS = 3.3, 3  # inches of a map of places, and maps in a row


@dataclass(frozen=True)
class KindData:
    """How alike places are, by one kind in one slot."""

    positions: str
    slot: Slot
    alike: list[list[float]]
    known: list[bool]


@dataclass(frozen=True)
class KindsData:
    """Every kind that fills a slot."""

    tokens: int
    kinds: list[KindData]


def kinds_data(stacks: list[StackPlaces], length: int) -> KindsData:
    """How alike places are, by every kind that fills a slot."""
    kinds = []
    for stack in stacks:
        for look in look_at(stack, length):
            alike = [[round(each, 4) for each in row] for row in look.alike]
            kinds.append(KindData(stack.word, look.slot, alike, look.known))
    return KindsData(length, kinds)


@styled()
def draw_kinds(data: KindsData) -> Figure:
    """A map for each kind, side by side."""
    kinds = data.kinds
    figure = new_figure(PANEL * ACROSS, 0.95 * PANEL * -(-len(kinds) // ACROSS))
    for axes, kind in zip(panels(figure, len(kinds), ACROSS), kinds, strict=True):
        draw_alike(figure, axes, kind.slot, kind.alike, kind.known)
        word, _, settings = kind.positions.partition(":")
        axes.set_title(f"{word}\n{settings.replace(',', ', ')}", pad=12, fontsize=8)
    explain_strips(figure, [kind.known for kind in kinds])
    return figure
