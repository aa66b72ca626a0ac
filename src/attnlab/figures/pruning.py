"""What is left of a model as heads go."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from attnlab.analysis.prune import PruningResult
from attnlab.figures.style import BLUE, GREY, MARKED, ORANGE, new_figure, styled


@dataclass(frozen=True)
class PruningData:
    """Percent right by heads kept, and where the cut was made."""

    run: str
    kept: list[int]
    percent: list[float]
    removed: list[str | None]
    chosen: int
    test_percent: float
    finetune: int


def pruning_data(found: PruningResult) -> PruningData:
    """The curve of validation examples, and test examples where the cut was made."""
    curve = found.valid_curve
    return PruningData(
        run=found.parent,
        kept=[point.kept for point in curve],
        percent=[100 * point.exact_match for point in curve],
        removed=[point.removed for point in curve],
        chosen=len(found.kept),
        test_percent=100 * found.test.after.exact_match,
        finetune=found.finetune,
    )


def draw_pruning(data: PruningData) -> Figure:
    """A curve from all heads to none, each point named by the head that went."""
    figure = new_figure(9.0, 4.0)
    with styled():
        axes = figure.subplots()
        axes.plot(data.kept, data.percent, "o-", color=BLUE, label="validation, no training")
        label = f"test, {data.finetune} steps of training" if data.finetune else "test, no training"
        axes.plot(
            [data.chosen], [data.test_percent], "D", color=ORANGE, markersize=8, label=label, zorder=3
        )
        axes.axvline(data.chosen, color=GREY, linewidth=0.6, linestyle=":")
        axes.set_xticks(data.kept, _labels(data), rotation=60, ha="right", fontsize=7)
        axes.invert_xaxis()
        axes.set(ylim=(-2, 103), ylabel="% wholly right", xlabel="heads kept, and the head that went last")
        axes.set_title(f"{data.run}: heads removed one after the other")
        axes.legend(loc="lower left")
    return figure


def _labels(data: PruningData) -> list[str]:
    return [
        f"{kept}" if head is None else f"{head}  {kept}"
        for kept, head in zip(data.kept, data.removed, strict=True)
    ]


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


def draw_pruned_seeds(data: dict[str, Any]) -> Figure:
    """The median of all seeds as a line, the seeds themselves thin."""
    figure = new_figure(9.0, 4.0)
    lines = [(data["kept"], data["ways"][name], label) for name, label in WAYS.items()]
    lines.append((data["trained_kept"], data["trained"], f"the same and {data['steps']} steps of training"))
    styles = ((GREY, "P"), MARKED[2], (BLUE, "o"), (ORANGE, "s"))
    with styled():
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
