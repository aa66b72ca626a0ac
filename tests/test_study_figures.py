from typing import Any, Literal

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from attnlab.analysis.statistics import describe_seeds
from attnlab.figures.studies import SeedsRow, draw_seeds, seeds_data
from attnlab.figures.style import to_svg
from attnlab.figures.sweeps import (
    Best,
    Importance,
    Parallel,
    Points,
    draw_history,
    draw_importance,
    draw_parallel,
    history_data,
    importance_data,
    parallel_data,
)
from attnlab.specs import to_json
from attnlab.studies.sweeps.parts import Sought, TrialResult, TrialState
from made_up_results import study_result

MEASURES = [
    {"name": "exact_match", "title": "exact match on test sums", "unit": "share", "better": "higher"},
    {"name": "steps", "title": "steps to 99%", "unit": "steps", "better": "lower"},
    {"name": "loss", "title": "validation loss", "unit": "number", "better": "lower"},
]


def variant(name: str, failed: tuple[int, ...] = (), **values: list[float | None]) -> dict[str, Any]:
    return {
        "name": name,
        "measures": {measure: describe_seeds(found) for measure, found in values.items()},
        "failed": [{"seed": seed, "error": "out of memory"} for seed in failed],
    }


def result(measures: int = 2) -> dict[str, Any]:
    return {
        "seeds": [0, 1, 2],
        "baseline": "learned",
        "measures": MEASURES[:measures],
        "variants": [
            variant("learned", exact_match=[0.5, 0.5, 0.5], steps=[700, 300, 500], loss=[0.1, 0.2, 0.3]),
            variant("rotary", (1,), exact_match=[0.75, None, 1.0], steps=[900, None, None], loss=[0.1] * 3),
            variant("none", (), exact_match=[0.25] * 3, steps=[None] * 3, loss=[0.1] * 3),
        ],
    }


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def labelled(axes: Axes, label: str) -> list[list[list[float]]]:
    """x and y of the lines that stand under ``label`` in the legend."""
    return [np.asarray(line.get_data()).tolist() for line in axes.lines if line.get_label() == label]


def brightness(line: Line2D) -> float:
    return sum(to_rgb(line.get_color()))


def assert_the_same_bytes_twice(draw: Any, data: Any) -> None:
    first, second = (to_svg(draw(data)) for _ in range(2))
    assert first == second


def beyond(axis: Axis) -> set[Text]:
    """Labels of ticks outside the limits, which are kept but not drawn."""
    low, high = sorted(axis.get_view_interval())
    return {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}


def assert_nothing_overlaps(figure: Figure) -> None:
    """No two texts of the drawn figure share a place."""
    figure.draw_without_rendering()
    hidden = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in beyond(axis)}
    texts = [each for each in figure.findobj(Text) if isinstance(each, Text) and each not in hidden]
    shown = [text for text in texts if text.get_visible() and text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown]
    assert len(boxes) > 3
    for i, (text, box) in enumerate(boxes):
        for other, second in boxes[:i]:
            assert not box.overlaps(second), (text, other)


def test_a_row_holds_percent_mean_interval_and_what_is_missing() -> None:
    match, steps = seeds_data(study_result(result())).panels
    assert match.rows[1] == SeedsRow(
        variant="rotary",
        values=[75.0, None, 100.0],
        mean=87.5,
        interval=(75.0, 100.0),
        notes=["1 of 3 failed"],
    )
    assert [row.notes for row in steps.rows] == [
        [], ["anecdotal", "1 of 3 failed", "1 of 3 never"], ["3 of 3 never"]
    ]  # fmt: skip
    assert steps.rows[1].interval is None
    assert steps.rows[2].mean is None
    assert (match.label, steps.label) == ("% (higher is better)", "steps (lower is better)")
    assert (match.baseline, steps.baseline) == (50.0, 500.0)
    assert match.limits == pytest.approx([25 - 3.75, 100 + 3.75])


def test_seeds_that_have_not_run_are_told_from_those_that_never_got_there() -> None:
    found = {
        **result(),
        "timings": {"learned": [1.0] * 3, "rotary": [2.0, None, 3.0], "none": [4.0, None, None]},
    }
    steps = seeds_data(study_result(found)).panels[1]
    assert steps.rows[1].notes == ["anecdotal", "1 of 3 failed", "1 of 3 never"]
    assert steps.rows[2].notes == ["2 of 3 not yet", "1 of 3 never"]


