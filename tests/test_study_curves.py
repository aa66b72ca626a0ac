"""Curves of a study: from what runs keep to rows of a result, and to lines of a figure."""

from pathlib import Path

import pytest

from attnlab.analysis.statistics import describe_seeds
from attnlab.figures.studies import Line, draw_variants, variants_data
from attnlab.runs import RunFolder
from attnlab.studies import EXACT_MATCH, Curve, Study
from attnlab.studies.outcome import StudyResult, collect
from attnlab.studies.study import CurveWords
from made_up_results import study_result
from tiny_studies import TINY


def read(run: RunFolder) -> dict[int, float]:
    return {8: 1.0, 16: 0.5}


LENGTHS = Curve(
    name="swap", title="accuracy", over="length", unit="share", read=read, analysis="lengths-256"
)
STUDY = Study(
    name="tiny-curves", question="?", variants={"plain": TINY}, measures=(EXACT_MATCH,), curves=(LENGTHS,)
)


def test_a_curve_asks_for_its_analysis() -> None:
    assert STUDY.analyses == ("evaluate-test", "lengths-256")


def test_a_result_without_runs_has_empty_curves(tmp_path: Path) -> None:
    result = collect(STUDY, tmp_path)
    assert result.curves == [CurveWords("swap", "accuracy", "length", "share")]
    assert result.variants[0].curves == {"swap": []}


def result() -> StudyResult:
    rows: dict[int, list[float | None]] = {8: [1.0, 0.5], 16: [0.5, None]}
    found = {
        "seeds": [0, 1],
        "curves": [
            {"name": "swap", "title": "accuracy", "over": "length", "unit": "share"},
            {"name": "margin", "title": "margin", "over": "length", "unit": "number"},
        ],
        "variants": [
            {
                "name": "plain",
                "curves": {
                    "swap": [{"at": at, **vars(describe_seeds(values))} for at, values in rows.items()],
                    "margin": [{"at": 8, **vars(describe_seeds([4.0, 2.0]))}],
                },
            }
        ],
    }
    return study_result(found)


def test_lines_hold_means_and_the_spread_of_seeds() -> None:
    data = variants_data(result())
    (line,) = data.panels[0].lines
    assert line == Line("plain", [8, 16], [75.0, 50.0], [50.0, 50.0], [100.0, 50.0])
    assert data.panels[1].lines[0].mean == [3.0]


def test_shares_are_drawn_from_chance_to_all_and_others_on_a_log_axis() -> None:
    shares, margins = draw_variants(variants_data(result())).axes
    assert shares.get_ylim() == (45, 102)
    assert shares.get_xscale() == "log"
    assert (shares.get_yscale(), margins.get_yscale()) == ("linear", "log")
    assert shares.lines[0].get_ydata() == pytest.approx([75, 50])
