"""What two recordings say differently: a missing key, another string, a number that is too far off."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

CLOCK = {"seconds", "time", "timings", "seconds_per_step", "speed"}
MACHINE = {"environment", "commit", "commits", "threads", "chosen_threads", "cores", "processor"}
PATHS = {"files", "file", "folder", "report", "page", "figure", "figures", "onnx", "bytes", "command"}
"""Keys whose strings are where something was written, and the size of pages, which tell times."""
EXACT_ONLY = "sha256_of_bytes"
"""The key of what depends on every last bit."""
NAMED = {"checks": "kind"}
"""Lists whose rows are compared by their name: as with keys, more of them are fine."""


@final
@dataclass(frozen=True)
class Tolerance:
    """Two numbers are equal if they differ by at most ``relative`` of the larger plus ``absolute``."""

    relative: float
    absolute: float
    exact: bool

    def accepts(self, old: float, new: float) -> bool:
        if math.isnan(old) or math.isnan(new):
            return math.isnan(old) and math.isnan(new)
        return old == new or abs(old - new) <= self.relative * max(abs(old), abs(new)) + self.absolute


EXACT = Tolerance(1e-9, 0.0, exact=True)
ROUNDED = Tolerance(2e-3, 1e-4, exact=False)
"""What another processor may round otherwise."""


def compare_folders(old: Path, new: Path, tolerance: Tolerance) -> list[str]:
    """All differences; cases that only ``new`` has are fine."""
    found = []
    for path in sorted(old.glob("*.json")):
        other = new / path.name
        if not other.is_file():
            found.append(f"{path.stem}: not recorded")
            continue
        found += [f"{path.stem}: {each}" for each in differences(_read(path), _read(other), tolerance)]
    return found


def differences(old: Any, new: Any, tolerance: Tolerance, where: str = "") -> Iterator[str]:
    """Sentences such as ``stdout.rows[3].loss: 0.5 -> 0.75``."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if _is_ignored(key, value, tolerance):
                continue
            if key not in new:
                yield f"{where}.{key}: missing".removeprefix(".")
            else:
                one, other = (_named(key, each) for each in (value, new[key]))
                yield from differences(one, other, tolerance, f"{where}.{key}".removeprefix("."))
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} items -> {len(new)}"
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, tolerance, f"{where}[{place}]")
    elif not _equal(old, new, tolerance):
        yield f"{where}: {_short(old)} -> {_short(new)}"


def _named(key: str, value: Any) -> Any:
    """Rows by their name, where all have one."""
    name = NAMED.get(key)
    if name is None or not isinstance(value, list) or not all(name in row for row in value):
        return value
    return {row[name]: row for row in value}


def _equal(old: Any, new: Any, tolerance: Tolerance) -> bool:
    if _is_number(old) and _is_number(new) and (isinstance(old, float) or isinstance(new, float)):
        return tolerance.accepts(old, new)
    return type(old) is type(new) and bool(old == new)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_ignored(key: str, value: Any, tolerance: Tolerance) -> bool:
    if key in CLOCK or key in MACHINE:
        return True
    if key == EXACT_ONLY:
        return not tolerance.exact
    leaves = value if isinstance(value, list) else [value]
    return key in PATHS and not any(isinstance(leaf, dict | list) for leaf in leaves)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
