"""What docs show about explanations of the shipped runs, and how long pages and projections take."""

from typing import Any

from head_tables import read

ZOO = ("adder", "sorter", "digit", "grid")


def explained_table() -> str:
    """Is attention an explanation? Each method's answer on every shipped run, and rho with occlusion."""
    found = {name: read(f"explain/{name}.json") for name in ZOO}
    methods = found["adder"]["methods"]
    rows = [f"| method | {' | '.join(f'`zoo:{name}`' for name in ZOO)} |", "|---" * (1 + len(ZOO)) + "|"]
    for method in methods:
        rows.append(f"| {method} | {' | '.join(_answer(found[name], method) for name in ZOO)} |")
    rows.append(f"| contrast | {' | '.join(_rho(found[name]['contrast']) for name in ZOO)} |")
    commands = ", ".join(f"`{found[name]['command']}`" for name in ZOO)
    return "\n".join(
        [*rows, "", f"The answer, and Spearman's rho with occlusion (95% interval). {commands}"]
    )


def _answer(found: dict[str, Any], method: str) -> str:
    answer = found["verdicts"][method]["answer"]
    if method == "occlusion":
        return str(answer)
    return f"{answer}, {_rho(found['agreement'][method]['occlusion'])}"


def _rho(measured: dict[str, Any]) -> str:
    low, high = measured["interval"]
    return f"{measured['value']:.2f} ({low:.2f} to {high:.2f})"


def pages_table() -> str:
    """Seconds of the pages of the shipped runs."""
    found = read("report/speed.json")
    machine = found["environment"]
    each = ", ".join(
        f"`{row['run']}` {row['seconds']:.0f} s ({row['bytes'] / 1e6:.1f} MB)" for row in found["rows"]
    )
    return (
        f"{each}: the whole command on {found['samples']:,} samples, {machine['cores']} cores, "
        f"{machine['processor']}. `{found['command']}`"
    )


def projection_table() -> str:
    """Seconds of the projections."""
    found = read("projections/speed.json")
    machine = found["environment"]
    each = ", ".join(f"{name} {spent['seconds']:.1f} s" for name, spent in found["methods"].items())
    return (
        f"{found['points']:,} points of width {found['width']}: {each}, with the numbers beside them; "
        f"{machine['cores']} cores, {machine['processor']}. `{found['command']}`"
    )