@pytest.mark.parametrize(
    ("unit", "values", "limits"),
    [
        ("share", [1.0, 1.0], [94.75, 100.25]),
        ("share", [0.0, 0.0], [-0.05, 1.05]),
        ("share", [None, None], [-5.0, 105.0]),
        ("steps", [3, 3], [1.9, 4.1]),
        ("number", [0.0, 0.0], [-1.1, 1.1]),
        ("number", [2.0, 2.0], [1.89, 2.11]),
    ],
)
def test_equal_values_have_an_axis_of_some_width(
    unit: str, values: list[float | None], limits: list[float]
) -> None:
    study = {
        "seeds": [0, 1],
        "baseline": None,
        "measures": [{"name": "x", "title": "x", "unit": unit, "better": "higher"}],
        "variants": [variant("one", x=values)],
    }
    (panel,) = seeds_data(study_result(study)).panels
    assert panel.limits == pytest.approx(limits)
    assert panel.baseline is None
    (axes,) = draw_seeds(seeds_data(study_result(study))).axes
    assert axes.get_xlim() == pytest.approx(limits)


def test_every_seed_is_a_dot_of_its_own() -> None:
    match, steps = draw_seeds(seeds_data(study_result(result()))).axes
    dots = [np.asarray(each.get_offsets()).tolist() for each in match.collections]
    assert [[x for x, _ in row] for row in dots] == [[50.0] * 3, [75.0, 100.0], [25.0] * 3]
    assert len({y for row in dots for _, y in row}) == 8
    assert [len(np.asarray(each.get_offsets())) for each in steps.collections] == [3, 1]
    assert [line[0] for line in labelled(match, "95% interval")] == [[50, 50], [75, 100], [25, 25]]
    assert [line[0] for line in labelled(match, "mean")] == [[50.0], [87.5], [25.0]]
    assert labelled(match, "mean of learned") == [[[50.0, 50.0], [0, 1]]]
    assert texts(steps) == ["anecdotal\n1 of 3 failed\n1 of 3 never", "3 of 3 never"]


def test_a_seed_lies_at_the_same_height_in_all_panels_and_dots_above_the_mean() -> None:
    match, steps = draw_seeds(seeds_data(study_result(result()))).axes
    first, second = (np.asarray(axes.collections[0].get_offsets())[:, 1] for axes in (match, steps))
    assert first.tolist() == second.tolist()
    ((_, (mean, _)), *_) = labelled(match, "95% interval")
    assert first.max() < mean
    assert match.yaxis.get_inverted()


def test_variants_are_named_in_the_first_panel_of_a_line_only() -> None:
    figure = draw_seeds(seeds_data(study_result(result(3))))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "exact match on test sums", "steps to 99%", "validation loss", ""
    ]  # fmt: skip
    named = [
        [t.get_text() for t in axes.get_yticklabels() if t.get_text() and t.get_visible()]
        for axes in figure.axes[:3]
    ]
    assert named == [["learned", "rotary", "none"], [], ["learned", "rotary", "none"]]
    assert not figure.axes[3].axison
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "mean of learned", "one seed", "95% interval", "mean"
    }  # fmt: skip
    assert_nothing_overlaps(figure)


def test_a_study_without_any_value_can_be_drawn() -> None:
    study = {
        **result(1),
        "variants": [variant("none", (0, 1, 2), exact_match=[None] * 3)],
        "baseline": "none",
    }
    figure = draw_seeds(seeds_data(study_result(study)))
    assert texts(figure.axes[0]) == ["3 of 3 failed"]
    assert figure.legends == []


def test_seeds_give_the_same_bytes() -> None:
    assert_the_same_bytes_twice(draw_seeds, seeds_data(study_result(result())))


def trial(number: int, state: TrialState, value: float | None, **parameters: Any) -> TrialResult:
    return TrialResult(
        number=number,
        state=state,
        value=value,
        parameters={name.replace("__", "."): found for name, found in parameters.items()},
        run="",
        error=None,
        epochs=0,
        stability=None,
        steps_to_converge=None,
        parameter_count=None,
    )


MOST, LEAST = Sought("valid_exact_match", "maximize"), Sought("loss", "minimize")


TRIALS = [
    trial(2, "finished", 0.9, training__lr=0.01, model__positions="rotary", model__heads=4, width=64),
    trial(0, "finished", 0.5, training__lr=0.0001, model__positions="learned", model__heads=2, width=64),
    trial(1, "pruned", 0.1, training__lr=1.0, model__positions="none", model__heads=1, width=64),
    trial(3, "failed", None, training__lr=0.1, model__positions="none", model__heads=1, width=64),
    trial(4, "finished", 0.7, training__lr=0.001, model__positions="learned", model__heads=1, width=64),
    trial(5, "pruned", None, training__lr=0.1, model__positions="none", model__heads=1, width=64),
    trial(7, "running", None, training__lr=0.1, model__positions="none", model__heads=1, width=64),
]
SCALES: dict[str, Literal["linear", "log", "choice"]] = {
    "training.lr": "log",
    "model.positions": "choice",
    "model.heads": "choice",
    "width": "linear",
}


