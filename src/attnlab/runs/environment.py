"""What a result was made with: versions, machine, commit."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe_environment() -> dict[str, Any]:
    """Versions, processor and, in a source checkout, the commit."""
    import torch  # here: who only reads runs does not wait for it

    return {
        "attnlab": version("attnlab"),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    source = Path(__file__).resolve().parents[3]
    if not (source / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
