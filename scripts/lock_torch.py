"""Reads a lock as uv writes it and prints it with the build of torch for the CPU on Linux.

The registry's torch for Linux is the one for GPUs and brings packages of several GB along, which are left
out. On other systems the registry's torch is the build for the CPU.
"""

import re
import sys
from pathlib import Path

HASHES = Path(__file__).parent.parent / "locks/torch-cpu.sha256"
GPU_ONLY = re.compile(r"(nvidia|cuda|triton)\b")
HEAD = "# Written by scripts/lock; docs/dependencies.md says how to install with it.\n"


def main() -> None:
    # an entry is a line and the indented ones below it
    entries = re.findall(r"^\S.*\n(?:\s+.*\n)*", sys.stdin.read(), re.MULTILINE)
    kept = [each for each in entries if not GPU_ONLY.match(each)]
    print(HEAD + "".join(_cpu_torch(each) if each.startswith("torch==") else each for each in kept), end="")


def _cpu_torch(entry: str) -> str:
    head, *hashes = entry.splitlines()
    version = head.split()[0]
    own = [line.split() for line in HASHES.read_text(encoding="utf-8").splitlines()]
    if any(not file.startswith(f"{version.replace('==', '-')}+cpu-") for _, file in own):
        sys.exit(f"scripts/lock: {HASHES.name} needs the hashes of the builds of {version} for the CPU")
    hashed = [f"    --hash=sha256:{digest}" for digest, _ in own]
    linux = [f"{version}+cpu ; sys_platform == 'linux'", *hashed]
    other = [f"{version} ; sys_platform != 'linux'", *(line.rstrip(" \\") for line in hashes)]
    return "".join(" \\\n".join(lines) + "\n" for lines in (linux, other))


main()
