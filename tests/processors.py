"""Running tests as if on another processor, with another number of threads and with nothing compiled yet.

torch (``ATEN_CPU_CAPABILITY``), oneDNN (``ONEDNN_MAX_CPU_ISA``) and Numba (``NUMBA_CPU_NAME``,
``NUMBA_CPU_FEATURES``) can be told to use less than the processor has. Each then sums in another order and
rounds otherwise, as do more threads.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import llvmlite.binding  # type: ignore[import-untyped]
import torch

ROOT = Path(__file__).parent.parent
HASWELL = (
    "+cx8,+fxsr,+mmx,+sse,+sse2,+x87,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,"
    "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
)


@final
@dataclass(frozen=True)
class Processor:
    """One to run tests as: what torch, oneDNN and Numba are told, and what the real one needs for it."""

    capability: str
    threads: int
    variables: dict[str, str]
    needs: str | None = None
    compiles: bool = True
    """Whether kernels are compiled for it: that takes longer than all other tests, so once must do."""

    def is_possible(self) -> bool:
        features = llvmlite.binding.get_host_cpu_features()
        return self.needs is None or bool(features.get(self.needs))

    def environment(self, cache: Path) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in os.environ if not name.startswith(("PYTEST", "NUMBA"))},
            **self.variables,
            "ATEN_CPU_CAPABILITY": self.capability,
            "ATTNLAB_TEST_EXAMPLES": "4",  # all 50 are tried once, on the processor that there is
            "ATTNLAB_TEST_THREADS": str(self.threads),
            "NUMBA_CACHE_DIR": str(cache),
            "OMP_NUM_THREADS": str(self.threads),
            "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait leave the cores to the others
        }


PROCESSORS = {
    "the least": Processor("default", 2, {"ONEDNN_MAX_CPU_ISA": "SSE41", "NUMBA_CPU_NAME": "generic"}),
    "AVX2": Processor(
        "avx2",
        1,
        {"ONEDNN_MAX_CPU_ISA": "AVX2", "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": HASWELL},
        needs="avx2",
        compiles=False,
    ),
    "AVX-512": Processor("avx512", 4, {}, needs="avx512f", compiles=False),
}


def run_tests(
    processor: Processor, tests: Sequence[str | Path], cache: Path
) -> "subprocess.CompletedProcess[str]":
    """What pytest says about ``tests`` there; compiled code goes to ``cache``."""
    words = ["-m", "pytest", "--tb=short", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")]
    return subprocess.run(
        [sys.executable, *words, "-p", "no:xdist", "-p", "no:cacheprovider", *map(str, tests)],
        cwd=ROOT / "tests",
        env=processor.environment(cache),
        capture_output=True,
        text=True,
        check=False,
    )


def sums() -> list[float]:
    """What hangs on rounding: exponentials of another processor, partial sums of more threads."""
    chance = torch.Generator().manual_seed(1)
    return [torch.randn(99, 991, generator=chance).exp().sum().item() for _ in range(20)]
