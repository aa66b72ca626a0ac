"""The machine as lines to put into a bug report."""

from collections.abc import Iterator

from attnlab.results import Part
from attnlab.runs.machine import Machine


def tables(found: Machine) -> Iterator[Part]:
    width = max(map(len, _facts(found)))
    for name, value in _facts(found).items():
        yield f"{name:<{width}}  {value}"


def _facts(found: Machine) -> dict[str, str]:
    here = found.environment
    instructions = (here.capabilities or {}).get("instructions", [])
    cores = f"{here.cores}, of which {found.usable_cores} may be used"
    return {
        "attnlab": here.attnlab + (f", commit {here.commit}" if here.commit else ""),
        "python": here.python,
        "system": found.platform,
        "processor": here.processor,
        "instructions": " ".join(instructions) or "unknown",
        "cores": cores,
        "memory": "unknown" if found.memory is None else f"{found.memory / 2**30:.1f} GiB",
        "threads": str(here.threads),
        **found.variables,
        "packages": ", ".join(f"{name} {version}" for name, version in found.packages.items()),
    }
