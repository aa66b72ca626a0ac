"""How a run trained: a table of its epochs, and curves over its steps."""

from collections.abc import Iterator
from typing import Any

from attnlab.analysis import percent
from attnlab.results import Drawing, Part, Table
from attnlab.runs import Metrics


def tables(metrics: Metrics) -> Iterator[Part]:
    rows = metrics.records()
    names = tuple(rows[0]) if rows else ()
    cells = (tuple(_word(name, row.get(name)) for name in names) for row in rows)
    yield Table(metrics.run, names, tuple(cells))


def figures(metrics: Metrics) -> dict[str, Drawing]:
    """Loss and accuracy; what probes found, where there were such."""
    from attnlab.figures import curves as of

    made = {"curves": Drawing(of.curves_data(metrics), of.draw_curves)}
    if metrics.probes:
        made["probes"] = Drawing(of.probes_data(metrics), of.draw_probes)
    return made


def _word(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("accuracy"):
        return percent(value)
    return str(value) if isinstance(value, int) else f"{value:.2f} s" if name == "time" else f"{value:.4f}"
