"""The evidence of a finding: lines over steps, epochs or distances."""

from matplotlib.figure import Figure

from attnlab.doctor.findings import Curve
from attnlab.figures.style import new_figure


def draw_evidence(curve: Curve) -> Figure:
    figure = new_figure(5.0, 3.0)
    axes = figure.subplots()
    for name, values in curve.lines.items():
        axes.plot(curve.x, values, label=name, marker="." if len(curve.x) < 40 else "")
    axes.set_xlabel(curve.x_label)
    axes.set_ylabel(curve.y_label)
    if len(curve.lines) > 1:
        axes.legend()
    return figure
