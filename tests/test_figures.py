from dataclasses import replace
from typing import Any

import numpy as np
import torch
from study_figures import draw_pruned_seeds, pruned_seeds_data

from attnlab.analysis.record import AttentionPatterns
from attnlab.figures.curves import curves_data, draw_curves
from attnlab.figures.patterns import draw_patterns, patterns_data
from attnlab.figures.style import to_svg
from attnlab.problems.addition.evaluate import Chain
from attnlab.problems.addition.figures import chains_data, draw_chains
from attnlab.runs import Metrics
from attnlab.runs.records import RECORDS, ProbeRecord
from attnlab.specs import from_json

LINES: list[dict[str, Any]] = [
    {"event": "step", "step": 3, "loss": 2.0, "exact_match": 0.0, "lr": 0.1, "epoch": 0.5, "seconds": 1.0},
    {"event": "step", "step": 6, "loss": 1.0, "exact_match": 0.5, "lr": 0.2, "epoch": 1.0, "seconds": 2.0},
    {
        "event": "epoch", "epoch": 1, "step": 6, "loss": 1.5, "valid_loss": 1.2,
        "valid_token_accuracy": 0.9,         "valid_exact_match": 0.4, "seconds": 2.5, "best": True,
    },
]  # fmt: skip
METRICS = Metrics(lines=[from_json(RECORDS[each["event"]], each, extra=True) for each in LINES])

CHAINS = [
    Chain(0, 5, 1.0, (0.5, 1.0)),
    Chain(2, 4, 0.25, (0.05, 0.7)),
]


def test_curves_hold_steps_and_epochs_apart() -> None:
    data = curves_data(METRICS)
    assert vars(data.steps) == {
        "step": [3, 6],
        "loss": [2.0, 1.0],
        "exact_match": [0.0, 0.5],
        "lr": [0.1, 0.2],
    }
    assert data.epochs.valid_loss == [1.2]
    loss, exact = draw_curves(data).axes
    assert [np.asarray(line.get_ydata()).tolist() for line in loss.lines] == [[2.0, 1.0], [1.2]]
    assert [np.asarray(line.get_ydata()).tolist() for line in exact.lines] == [[0.0, 50.0], [40.0]]


def test_metrics_show_themselves() -> None:
    assert METRICS.records() == [
        {"epoch": 1, "loss": 1.5, "time": 2.5, "valid_loss": 1.2, "valid_accuracy": 0.4}
    ]
    assert "<td>40.00%</td>" in METRICS._repr_html_()
    assert list(METRICS.figures()) == ["curves"]
    probed = replace(METRICS, lines=[*METRICS.lines, ProbeRecord(6, 0.75, 0.25)])
    assert list(probed.figures()) == ["curves", "probes"]
    assert probed.records()[0]["moved"] == 0.25
    assert Metrics(lines=[]).records() == []


def test_figures_are_shown_by_notebooks() -> None:
    """IPython shows what has ``_repr_png_``, 9 x 3.2 inches: 144 dots an inch, 80 on the screen."""
    from IPython.core.formatters import DisplayFormatter

    data, about = DisplayFormatter().format(METRICS.plot())  # type: ignore[no-untyped-call]
    size = np.frombuffer(data["image/png"][16:24], dtype=">u4").tolist()
    assert size == [1296, 460]
    assert about["image/png"] == {"width": 720, "height": 256}


def test_chains_are_bars_in_percent() -> None:
    data = chains_data(CHAINS)
    assert data == {
        "chain": [0, 2],
        "examples": [5, 4],
        "percent": [100.0, 25.0],
        "interval": [[50.0, 100.0], [5.0, 70.0]],
    }
    (axes,) = draw_chains(data).axes
    assert [bar.get_height() for bar in axes.containers[1]] == [100.0, 25.0]
    assert {text.get_text() for text in axes.texts} == {"100.00%", "25.00%", "n = 5", "n = 4"}


def patterns() -> list[AttentionPatterns]:
    pattern = torch.eye(2).expand(3, 2, 2)
    return [
        AttentionPatterns("encoder.0.self", pattern, ["1", "+"], ["1", "+"]),
        AttentionPatterns("encoder.1.self", pattern[:2], ["1", "+"], ["1", "+"]),
    ]


def test_patterns_are_maps_on_one_scale_with_labels_on_both_axes() -> None:
    figure = draw_patterns(patterns_data(patterns()))
    drawn = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in drawn] == [
        "encoder.0.self.0", "encoder.0.self.1", "encoder.0.self.2", "encoder.1.self.0", "encoder.1.self.1"
    ]  # fmt: skip
    for axes in drawn:
        (mesh,) = axes.collections
        assert mesh.get_clim() == (0, 1)
        shown: Any = np.ma.asarray(mesh.get_array())
        assert shown.filled(0).tolist() == [[1, 0], [0, 1]]
        assert np.ma.getmaskarray(shown).tolist() == [[False, True], [True, False]]  # of no head any weight
        assert axes.patch.get_hatch()
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "+"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "+"]
        assert axes.yaxis.get_inverted()


def test_the_same_figure_gives_the_same_bytes() -> None:
    first, second = (to_svg(draw_chains(chains_data(CHAINS))) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")


def test_pruning_of_seeds_shows_every_seed_and_the_median() -> None:
    def points(*values: float) -> list[dict[str, Any]]:
        return [{"kept": 2 - n, "exact_match": value} for n, value in enumerate(values)]

    results = [
        {
            "seed": seed,
            "steps": 7,
            "allowed_loss": 0.01,
            "curves": {
                "mean": points(1.0, seed / 4, 0.0),
                "refit": points(1.0, 0.75, 0.25),
                "gates": points(1.0, 0.5, 0.25),
            },
            "finetuned": points(1.0, 1.0, 0.5)[1:],
        }
        for seed in (0, 1, 4)
    ]
    data = pruned_seeds_data(results)
    assert data["kept"] == [2, 1, 0]
    assert data["ways"]["mean"] == [[100.0, 0.0, 0.0], [100.0, 25.0, 0.0], [100.0, 100.0, 0.0]]
    assert (data["trained_kept"], data["trained"][0]) == ([1, 0], [100.0, 50.0])
    (axes,) = draw_pruned_seeds(data).axes
    lines = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    assert lines["greedy, means in their place"] == [100.0, 25.0, 0.0]
    assert lines["the same and 7 steps of training"] == [100.0, 50.0]
    assert len(axes.lines) == 4 * (3 + 1) + 1
