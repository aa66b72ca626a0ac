"""What docs show of the doctor's study: how often it is right, what it takes for what, what it cures."""

from typing import Any

from head_tables import read

from attnlab.analysis import percent

GOALS = {"macro_f1": 0.9, "first": 0.9, "among_three": 0.97, "false_alarms": 0.01, "cures": 0.85}


def study_table() -> str:
    """The goals beside the half that thresholds were chosen by and the half that was set apart."""
    chosen, apart = _halves()
    rows = ["| | goal | chosen by | set apart |", "|---|---|---|---|"]
    told = {
        "macro_f1": "macro-F1 over kinds and healthy runs",
        "first": "right kind first, of sick runs",
        "among_three": "right kind among the first three",
    }
    for name, what in told.items():
        cells = " | ".join(_drawn(each, name) for each in (chosen, apart))
        rows.append(f"| {what} | at least {percent(GOALS[name])} | {cells} |")
    cells = " | ".join(_exact(each["all"]["false_alarms"]) for each in (chosen, apart))
    rows.append(f"| healthy runs accused | at most {percent(GOALS['false_alarms'])} | {cells} |")
    cells = " | ".join(_kinds(each["early"]) for each in (chosen, apart))
    rows.append(f"| kinds found within the first fifth of the steps | at least half | {cells} |")
    cells = " | ".join(_exact(each["early"]["false_alarms"]) for each in (chosen, apart))
    rows.append(f"| healthy runs accused by then | | {cells} |")
    cells = " | ".join(_exact(each["cures"]["all"]) for each in (chosen, apart))
    rows.append(f"| cured by the first remedy | at least {percent(GOALS['cures'])} | {cells} |")
    rows += ["", f"`{chosen['command']}`, `{apart['command']}`; scored at commit {_scored(apart)}."]
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
        return "none"
    low, high = each["interval"]
    return f"{each['count']} of {each['of']}, {percent(each['share'])} ({percent(low)} to {percent(high)})"


def _kinds(found: dict[str, Any]) -> str:
    return f"{found['kinds_found']} of {found['kinds']}" if found["kinds"] else "not measured"


def _scored(apart: dict[str, Any]) -> str:
    return ", then again at ".join((each or "unknown")[:7] for each in apart["scored"])


def sizes_table() -> str:
    """How many runs there are, and how many count."""
    chosen, apart = _halves()
    rows = [
        "| runs | there could be | trained | of them count: chosen by | set apart |",
        "|---|---|---|---|---|",
    ]
    counts = {
        "sick": [each["kept"] for each in (chosen, apart)],
        "healthy": [each["healthy_kept"] for each in (chosen, apart)],
    }
    for name, size in apart["sizes"].items():
        cells = " | ".join(map(str, counts.get(name, ["", ""])))
        rows.append(f"| {name} | {size['planned']} | {size['trained']} | {cells} |")
    return "\n".join(rows)


def kinds_table() -> str:
    """Each kind in the half that was set apart."""
    chosen, apart = _halves()
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


def tasks_table() -> str:
    """Each task in the half that was set apart."""
    _, apart = _halves()
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


def harmless_table() -> str:
    """Plants that do no harm in some of their runs, which do not count."""
    chosen, apart = _halves()
    both = sorted((chosen["harmless"] | apart["harmless"]).items())
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
    told = "Medians of pairs that take turns, beside other work; one thread."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])


def _ratio(row: dict[str, Any], name: str) -> str:
    low, high = row["range"][name]
    return f"{row['ratio'][name]:.3f} ({low:.3f} to {high:.3f})"


def diagnosis_table() -> str:
    """How long a diagnosis takes."""
    found = read("doctor/time.json")
    rows = ["| run | processor time | on the clock, beside other work | findings |", "|---|---|---|---|"]
    for row in found["rows"]:
        cells = f"{row['processor_seconds']:.1f} s | {row['seconds']:.1f} s"
        rows.append(f"| `{row['run']}` | {cells} | {', '.join(row['findings']) or 'none'} |")
    machine = found["environment"]
    told = f"One thread of {machine['cores']} cores, {machine['processor']}, which many programs shared."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])
