"""The page of a diagnosis: findings with picture, remedy and explanation, then what was checked; and what
the page of a run says of it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from attnlab.display import duration
from attnlab.doctor.explanations import explanation_of
from attnlab.doctor.findings import Check, Curve, Diagnosis, Finding, Outcome
from attnlab.figures.findings import Bars, draw_evidence, evidence_data
from attnlab.report.page import (
    Checklist,
    Code,
    Figure,
    Item,
    Made,
    Mark,
    Page,
    Section,
    as_json,
    figure,
    write_page,
)
from attnlab.results import Table
from attnlab.storage import make_folder, write_json
from attnlab.tables.doctor import FAMILIES, STATES, counted, figures, source_words, tables

__all__ = ["diagnosis_section", "figures", "save", "tables", "write_diagnosis"]

MARKS: dict[Outcome, Mark] = {"found": "bad", "clear": "good", "unchecked": "open", "inapplicable": "none"}


def save(found: Diagnosis, path: Path) -> list[Path]:
    """A page where ``path`` ends in .html, else a folder with the numbers and a picture of each finding."""
    if path.suffix == ".html":
        return [write_diagnosis(found, path)]
    make_folder(path)
    write_json(path / "diagnosis.json", found.to_json())
    return [path / "diagnosis.json", *found.save_figures(path)]


def write_diagnosis(found: Diagnosis, path: Path) -> Path:
    """Write the page about ``found`` to ``path``."""
    count = len(found.findings)
    page = Page(
        title=f"Diagnosis of {found.run}",
        what=f"{counted(found.checks)}, in {duration(found.seconds)}.",
        proof=_proof(found.findings),
        good=not found.findings,
        sections=[
            *(finding_section(number, each) for number, each in enumerate(found.findings, 1)),
            _chart({each.kind for each in found.findings}, found.checks),
        ],
        cards=[(str(count), "finding" if count == 1 else "findings"), (str(len(found.serious)), "serious")],
        made=Made(_commands(found, path), [("diagnosis.json", as_json(found.to_json()))]),
    )
    return write_page(page, path)


def _commands(found: Diagnosis, path: Path) -> list[tuple[str, str]]:
    """Of a run; no command diagnoses a model of your own."""
    if not (found.run.startswith("zoo:") or Path(found.run, "spec.json").exists()):
        return []
    command = f"attnlab doctor {quote(found.run)} --out {quote(str(path))}"
    return [("This command makes the same diagnosis:", command)]


def _proof(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Nothing found."
    first = findings[0]
    return f"{'Most likely' if len(findings) > 1 else 'Found'}: {first.kind}. {_sentence(first.text)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def finding_section(number: int, finding: Finding) -> Section:
    """What was found, why it matters, and what to do about it."""
    why = explanation_of(finding.kind)
    source = source_words(finding.source)
    words = [
        f"{finding.severity.capitalize()}, confidence {finding.confidence:.0%}, by {source}.",
        _sentence(finding.text),
    ]
    if finding.explained_by:
        words.append(f"This is explained by another finding, {finding.explained_by}.")
    remedy = finding.remedy
    codes = [Code(_sentence(remedy.text), remedy.command, "What to do")]
    codes += [Code("In a training loop of your own:", remedy.code)] if remedy.code else []
    if why is not None:
        paper = f" See {why.paper}." if why.paper else ""
        codes.append(Code(f"{why.text}{paper} A small example to run:", why.code, "Why it happens"))
    drawn = _picture(finding)
    evidence = tuple((name, f"{value:.4g}") for name, value in finding.evidence.items())
    return Section(
        finding.kind,
        f"{number}. {finding.kind}",
        words,
        [] if drawn is None else [drawn],
        [Table("The evidence", ("number", "value"), evidence)] if evidence else [],
        codes=codes,
    )


def _picture(finding: Finding) -> Figure | None:
    data = evidence_data(finding)
    if data is None:
        return None
    return figure(f"evidence-{finding.kind}", "What it looks like", data, draw_evidence, _reading(data), "")


def _reading(data: Curve | Bars) -> str:
    if isinstance(data, Bars):
        axis = " The axis is logarithmic." if data.logarithmic else ""
        return f"A bar for each number that the finding rests on.{axis}"
    ends = [
        f"{name} goes from {values[0]:.3g} to {values[-1]:.3g}, with {min(values):.3g} the lowest and "
        f"{max(values):.3g} the highest"
        for name, values in data.lines.items()
        if values
    ]
    return f"{data.y_label.capitalize()} by {data.x_label}: {'; '.join(ends)}."


def _chart(found: Iterable[str], checks: Sequence[Check]) -> Section:
    known = set(found)
    lists = [
        Checklist(title, [_item(each, known) for each in checks if each.family == family])
        for family, title in FAMILIES.items()
    ]
    words = [
        "✓ clear: looked for and not there; ✗ found; ? could not be checked, with the reason; – does not "
        "apply to this model or task."
    ]
    return Section("chart", "What was checked", words, checklists=[each for each in lists if each.items])


def _item(check: Check, found: set[str]) -> Item:
    link = check.kind if check.kind in found else ""
    return Item(MARKS[check.outcome], STATES[check.outcome], check.kind, check.reason, link)


def diagnosis_section(found: Diagnosis) -> Section:
    """What the page of a run says of it."""
    words = [f"{counted(found.checks)}."]
    if not found.findings:
        return Section("doctor", "What the doctor finds", [*words, "Nothing was found."])
    counts = Counter(each.severity for each in found.findings)
    said = ", ".join(f"{counts[each]} {each}" for each in ("serious", "warning", "note") if counts[each])
    rows = tuple(
        (each.kind, each.severity, f"{each.confidence:.0%}", _sentence(each.text), each.remedy.text)
        for each in found.findings
    )
    command = f"attnlab doctor {quote(found.run)} --out doctor.html"
    words.append(f"By severity: {said}. '{command}' writes a page with pictures, code and explanations.")
    table = Table("The most likely first", ("finding", "severity", "confidence", "what", "remedy"), rows)
    return Section("doctor", "What the doctor finds", words, tables=[table])
