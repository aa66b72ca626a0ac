"""What ``calibrate`` finds."""

from collections.abc import Iterator

from attnlab.analysis import percent
from attnlab.analysis.calibrate import CalibrateResult
from attnlab.results import Part, Table


def tables(found: CalibrateResult) -> Iterator[Part]:
    rows = (("before", found.before), (f"temperature {found.temperature:g}", found.after))
    yield Table(
        f"{found.run}: probabilities of {found.tokens:,} validation targets",
        ("", "loss", "expected calibration error"),
        tuple((name, f"{fit.loss:.4f}", percent(fit.ece)) for name, fit in rows),
    )
    if not found.missed:
        yield "no target is missed, so nothing bounds the temperature: it is 1"
