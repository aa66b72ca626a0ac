"""What docs show of the doctor's study: how often it is right, what it takes for what, what it cures."""

from typing import Any

from head_tables import read

from attnlab.analysis import percent

PARTS = ("chosen", "apart", "second")
GOALS = {"macro_f1": 0.9, "first": 0.9, "among_three": 0.97, "false_alarms": 0.01, "cures": 0.85}


def study_table() -> str:
    """The goals beside the half that thresholds were chosen by, what was set apart, and the second set."""
    parts = (*_halves(), read("doctor/second.json"))
    rows = ["| | goal | chosen by | set apart | second set |", "|---|---|---|---|---|"]
    told = {
        "macro_f1": "macro-F1 over kinds and healthy runs",
        "first": "right kind first, of sick runs",
        "among_three": "right kind among the first three",
    }
    for name, what in told.items():
        cells = " | ".join(_drawn(each, name) for each in parts)
        rows.append(f"| {what} | at least {percent(GOALS[name])} | {cells} |")
    cells = " | ".join(_exact(each["all"]["false_alarms"]) for each in parts)
    rows.append(f"| healthy runs accused | at most {percent(GOALS['false_alarms'])} | {cells} |")
    cells = " | ".join(_kinds(each["early"]) for each in parts)
    rows.append(f"| kinds found within the first fifth of the steps | at least half | {cells} |")
    cells = " | ".join(_exact(each["early"]["false_alarms"]) for each in parts)
    rows.append(f"| healthy runs accused by then | | {cells} |")
    cells = " | ".join(_exact(each["cures"]["all"]) for each in parts)
    rows.append(f"| cured by the first remedy | at least {percent(GOALS['cures'])} | {cells} |")
    commands = [f"`{name}` at commit {_scored(each)}" for name, each in zip(PARTS, parts, strict=True)]
    rows += ["", f"`python benchmarks/doctor.py score --part` {'; '.join(commands)}."]
    return "\n".join(rows)


def _halves() -> tuple[dict[str, Any], dict[str, Any]]:
    return read("doctor/chosen.json"), read("doctor/apart.json")


def _drawn(found: dict[str, Any], name: str) -> str:
    """With the interval of the bootstrap."""
    value = found["all"][name] if name == "macro_f1" else found["all"][name]["share"]
    low, high = found["intervals"][name]
    return f"{percent(value)} ({percent(low)} to {percent(high)})"


def _exact(each: dict[str, Any]) -> str:
    """With the exact interval of a share."""
    if not each["of"]:
        return "not measured"
    low, high = each["interval"]
    return f"{each['count']} of {each['of']}, {percent(each['share'])} ({percent(low)} to {percent(high)})"


def _kinds(found: dict[str, Any]) -> str:
    return f"{found['kinds_found']} of {found['kinds']}" if found["kinds"] else "not measured"


def _scored(apart: dict[str, Any]) -> str:
    scored = apart.get("scored", [apart["environment"]["commit"]])
    return ", then again at ".join((each or "unknown")[:7] for each in scored)


