"""How far gradients written by hand are from both witnesses."""

from collections.abc import Iterator

from attnlab.analysis.gradients import AUTOGRAD_LIMIT, CENTRAL_LIMIT, GradientCheck
from attnlab.results import Part, Table

COLUMNS = ("tensor", "shape", "autograd, float32", "central differences, float64", "weights moved")


def tables(found: GradientCheck) -> Iterator[Part]:
    yield Table(
        "relative differences",
        COLUMNS,
        tuple(
            (
                row.tensor,
                " x ".join(map(str, row.shape)),
                f"{row.autograd:.1e}",
                f"{row.central:.1e}",
                f"{row.moved}" + (f", {row.kinks} on a kink" if row.kinks else ""),
            )
            for row in found.tensors
        ),
    )
    limits = f"limits {AUTOGRAD_LIMIT:g} and {CENTRAL_LIMIT:g}"
    yield f"every tensor agrees ({limits})" if found.passes else f"gradients disagree ({limits})"