def parallel(trials: list[TrialResult], sought: Sought = MOST) -> Parallel:
    return parallel_data(trials, sought, scales=SCALES)


def test_history_holds_the_best_of_the_finished_so_far() -> None:
    data = history_data(TRIALS, MOST)
    assert to_json(data) == {
        "metric": "valid_exact_match",
        "goal": "maximize",
        "finished": {"number": [0, 2, 4], "value": [0.5, 0.9, 0.7]},
        "pruned": {"number": [1], "value": [0.1]},
        "without": [3, 5],
        "best": [0.5, 0.9, 0.9],
        "last": 5,
        "scale": "linear",
    }
    assert history_data(TRIALS, LEAST).best == [0.5, 0.5, 0.5]


def test_history_draws_each_state_by_its_own_sign() -> None:
    (axes,) = draw_history(history_data(TRIALS, MOST)).axes
    assert labelled(axes, "finished") == [[[0, 2, 4], [0.5, 0.9, 0.7]]]
    assert labelled(axes, "pruned") == [[[1], [0.1]]]
    assert labelled(axes, "best so far") == [[[0, 2, 4, 5], [0.5, 0.9, 0.9, 0.9]]]
    ((crosses, _),) = labelled(axes, "no value")
    assert crosses == [3, 5]
    assert len({line.get_marker() for line in axes.lines if line.get_label() != "best so far"}) == 3
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("trial", "valid_exact_match (higher is better)")


def test_a_loss_over_several_powers_of_ten_has_a_logarithmic_axis() -> None:
    trials = [trial(0, "finished", 2.0), trial(1, "finished", 0.003)]
    data = history_data(trials, LEAST)
    assert data.scale == "log"
    (axes,) = draw_history(data).axes
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "loss (lower is better)"
    assert history_data(trials, MOST).scale == "linear"
    zero = [*trials, trial(2, "finished", 0.0)]
    assert history_data(zero, LEAST).scale == "linear"


def test_one_trial_has_whole_numbers_on_its_axis() -> None:
    (axes,) = draw_history(history_data(TRIALS[:1], MOST)).axes
    assert [tick for tick in axes.get_xticks() if 1.5 <= tick <= 2.5] == [2]


def test_parallel_places_by_hand() -> None:
    data = parallel(TRIALS)
    assert [(axis.name, axis.scale) for axis in data.axes] == [
        ("training.lr", "log"),
        ("model.positions", "choice"),
        ("model.heads", "choice"),
        ("valid_exact_match", "linear"),
    ]
    assert {line.number: line.places for line in data.lines} == {
        0: pytest.approx([0.0, 1.0, 0.5, 0.0]),
        2: pytest.approx([1.0, 0.0, 1.0, 1.0]),
        4: pytest.approx([0.5, 1.0, 0.0, 0.5]),
    }
    lr, positions, heads, score = (axis.ticks for axis in data.axes)
    assert lr == [(0.0, "0.0001"), (0.5, "0.001"), (1.0, "0.01")]
    assert positions == [(0.0, "rotary"), (1.0, "learned")]
    assert heads == [(0.0, "1"), (0.5, "2"), (1.0, "4")]
    assert [label for _, label in score] == ["0.5", "0.6", "0.7", "0.8", "0.9"]
    assert [place for place, _ in score] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert data.best == Best(2, 0.9)
    assert data.left_out == ["width"]
    assert parallel(TRIALS, LEAST).best == Best(0, 0.5)


def test_parallel_draws_a_line_for_each_trial_and_the_best_in_orange() -> None:
    figure = draw_parallel(parallel(TRIALS))
    (axes,) = figure.axes
    whole = [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 4]
    assert [line.get_linewidth() for line in whole] == [1.3, 1.3, 3, 1.3]
    assert np.asarray(whole[1].get_ydata()).tolist() == np.asarray(whole[2].get_ydata()).tolist()
    assert whole[2].get_color() == "#D55E00"
    assert whole[2].get_label() == "best: trial 2 with 0.9"
    worst, best = (brightness(line) for line in whole[:2])
    assert best < worst
    assert [t.get_text() for t in axes.get_xticklabels()] == [
        "training.lr",
        "model.positions",
        "model.heads",
        "valid_exact_match",
    ]
    assert {"0.001", "rotary", "learned"} <= set(texts(axes))
    assert axes.get_xlabel() == "the same in all trials: width"
    assert_nothing_overlaps(figure)


