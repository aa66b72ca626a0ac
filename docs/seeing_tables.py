"""How long pages and projections take."""

from head_tables import read


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
