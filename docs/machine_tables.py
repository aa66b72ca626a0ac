"""What docs show about other machines: commands beside other programs."""

from head_tables import read


def busy_table() -> str:
    """Commands beside other programs, and what that costs on a quiet machine."""
    found = read("busy/busy.json")
    rows = [
        f"| command | quiet | one neighbour | two neighbours | quiet, over commit {found['other'][:7]} |",
        "|---|---|---|---|---|",
    ]
    for case in found["cases"].values():
        busy = " | ".join(f"{ratio:.2f} times as long" for ratio in case["over_quiet"][1:])
        quiet, other = case["seconds"][0], case["over_other"]
        rows.append(f"| {case['what']} | {quiet:.1f} s | {busy} | {other:.2f} |")
    machine = found["environment"]
    told = f"Medians of ratios within a round; {machine['cores']} cores, {machine['processor']}."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])
