"""What docs show about kills, losses of power, damage and hostile inputs, and what checks cost."""

from typing import Any

from head_tables import read

PARTS = {
    "kills": "killed at random moments and inside writes",
    "power": "power lost, unflushed writes gone",
    "disk": "disk full, file size limited, folder read-only",
    "limits": "limits on memory and open files",
    "clock": "the clock jumps by up to thirty years",
    "writers": "two processes at once",
    "damage": "a bit flipped, an end cut off, a block of zeros",
}
"""Parts of ``benchmarks/faults.py`` in words, in the order of the table."""
TRAININGS = {"explicit": "digits by hand", "muon": "addition with Muon"}
LOST = ("lost", "wrong", "traceback", "hang")
WRONG = {"tracebacks": "tracebacks", "hangs": "over 5 s", "memory": "over 1 GB"}
"""What the fuzzer counts, in words."""


def faults_kept_table() -> str:
    """A row a case: what became of runs, and whether nothing was lost."""
    found = read("faults/faults.json")
    columns = (
        *("what happens", "to", "cases", "same as without", "refused in a sentence"),
        *("lost, wrong, traceback or hang", "nothing lost"),
    )
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    order = list(PARTS)
    for row in sorted(found["rows"], key=lambda row: order.index(row["part"])):
        counts = row["counts"]
        each = " | ".join(f"{counts[key]:,}" for key in ("tried", "same", "refused"))
        kept = "yes" if row["nothing_lost"] else "**no**"
        case = TRAININGS.get(row["case"], row["case"])
        rows.append(f"| {PARTS[row['part']]} | {case} | {each} | {_gone(row):,} | {kept} |")
    machine = found["environment"]
    left_out = "".join(f" Not tried: {reason}." for reason in found["could_not"])
    told = f"{machine['cores']} cores, {machine['processor']}.{left_out} `{found['command']}`"
    return "\n".join([*rows, "", told])


def fuzz_table() -> str:
    """How many inputs the readers were given, and what went wrong."""
    found = read("fuzz/fuzz.json")
    columns = ("reader", "inputs", *WRONG.values(), "slowest")
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, row in found["readers"].items():
        each = " | ".join(f"{row[key]:,}" for key in ("inputs", *WRONG))
        rows.append(f"| {name} | {each} | {row['slowest']:.2f} s |")
    whole = " | ".join(f"{found[key]:,}" for key in ("inputs", *WRONG))
    rows.append(f"| all {len(found['readers'])} | {whole} | |")
    return "\n".join([*rows, "", f"Seconds are of the processor. `{found['command']}`"])


def hostile_summary() -> str:
    """Both in two sentences."""
    rows, fuzz = read("faults/faults.json")["rows"], read("fuzz/fuzz.json")

    def tried(*parts: str) -> str:
        return f"{sum(row['counts']['tried'] for row in rows if row['part'] in parts):,}"

    others = tried("disk", "limits", "clock", "writers")
    wrong = ", ".join(f"{fuzz[key]:,} {word}" for key, word in WRONG.items())
    return (
        f"{tried('kills')} kills, {tried('power')} losses of power, {tried('damage')} damaged files, and "
        f"{others} times a full or read-only disk, a limit, a clock that jumps or a second writer: in "
        f"{sum(map(_gone, rows)):,} cases something was lost, silently wrong, a traceback or a hang. "
        f"{fuzz['inputs']:,} inputs that are nearly right to {len(fuzz['readers'])} readers: {wrong}."
    )


def _gone(row: dict[str, Any]) -> int:
    return sum(row["counts"][key] for key in LOST)


def integrity_table() -> str:
    """What it costs that every file is held against its manifest."""
    found = read("integrity/integrity.json")
    rows = ["| command | checks | whole command | share | files checked |", "|---|---|---|---|---|"]
    for row in found["commands"].values():
        words = row["words"].replace("{folder}", "FOLDER")
        rows.append(
            f"| `attnlab {words}` | {1000 * row['checks']:.1f} ms | {row['command']:.2f} s "
            f"| {100 * row['share']:.2f}% | {row['files']} |"
        )
    return "\n".join([*rows, "", f"Processor time, medians of {found['rounds']} rounds; {_machine(found)}"])


def streaming_line() -> str:
    """What ``predict RUN -`` takes beside the model alone, in one line."""
    found = read("predict/streaming.json")
    return (
        f"`attnlab predict {found['run']} -` answers {found['lines']:,} lines at "
        f"{found['lines_a_second']:,.0f} a second on {found['threads']} cores. One core answers "
        f"{found['streamed']:,.0f} a second, and the model alone, on batches that are ready, "
        f"{found['model_alone']:,.0f}: reading, showing and printing cost {100 * found['overhead']:.1f}% "
        f"(median of {found['rounds']} rounds). Memory is {found['memory_after_a_tenth']:,.0f} MiB after a "
        f"tenth of the lines and {found['memory_at_the_end']:,.0f} MiB at the end; {_machine(found)}"
    )


def _machine(found: dict[str, Any]) -> str:
    machine = found["environment"]
    return f"{machine['cores']} cores, {machine['processor']}. `{found['command']}`"
