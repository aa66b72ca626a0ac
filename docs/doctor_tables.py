"""Tables of the doctor: every kind of fault and every threshold, read from the code."""

from inspect import getdoc

from attnlab.doctor.faults import FAULTS
from attnlab.doctor.limits import LIMITS


def faults_table() -> str:
    rows = [
        "| kind | family | by | what is wrong | what it looks at | thresholds |",
        "|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        said = " ".join((getdoc(fault) or "").split("\n\n")[0].split())
        limits = ", ".join(each.name for each in fault.limits) or "none"
        cells = (f"`{fault.kind}`", fault.family, fault.source, said, fault.looks_at, limits)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def limits_table() -> str:
    rows = ["| threshold | value | compared with it | where it came from |", "|---|---|---|---|"]
    rows += [f"| {e.name} | {e.value:g} | {e.meaning} | {e.origin} |" for e in LIMITS.values()]
    return "\n".join(rows)
