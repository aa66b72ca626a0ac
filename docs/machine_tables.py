"""What docs show about other machines: presets on other processors, commands beside other programs."""

from statistics import fmean
from typing import Any

from head_tables import read

from attnlab.analysis import percent


def presets_table() -> str:
    """Presets as on a processor with AVX2 and without bfloat16, beside what bfloat16 reaches."""
    found = read("presets/processors.json")
    rows = [
        "| preset | epochs | right on test examples, float32 and AVX2 | with bfloat16 | processor time |",
        "|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        low, high = row["exact_match_interval"]
        here = f"{percent(row['exact_match'])} (95%: {percent(low)} to {percent(high)})"
        time = f"{row['processor_seconds'] / 60:.1f} min"
        rows.append(f"| `{row['preset']}` | {row['epochs']} | {here} | {_with_bfloat16(row)} | {time} |")
    machine = found["rows"][0]["environment"]
    told = f"Seed 0, one thread beside other work; {machine['cores']} cores, {machine['processor']}."
    return "\n".join([*rows, "", f"{told} `{found['command']}`"])


def _with_bfloat16(row: dict[str, Any]) -> str:
    """What the same preset reaches where products are in bfloat16, by the results that there are."""
    match row["preset"], row["epochs"]:
        case "digits/vit", 16:
            (vit, *_) = read("digits-vit/study.json")["variants"]
            return _mean(vit["measures"]["accuracy"]["values"])
        case "grids/default", 12:
            (grids, *_) = read("grids-seeds/study.json")["variants"]
            return _mean(grids["measures"]["exact_match"]["values"])
        case (("digits/vit" | "grids/default"), epochs):
            task = row["preset"].partition("/")[0]
            told = read(f"{task}/time.json")
            return _mean([each[told["measure"]] for each in told["rows"] if each["epochs"] == epochs])
    return "not used"


def _mean(values: list[float]) -> str:
    return f"{percent(fmean(values))} (seeds {', '.join(map(percent, values))})"


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


def busy_torch_table() -> str:
    """The command that suffered most, beside other programs that train."""
    found = read("busy/torch.json")
    rows = ["| command | quiet | one program that trains | two of them |", "|---|---|---|---|"]
    for case in found["cases"].values():
        rows.append(f"| {case['what']} | {' | '.join(f'{seconds:.1f} s' for seconds in case['seconds'])} |")
    machine = found["environment"]
    return "\n".join([*rows, "", f"{machine['cores']} cores, {machine['processor']}. `{found['command']}`"])
