"""How runs trained, over steps: loss and accuracy of one run or of two, and what probes found meanwhile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.figures.style import BLUE, GREY, ORANGE, new_axes, new_figure, styled
from attnlab.runs import Metrics
from attnlab.runs.records import Record
from attnlab.specs.codec import later

T = TypeVar("T")

_LOOKS = ((BLUE, "o-"), (ORANGE, "s--"))


@dataclass(frozen=True)
class StepColumns:
    """Logged steps."""

    step: list[int]
    loss: list[float]
    exact_match: list[float]
    lr: list[float]


@dataclass(frozen=True)
class EpochColumns:
    """Epochs; ``judged`` is the loss that chose the weights."""

    step: list[int]
    epoch: list[int]
    valid_loss: list[float]
    valid_exact_match: list[float]
    seconds: list[float]
    judged: list[float]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """How a run trained; one that stands alone goes unnamed."""

    run: str = later("")
    steps: StepColumns
    epochs: EpochColumns


@dataclass(frozen=True)
class BothCurves:
    runs: list[Curves]


@dataclass(frozen=True)
class Probes:
    """What probes found, by step; ``moved`` only where that was asked."""

    step: list[int]
    entropy: list[float]
    moved: list[float | None]


def curves_data(metrics: Metrics, run: str = "") -> Curves:
    """Columns of the lines that a run logged."""
    return Curves(
        run=run, steps=_columns(StepColumns, metrics.steps), epochs=_columns(EpochColumns, metrics.epochs)
    )


def _columns(kind: type[T], records: Sequence[Record]) -> T:
    names = kind.__annotations__
    return kind(**{name: [getattr(record, name) for record in records] for name in names})


@styled()
def draw_curves(data: Curves) -> Figure:
    """Loss on a logarithmic axis, the share of right answers on a plain one."""
    figure, left, right = _two_panels(3.2)
    for axes, (trained, valid) in zip((left, right), _loss_and_percent(data), strict=True):
        axes.plot(data.steps.step, trained, color=BLUE, label="training batches")
        axes.plot(data.epochs.step, valid, "o-", color=ORANGE, label="validation")
    left.legend()
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    return figure


@styled()
def draw_both_curves(data: BothCurves) -> Figure:
    """Validation with marks, training batches as a thin line of the same colour."""
    figure, left, right = _two_panels(3.5)
    for run, (colour, look) in zip(data.runs, _LOOKS, strict=True):
        for axes, (trained, valid) in zip((left, right), _loss_and_percent(run), strict=True):
            axes.plot(run.steps.step, trained, color=colour, linewidth=0.8, alpha=0.5)
            name = run.run if axes is left else None
            axes.plot(run.epochs.step, valid, look, color=colour, markersize=4, label=name)
    figure.legend(loc="outside lower center", ncols=2, title="validation (thin: training batches)")
    return figure


def _two_panels(height: float) -> tuple[Figure, Axes, Axes]:
    figure = new_figure(9.0, height)
    left, right = figure.subplots(1, 2)
    left.set(yscale="log", xlabel="step", ylabel="cross-entropy", title="Loss")
    right.set(ylim=(-2, 102), xlabel="step", ylabel="% correct", title="Right answers")
    return figure, left, right


def _loss_and_percent(run: Curves) -> Iterator[tuple[list[float], list[float]]]:
    """Training batches and validation, of either panel."""
    yield run.steps.loss, run.epochs.valid_loss
    trained, valid = run.steps.exact_match, run.epochs.valid_exact_match
    yield [100 * share for share in trained], [100 * share for share in valid]


def probes_data(metrics: Metrics) -> Probes:
    return _columns(Probes, metrics.probes)


@styled()
def draw_probes(data: Probes) -> Figure:
    """Both answers over training."""
    figure, axes = new_axes(9.0, 2.8)
    axes.axhline(1, color=GREY, linewidth=0.6)
    axes.plot(data.step, data.entropy, "o-", color=BLUE, label="entropy of attention, 1 = uniform")
    moved = [value for value in data.moved if value is not None]
    if len(moved) == len(data.step):
        axes.plot(data.step, moved, "s--", color=ORANGE, label="answer moved by shuffled patches")
    axes.set(xlabel="step", ylim=(-0.03, 1.06))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    return figure
