"""What the doctor finds: each finding with its evidence and remedy, then what was checked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import shorten, wrap
from typing import TYPE_CHECKING

from attnlab.display import duration
from attnlab.doctor.findings import Check, Diagnosis, Family, Finding, Outcome, Source
from attnlab.lazy import Later
from attnlab.results import Drawing, Part, Table

if TYPE_CHECKING:
    from attnlab.figures import findings as pictures
else:
    pictures = Later("attnlab.figures.findings")  # it draws, which takes long to load

FAMILIES: dict[Family, str] = {
    "optimisation": "Optimisation",
    "data": "Data and labels",
    "attention": "Attention and the way through the model",
    "evaluation": "Evaluation",
}
STATES: dict[Outcome, str] = {
    "found": "found",
    "clear": "clear",
    "unchecked": "could not be checked",
    "inapplicable": "not applicable",
}
"""What became of a check, the most important first."""
WIDTH = 79
"""Letters of a line in the narrowest terminal that is in use."""


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
    rows = [("finding", each.text), ("severity", f"{each.severity}, confidence {each.confidence:.0%}")]
    return Table(f"{number}. {each.kind}", ("", ""), tuple(rows + _details(each)))


def _details(each: Finding) -> list[tuple[str, str]]:
    """What else there is to say of a finding, by name."""
    rows = [("explained by", each.explained_by)] if each.explained_by else []
    rows += [(name, f"{value:.4g}") for name, value in each.evidence.items()]
    rows += [("remedy", each.remedy.text)]
    rows += [("try", each.remedy.command)] if each.remedy.command else []
    rows += [("code", each.remedy.code)] if each.remedy.code else []
    return rows


def counted(checks: Sequence[Check]) -> str:
    """How many kinds were looked for, and what became of them."""
    return f"{len(checks)} kinds of fault were looked for: {_outcomes(checks)}"


def _outcomes(checks: Sequence[Check]) -> str:
    counts = Counter(each.outcome for each in checks)
    return ", ".join(f"{counts[each]} {words}" for each, words in STATES.items() if counts[each])


def source_words(source: Source) -> str:
    """What a finding rests on."""
    return {"log": "what the run logged", "probe": "a probe of the model", "experiment": "an experiment"}[
        source
    ]


def lines(found: Diagnosis) -> Iterator[str]:
    """All of it for a narrow terminal or a pipe; commands and code have lines of their own, unbroken."""
    count = len(found.findings)
    what = f"{count} {'finding' if count == 1 else 'findings, the most likely first'}" if count else ""
    yield f"{found.run}: {what or 'nothing found'}"
    for number, each in enumerate(found.findings, 1):
        yield from ("", f"{number}. {each.kind}: {each.severity}, confidence {each.confidence:.0%}")
        yield from _wrapped(each.text)
        for name, value in _details(each):
            line = f"{name}: {value}"
            yield from [f"   {line}"] if name in ("try", "code") else _wrapped(line)
    yield from ("", f"checked in {duration(found.seconds)}:")
    for family in FAMILIES:
        checks = [each for each in found.checks if each.family == family]
        if checks:
            yield from _wrapped(f"{family}: {_outcomes(checks)}")
    if found.unchecked:
        yield from ("", "could not be checked:")
        for reason in dict.fromkeys(each.reason for each in found.unchecked):
            kinds = [each.kind for each in found.unchecked if each.reason == reason]
            yield from _wrapped(f"{', '.join(kinds)}: {reason}")


def brief_lines(each: Finding) -> list[str]:
    """Two lines for somebody whose training goes on; of a command that is too long, its flags."""
    said = shorten(f"{each.kind} ({each.severity}): {each.text}", 80, placeholder=" ...")
    command, code, room = each.remedy.command, each.remedy.code, 80 - len("  try: ")
    if len(command) > room:
        _, _, *flags = command.split(" --")
        command = " ".join(f"--{flag}" for flag in flags)
    what = next((words for words in (command, code) if 0 < len(words) <= room), each.remedy.text)
    return [said, f"  try: {shorten(what, room, placeholder=' ...')}"]


def _wrapped(text: str) -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent="   ",
        subsequent_indent="     ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def figures(found: Diagnosis) -> dict[str, Drawing]:
    """The evidence of each finding."""
    drawn = {each.kind: pictures.evidence_data(each) for each in found.findings}
    return {
        f"doctor-{kind}": Drawing(data, pictures.draw_evidence)
        for kind, data in drawn.items()
        if data is not None
    }
