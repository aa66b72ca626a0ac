"""Studies that cross two factors, on values whose parts are known."""

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from attnlab.analysis.statistics import describe_seeds
from attnlab.errors import SpecError
from attnlab.figures.studies import draw_factors, factors_data
from attnlab.studies import Study
from attnlab.studies.outcome import StudyResult, VariantResult, part_variance
from attnlab.tables.study import study_tables
from made_up_results import study_result
from tiny_studies import STUDIES, TINY

ROWS, COLUMNS = ("near", "far"), ("mean", "min", "max")


def study(**changes: Any) -> Study:
    variants = {f"{row}, {column}": TINY for row in ROWS for column in COLUMNS}
    return replace(STUDIES[0], variants=variants, baseline=None, factors=("place", "pool"), **changes)


def variants(plan: Study) -> list[VariantResult]:
    """The first measure depends on the pool alone, the second on place and pool only together."""
    crossed = {("near", "mean"), ("far", "min")}

    def values(name: str) -> dict[str, list[float]]:
        row, column = name.split(", ")
        by_pool = [0.5 + 0.25 * COLUMNS.index(column)] * 2
        mixed = [1.0 if (row == "near") == (column == "mean") else 0.5] * 2
        both = mixed if column != "max" else [0.75, 0.75]
        assert (both[0] == 1.0) == ((row, column) in crossed)
        return {"exact_match": by_pool, "token_accuracy": both, "steps_to_99": [3.0, 3.0]}

    return [
        VariantResult(
            name=name,
            spec={},
            runs=[],
            measures={measure: describe_seeds(list(found)) for measure, found in values(name).items()},
            failed=[],
        )
        for name in plan.variants
    ]


def result(plan: Study) -> StudyResult:
    measures = [
        {"name": m.name, "title": m.title, "unit": m.unit, "better": m.better} for m in plan.measures
    ]
    found = variants(plan)
    factors = part_variance(plan, found)
    return study_result({"seeds": [0, 1], "measures": measures, "variants": found, "factors": factors})


def test_variance_goes_to_the_factor_that_decides() -> None:
    plan = study()
    parted = part_variance(plan, variants(plan))
    assert parted is not None
    assert (parted.names, parted.rows, parted.columns) == (
        ["place", "pool"],
        list(ROWS),
        list(COLUMNS),
    )
    shares = [
        {part: round(getattr(row, part).share, 9) for part in ("rows", "columns", "both", "seeds")}
        for row in parted.variance
    ]
    assert shares[0] == {"rows": 0, "columns": 1, "both": 0, "seeds": 0}
    assert shares[1] == {"rows": 0, "columns": 0, "both": 1, "seeds": 0}
    assert shares[2] == {"rows": 0, "columns": 0, "both": 0, "seeds": 0}


def test_nothing_is_parted_while_a_seed_is_missing() -> None:
    plan = study()
    found = variants(plan)
    found[1].measures["exact_match"] = describe_seeds([0.5, None])
    assert part_variance(plan, found) is None


def test_a_cell_that_is_missing() -> None:
    whole = study()
    some = {name: spec for name, spec in whole.variants.items() if name != "far, min"}
    with pytest.raises(SpecError, match="crosses place x pool, but lacks a variant"):
        replace(whole, variants=some)


def test_the_table_names_the_factors() -> None:
    table = study_tables(result(study()))[0]
    assert table.columns == ("measure", "place", "pool", "both", "seeds")
    assert table.rows[0][2].startswith("100.00%")


def test_the_figure_orders_by_what_works() -> None:
    data = factors_data(result(study()))
    assert data.columns == ["mean", "min", "max"]  # all are alike in what is drawn, so their order stays
    assert [panel.title for panel in data.panels] == [m.title for m in study().measures[1:]]
    assert data.panels[0].percent == [[100.0, 50.0, 75.0], [50.0, 100.0, 75.0]]
    assert data.panels[0].variance == pytest.approx([0, 0, 100, 0], abs=1e-6)
    figure = draw_factors(data)
    assert isinstance(figure, Figure)
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert cells == ["100", "50", "75", "50", "100", "75"]
