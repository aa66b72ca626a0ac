"""Studies that cross two factors: how much of the variance each explains, and both together."""

from typing import Any

import numpy as np

from attnlab.analysis.variance import explained
from attnlab.studies.study import Study, crossing


def part_variance(study: Study, variants: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Shares of the variance of every measure; None as long as a cell lacks a seed."""
    assert study.factors is not None
    rows, columns = study.crossed()
    found = {variant["name"]: variant["measures"] for variant in variants}
    parted = []
    for measure in study.measures:
        cells = [
            [found[crossing(row, column)][measure.name]["values"] for column in columns] for row in rows
        ]
        if any(value is None for line in cells for values in line for value in values):
            return None
        parted.append({"measure": measure.name, **explained(np.array(cells, dtype=np.float64))})
    return {"names": list(study.factors), "rows": rows, "columns": columns, "variance": parted}