def sizes_table() -> str:
    """How many runs there are, and how many count."""
    chosen, apart = _halves()
    second = read("doctor/second.json")
    rows = [
        "| runs | there could be | trained | of them count: chosen by | set apart | second: there could "
        "be | trained | count |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kept = {"sick": "kept", "healthy": "healthy_kept", "twins": ""}
    for name, first in apart["sizes"].items():
        later = second["sizes"][name]
        count, other, last = (str(each.get(kept[name], "")) for each in (chosen, apart, second))
        cells = [first["planned"], first["trained"], count, other, later["planned"], later["trained"], last]
        rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def kinds_table(part: str = "apart") -> str:
    """Each kind in what was set apart."""
    chosen, apart = read("doctor/chosen.json"), read(f"doctor/{part}.json")
    rows = [
        "| planted | sick runs | F1 | F1, chosen by | found early | cured | named first instead |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, f1 in apart["all"]["f1"].items():
        named = apart["all"]["confusion"].get(kind, {})
        wrong = ", ".join(f"`{name}` {count}" for name, count in named.items() if name != kind)
        known = chosen["all"]["f1"].get(kind)
        cells = (
            f"`{kind}`" if named else kind,
            str(sum(named.values())) if named else "",
            f"{f1:.2f}",
            "" if known is None else f"{known:.2f}",
            _few(apart["early"]["by_kind"].get(kind)),
            _few(apart["cures"]["by_kind"].get(kind)),
            wrong,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _few(each: dict[str, Any] | None) -> str:
    return f"{each['count']} of {each['of']}" if each else ""


def tasks_table(part: str = "apart") -> str:
    """Each task in what was set apart."""
    apart = read(f"doctor/{part}.json")
    rows = [
        "| task | sick runs | right kind first | among the first three | healthy runs | accused |",
        "|---|---|---|---|---|---|",
    ]
    for task, found in apart["by_task"].items():
        first, three, wrong = (found[name] for name in ("first", "among_three", "false_alarms"))
        cells = (task, found["sick"], _share(first), _share(three), found["healthy"], _few(wrong))
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def _share(each: dict[str, Any]) -> str:
    return "" if each["share"] is None else percent(each["share"])


def harmless_table(*parts: str) -> str:
    """Plants that do no harm in some of their runs, which do not count."""
    studies = [read(f"doctor/{part}.json") for part in parts or ("chosen", "apart")]
    both = sorted(pair for each in studies for pair in each["harmless"].items())
    return "; ".join(f"{name.replace('/', ' (')}) {count}" for name, count in both) + "."


def watching_table() -> str:
    """What watching costs beside training."""
    found = read("doctor/overhead.json")
    rows = [
        "| training | steps | processor time with watching over without | on the clock |",
        "|---|---|---|---|",
    ]
    for row in found["rows"]:
        cells = " | ".join(_ratio(row, name) for name in ("processor", "clock"))
        rows.append(f"| `{row['training']}` | {row['steps']} | {cells} |")
    told = f"Medians of pairs that take turns, {_beside(found)}; one thread."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])


def _beside(found: dict[str, Any]) -> str:
    """What else the machine computed, by its load before the measurement; early results do not have it."""
    load = found.get("load_before")
    return "on a machine that many programs shared" if load is None else f"at a load of {load:.1f} before"


def _ratio(row: dict[str, Any], name: str) -> str:
    low, high = row["range"][name]
    return f"{row['ratio'][name]:.3f} ({low:.3f} to {high:.3f})"


def diagnosis_table() -> str:
    """How long a diagnosis takes."""
    found = read("doctor/time.json")
    rows = ["| run | processor time | on the clock | findings |", "|---|---|---|---|"]
    for row in found["rows"]:
        cells = f"{row['processor_seconds']:.1f} s | {row['seconds']:.1f} s"
        rows.append(f"| `{row['run']}` | {cells} | {', '.join(row['findings']) or 'none'} |")
    machine = found["environment"]
    told = f"One thread of {machine['cores']} cores, {machine['processor']}, {_beside(found)}."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])


MEASURED = {
    "reported": "digits, reported",
    "free": "answers, decoded",
    "below_thousand": "sums below 1000",
    "by length": "at length",
    "beyond": "beyond: at a rate of",
    "tried": "tried: at a rate of",
}
"""What was measured, in words."""


def stories_table() -> str:
    """The stories: what was measured, what is named first, and what the remedy makes of it."""
    found = read("doctor/stories.json")
    rows = [
        "| story | measured | named first | in all | with its remedy |",
        "|---|---|---|---|---|",
    ]
    for name, variants in found["stories"].items():
        for each in variants:
            told = each["rows"][0]
            first = ", ".join(f"`{kind}`" for kind in dict.fromkeys(row["first"] for row in each["rows"]))
            right = f"{each['named_first']} of {len(each['rows'])}"
            cells = (
                f"{name}, {each['variant']}",
                _measured(told),
                first,
                right,
                _measured(told.get("cured")),
            )
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, "", f"`{found['command']}`; numbers of seed {found['seeds'][0]}."])


def _measured(row: dict[str, Any] | None) -> str:
    """The shares that a story measured."""
    shares = {key: value for key, value in (row or {}).items() if isinstance(value, float)}
    lists = {key: value for key, value in (row or {}).items() if key in ("by length", "tried", "beyond")}
    told = [f"{MEASURED.get(key, key)} {percent(value)}" for key, value in shares.items()]
    for key, value in lists.items():
        pairs = value.items() if isinstance(value, dict) else ((e["length"], e["accuracy"]) for e in value)
        told.append(f"{MEASURED[key]} " + ", ".join(f"{at}: {percent(share)}" for at, share in pairs))
    return "; ".join(told)