def test_darker_is_better_whatever_the_goal() -> None:
    (axes,) = draw_parallel(parallel(TRIALS, LEAST)).axes
    whole = [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 4]
    best, _, worst, _ = (brightness(line) for line in whole)
    assert best < worst


def test_a_trial_may_lack_a_parameter() -> None:
    trials = [
        trial(0, "finished", 0.5, a=1.0, b=1.0),
        trial(1, "finished", 0.6, a=2.0),
        trial(2, "finished", 0.6, a=3.0, b=3.0),
    ]
    data = parallel(trials)
    assert [line.places[1] for line in data.lines] == [0.0, None, 1.0]
    (axes,) = draw_parallel(data).axes
    assert any(np.isnan(np.asarray(line.get_ydata())).any() for line in axes.lines)


def test_what_is_no_number_is_a_choice_and_what_is_not_positive_has_no_logarithm() -> None:
    trials = [
        trial(i, "finished", 0.5, flag=bool(i), word=["a", 2][i], training__lr=0.1 * i) for i in (0, 1)
    ]
    data = parallel(trials)
    assert [axis.scale for axis in data.axes] == ["choice", "choice", "linear", "linear"]
    assert data.axes[0].ticks == [(0.0, "false"), (1.0, "true")]
    assert data.axes[1].ticks == [(0.0, "a"), (1.0, "2")]


def test_axes_without_round_numbers_in_reach_show_their_ends() -> None:
    trials = [trial(i, "finished", 0.5, training__lr=0.0011 * 1.5**i, size=16384 * 3**i) for i in (0, 1)]
    lr, size, _ = (axis.ticks for axis in parallel(trials).axes)
    assert lr == [(0.0, "0.0011"), (1.0, "0.00165")]
    assert [label for _, label in size] == ["20000", "30000", "40000"]


def test_equal_values_lie_in_the_middle() -> None:
    data = parallel([trial(i, "finished", 0.5, a=float(i)) for i in range(3)])
    assert [line.places[-1] for line in data.lines] == [0.5] * 3
    assert data.axes[-1].ticks == [(0.5, "0.5")]
    assert data.best == Best(0, 0.5)


def test_long_words_are_shortened_in_their_middle() -> None:
    words = ["linear-warmup-then-cosine", "linear-warmup-then-constant"]
    data = parallel([trial(i, "finished", 0.5, model__positions=word) for i, word in enumerate(words)])
    assert [label for _, label in data.axes[0].ticks] == ["linear-wa…sine", "linear-wa…tant"]


def test_long_names_do_not_run_into_one_another() -> None:
    names = [f"model.part{i}.a_rather_long_name_for_a_parameter" for i in range(5)]
    trials = [trial(i, "finished", 0.5 + i, **dict.fromkeys(names, i)) for i in range(3)]
    assert_nothing_overlaps(draw_parallel(parallel(trials)))


@pytest.mark.parametrize("trials", [[], TRIALS[3:4], [trial(0, "finished", float("nan"), a=1)]])
def test_figures_say_that_no_trial_has_finished(trials: list[TrialResult]) -> None:
    history = history_data(trials, MOST)
    assert (history.finished, history.best) == (Points([], []), [])
    lines = parallel(trials)
    assert (lines.lines, lines.axes, lines.best) == ([], [], None)
    for figure in (
        draw_history(history),
        draw_parallel(lines),
        draw_importance(importance_data({}, metric="x")),
    ):
        assert [text.get_text() for text in figure.texts] == ["no finished trial"]


def test_one_trial_has_nothing_to_compare() -> None:
    (text,) = draw_parallel(parallel(TRIALS[:1])).texts
    assert text.get_text() == "no parameter varies"


def test_importances_are_bars_from_the_longest() -> None:
    data = importance_data({"b": 0.25, "training.lr": 0.625, "a": 0.125}, metric="score")
    assert data == Importance("score", ["training.lr", "b", "a"], [62.5, 25.0, 12.5])
    figure = draw_importance(data)
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == [62.5, 25.0, 12.5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["training.lr", "b", "a"]
    assert texts(axes) == ["62.5%", "25.0%", "12.5%"]
    assert axes.get_xlabel() == "% of importance for score"
    assert axes.yaxis.get_inverted()
    assert_nothing_overlaps(figure)


def test_sweeps_give_the_same_bytes() -> None:
    assert_the_same_bytes_twice(draw_history, history_data(TRIALS, MOST))
    assert_the_same_bytes_twice(draw_parallel, parallel(TRIALS))
    assert_the_same_bytes_twice(draw_importance, importance_data({"a": 1.0}, metric="score"))
