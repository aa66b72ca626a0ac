"""Numerical tests hold on every processor: they run again as on others, and with more threads."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from processors import PROCESSORS, run_tests

NUMERICAL = [
    "test_attention.py",
    "test_attention_bias.py",
    "test_averaging.py",
    "test_blocks.py",
    "test_engines.py",
    "test_explicit.py",
    "test_gradcheck.py",
    "test_identity.py",
    "test_measuring.py",
    "test_optimisers.py",
    "test_patch_attention.py",
    "test_pooling.py",
    "test_positions.py",
    "test_position_kinds.py",
    "test_precision.py",
    "test_seq2seq.py",
    "test_trainer.py",
]

pytestmark = pytest.mark.slow


@pytest.fixture(params=PROCESSORS)
def name(request: pytest.FixtureRequest) -> str:
    found = str(request.param)
    if not PROCESSORS[found].is_possible():
        pytest.skip(f"this processor has no {PROCESSORS[found].needs}")
    return found


def test_numerical_tests_hold(name: str, tmp_path: Path) -> None:
    done = run_tests(PROCESSORS[name], NUMERICAL, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


SETTINGS = """
import torch
from attnlab.explicit.tiles import VECTOR

def test_settings():
    assert (torch.backends.cpu.get_cpu_capability(), torch.get_num_threads(), VECTOR) == {expected}
"""


def test_settings_reach_torch_and_numba(name: str, tmp_path: Path) -> None:
    processor = PROCESSORS[name]
    expected = processor.capability.upper(), processor.threads, 64 if name == "AVX-512" else 32
    done = run_planted(name, SETTINGS.format(expected=expected), tmp_path)
    assert done.returncode == 0, done.stdout


def sums() -> list[float]:
    """Processors compute exponentials otherwise, and threads have partial sums of their own."""
    chance = torch.Generator().manual_seed(1)
    return [torch.randn(99, 991, generator=chance).exp().sum().item() for _ in range(20)]


ROUNDING = """
from test_processors import sums

EXPECTED = {expected}

def test_up_to_rounding():
    assert all(abs(one - other) < 1e-5 * other for one, other in zip(sums(), EXPECTED, strict=True))

def test_rounding():
    assert sums() == EXPECTED
"""


@pytest.mark.skipif(not PROCESSORS["AVX2"].is_possible(), reason="this processor is itself the least one")
@pytest.mark.skipif("ATEN_CPU_CAPABILITY" in os.environ, reason="this process is told to be another one")
def test_a_test_of_one_processors_rounding_is_found(name: str, tmp_path: Path) -> None:
    """The planted test asserts sums as this process rounds them, with one thread."""
    torch.set_num_threads(1)
    done = run_planted(name, ROUNDING.format(expected=sums()), tmp_path)
    assert done.returncode == 1, done.stdout
    assert "test_planted.py::test_rounding" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


def run_planted(name: str, program: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What pytest says there about a file of tests beside the real ``conftest.py``."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_planted.py").write_text(program)
    return run_tests(PROCESSORS[name], [folder], folder / "cache")
