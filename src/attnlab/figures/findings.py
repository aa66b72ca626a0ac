"""The evidence of a finding: lines over steps, epochs or distances, or else its numbers as bars."""

from dataclasses import dataclass
from math import isfinite
from textwrap import fill
from typing import final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.doctor.findings import Curve, Finding
from attnlab.figures.parts import name_rows
from attnlab.figures.style import BLUE, MARKED, new_axes, styled

WIDTH = 4.0
"""Inches: as wide as a phone."""
FAR = 30
"""Largest over smallest value from which an axis is logarithmic."""
_BARS = 12
_LETTERS = 26


@final
@dataclass(frozen=True)
class Bars:
    """Numbers by their names, in the order of the evidence."""

    names: list[str]
    values: list[float]
    logarithmic: bool


def evidence_data(finding: Finding) -> Curve | Bars | None:
    """Its curve, or else its finite numbers; None where it has neither."""
    if finding.curve is not None:
        return finding.curve
    known = {name: value for name, value in finding.evidence.items() if isfinite(value)}
    names = list(known)[:_BARS]
    if not names:
        return None
    values = [known[name] for name in names]
    return Bars(names, values, far_apart(values))


def far_apart(values: list[float]) -> bool:
    """Whether a linear axis would hide the smaller values."""
    return min(values) > 0 and max(values) >= FAR * min(values)


@styled()
def draw_evidence(data: Curve | Bars) -> Figure:
    """Lines, or a bar for each number with the number beside it."""
    if isinstance(data, Curve):
        figure, axes = new_axes(WIDTH, 2.4)
        _draw_lines(axes, data)
    else:
        figure, axes = new_axes(WIDTH, 0.6 + 0.42 * len(data.names))
        _draw_bars(axes, data)
    return figure


def _draw_lines(axes: Axes, curve: Curve) -> None:
    for (name, values), (colour, mark) in zip(curve.lines.items(), MARKED * 9, strict=False):
        form = mark if len(curve.x) < 40 else ""
        axes.plot(curve.x, values, label=name, color=colour, marker=form, markersize=3.5, linewidth=1.4)
    every = [value for values in curve.lines.values() for value in values if isfinite(value)]
    if every and far_apart(every):
        axes.set_yscale("log")
    axes.set_xlabel(curve.x_label)
    axes.set_ylabel(curve.y_label)
    if len(curve.lines) > 1:
        axes.legend(fontsize=8)


def _draw_bars(axes: Axes, data: Bars) -> None:
    rows = range(len(data.names))
    start = min(data.values) / 3 if data.logarithmic else 0.0
    if data.logarithmic:
        axes.set_xscale("log")
    axes.barh(rows, [value - start for value in data.values], left=start, height=0.6, color=BLUE)
    for row, value in zip(rows, data.values, strict=True):
        axes.annotate(
            f"{value:.4g}", (max(value, start), row), (4, 0), textcoords="offset points", va="center"
        )
    axes.margins(x=0.25)
    name_rows(axes, [fill(name, _LETTERS) for name in data.names])
    axes.tick_params(axis="y", labelsize=8)
