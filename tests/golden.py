"""Records what commands say, and compares two recordings.

python tests/golden.py record DIR            all cases; a JSON file each
python tests/golden.py record DIR --kept     those that are kept in tests/golden, with rounded numbers
python tests/golden.py compare OLD NEW       every difference beyond rounding; --exact: on one machine

The attnlab on PYTHONPATH is recorded. Each group of cases runs in a process and a folder of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from golden_cases import GROUPS
from golden_compare import EXACT, ROUNDED, compare_folders

FACTS = "facts"
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
PROCESSES = 2
DIGITS = 6
"""Significant digits of numbers that are kept."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("dir", type=Path)
    recording.add_argument("--kept", action="store_true")
    recording.add_argument("--group", choices=(*GROUPS, FACTS), action="append", help="only these")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--exact", action="store_true")
    group = commands.add_parser("group")  # one group, in the process that ``record`` starts
    group.add_argument("name")
    group.add_argument("dir", type=Path)
    group.add_argument("home", type=Path)
    group.add_argument("--kept", action="store_true")
    asked = parser.parse_args()
    if asked.command == "record":
        return record(asked.dir.resolve(), asked.group or [*GROUPS, FACTS], kept=asked.kept)
    if asked.command == "group":
        return record_group(asked.name, asked.dir, asked.home, kept=asked.kept)
    found = compare_folders(asked.old, asked.new, EXACT if asked.exact else ROUNDED)
    print("\n".join([*found, f"{len(found)} differences"]))
    return 1 if found else 0


def record(folder: Path, groups: list[str], *, kept: bool) -> int:
    """Every group in a process of its own; the exit code is 1 if one of them died."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(PROCESSES) as threads:
        codes = threads.map(lambda name: _in_a_process(name, folder, Path(temporary), kept=kept), groups)
        died = [name for name, code in zip(groups, codes, strict=True) if code != 0]
    print("\n".join(f"{name} died" for name in died) or f"recorded in {folder}")
    return 1 if died else 0


def _in_a_process(name: str, folder: Path, temporary: Path, *, kept: bool) -> int:
    began = time.monotonic()
    words = ["group", name, str(folder), str(temporary / name), *(["--kept"] if kept else [])]
    done = subprocess.run([sys.executable, __file__, *words], env=_environment(temporary), check=False)
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done.returncode


def record_group(name: str, folder: Path, home: Path, *, kept: bool) -> int:
    from golden_perform import perform, prepare

    prepare(home)
    if name == FACTS:
        for fact, value in facts(home, pictures=not kept).items():
            write(folder / f"{fact}.json", value, kept=kept)
        return 0
    for case in GROUPS[name]:
        if case.kept or not kept:
            write(folder / f"{case.name}.json", perform(case, home), kept=kept)
    return 0


def facts(home: Path, *, pictures: bool) -> dict[str, Any]:
    """What is recorded besides commands, by name."""
    from golden_facts import spec_hashes, study_results

    return {"spec-hashes": spec_hashes(), "study-results": study_results(home, pictures=pictures)}


def write(path: Path, value: Any, *, kept: bool) -> None:
    text = json.dumps(rounded(value) if kept else value, ensure_ascii=False, indent=None if kept else 1)
    path.write_text(f"{text}\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """``value`` with numbers of a few digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _environment(folder: Path) -> dict[str, str]:
    from_here = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    fixed = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
    return {**from_here, **fixed, "MPLCONFIGDIR": str(folder / "matplotlib")}


if __name__ == "__main__":
    sys.exit(main())
