"""What a result was made with: versions, machine, commit.

How numbers round depends on the processor's instructions: torch, oneDNN, MKL and Numba have kernels for
each set of them, which sum in different orders. Equal bytes are therefore promised on one machine only.
"""

import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from attnlab.devices import CPU
from attnlab.results import Result
from attnlab.specs.codec import later
from attnlab.specs.rules import require
from attnlab.specs.training import MOST_THREADS

ENVIRONMENT = "environment.json"

INSTRUCTIONS = (
    *("sse4_1", "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile"),
    *("asimd", "bf16", "sve"),
)
"""Sets of instructions, as Linux names them, for which numerical libraries have kernels of their own."""
SETTINGS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Variables that forbid such libraries some instructions."""

_CPUINFO = Path("/proc/cpuinfo")


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """Which images a run learned from: a sample must not pass for the whole."""

    source: str
    sample: bool
    sha256: dict[str, str]
    scale: list[float] | None = later(None)


@final
@dataclass(frozen=True, kw_only=True)
class Environment(Result):
    """Versions, processor and, in a source checkout, the commit; what only a training has comes last."""

    attnlab: str = ""
    commit: str | None = None
    python: str = ""
    torch: str = ""
    system: str = ""
    processor: str = later("")
    capabilities: dict[str, Any] | None = later(None)
    """What the processor can do, what torch uses of it, and what is forbidden by ``SETTINGS``."""
    cores: int | None = None
    threads: int = 0
    chosen_threads: int | None = later(None)
    data: Source | None = later(None)
    precision: str | None = later(None)
    """What ``auto`` stood for."""
    resumed_on: dict[str, Any] | None = later(None)
    """What decides how numbers round of a second machine that went on with the training."""
    device: str = later(CPU)
    """Where the model was trained."""

    def __post_init__(self) -> None:
        wrong = self.chosen_threads is not None and not 1 <= self.chosen_threads <= MOST_THREADS
        require(not wrong, "it.chosen_threads", self.chosen_threads, f"from 1 to {MOST_THREADS}")

    @property
    def rounding(self) -> dict[str, Any]:
        """What decides how numbers round, besides the number of threads, as far as it is known."""
        names = ("processor", "capabilities", "torch", "device")
        return {name: value for name in names if (value := getattr(self, name))}


def describe_environment() -> Environment:
    import torch  # here: who only reads runs does not wait for it

    return Environment(
        attnlab=version("attnlab"),
        commit=_commit(),
        python=platform.python_version(),
        torch=torch.__version__,
        system=platform.system(),
        processor=_cpuinfo("model name") or platform.processor() or platform.machine(),
        capabilities=_capabilities(torch.backends.cpu.get_cpu_capability()),
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
    )


def rounds_alike(environment: Environment, other: Environment) -> bool:
    """Whether two machines give the same bytes, as far as both environments say."""
    mine, theirs = environment.rounding, other.rounding
    return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


def _capabilities(used: str) -> dict[str, Any]:
    flags = (_cpuinfo("flags") or _cpuinfo("Features")).split()
    return {
        "torch": used,
        "instructions": [name for name in INSTRUCTIONS if name in flags],
        **{name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


def _cpuinfo(key: str) -> str:
    """What Linux says of the first core; empty elsewhere."""
    with suppress(OSError):
        for line in _CPUINFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


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
