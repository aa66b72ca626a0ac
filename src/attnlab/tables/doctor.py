"""What the doctor finds: each finding with its evidence and remedy, then what was checked."""

from collections.abc import Iterator

from attnlab.display import duration
from attnlab.doctor.findings import Diagnosis, Finding
from attnlab.figures.findings import draw_evidence
from attnlab.results import Drawing, Part, Table


def tables(found: Diagnosis) -> Iterator[Part]:
    for number, each in enumerate(found.findings, 1):
        yield _finding(number, each)
    if not found.findings:
        yield f"{found.run}: nothing found"
    yield Table(
        f"{found.run}: what was checked, in {duration(found.seconds)}",
        ("fault", "family", "by", "outcome", "why not"),
        tuple((each.kind, each.family, each.source, each.outcome, each.reason) for each in found.checks),
    )


def _finding(number: int, each: Finding) -> Table:
    rows = [
        ("finding", each.text),
        ("severity", f"{each.severity}, confidence {each.confidence:.0%}"),
        *((name, f"{value:.4g}") for name, value in each.evidence.items()),
        ("remedy", each.remedy.text),
    ]
    rows += [("try", each.remedy.command)] if each.remedy.command else []
    rows += [("code", each.remedy.code)] if each.remedy.code else []
    return Table(f"{number}. {each.kind}", ("", ""), tuple(rows))


def figures(found: Diagnosis) -> dict[str, Drawing]:
    """The evidence of each finding that has a picture."""
    return {
        f"doctor-{each.kind}": Drawing(each.curve, draw_evidence)
        for each in found.findings
        if each.curve is not None
    }
