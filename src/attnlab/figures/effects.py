"""What ablation of single heads takes from an answer, as bars to both sides of 0."""

from matplotlib.axes import Axes

from attnlab.figures.style import BLUE, GREY, ORANGE


def draw_effects(axes: Axes, effects: dict[str, float], *, title: str) -> None:
    """A bar a head, right of 0 where it speaks for the answer; the sign stands beside the bar as well."""
    values = list(effects.values())
    bars = axes.barh(range(len(values)), values, color=[BLUE if each >= 0 else ORANGE for each in values])
    axes.bar_label(bars, [f"{each:+z.2f}" for each in values], padding=2, fontsize=7)
    axes.axvline(0, color=GREY, linewidth=0.8)
    most = max(map(abs, values)) or 1.0
    low, high = min(0.0, *values), max(0.0, *values)
    axes.set_xlim(low - 0.45 * most * (low < 0), high + 0.45 * most * (high > 0 or low == 0))
    axes.spines["left"].set_visible(False)  # the line at 0 is what bars stand on
    axes.set_yticks(range(len(values)), list(effects), fontsize=7)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=7)
    axes.locator_params(axis="x", nbins=3)
    axes.set_title(title, fontsize=8)
