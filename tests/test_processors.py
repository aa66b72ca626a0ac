"""Numerical tests hold on every processor: they run again as on others, and with more threads."""

import os
from pathlib import Path

import pytest
import torch

from processors import PROCESSORS, run_tests, sums

pytestmark = pytest.mark.slow

NUMERICAL = [
    "processor_settings.py",
    "test_attention.py",
    "test_attention_bias.py",
    "test_averaging.py",
    "test_blocks.py",
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
COMPILED = [
    "test_engines.py::test_it_learns",
    "test_engines.py::test_the_same_steps",
    "test_engines.py::test_threads_are_taken_from_torch",
    "test_explicit.py::test_gradients_are_those_of_autograd",
    "test_explicit.py::test_logits_of_any_number_of_images",
    "test_explicit.py::test_the_same_bits_every_time",
    "test_explicit.py::test_training_learns_the_batch",
]
"""In float32 alone: the other kernels would take as long again to compile."""


@pytest.mark.parametrize("name", PROCESSORS)
def test_numerical_tests_hold(name: str, tmp_path: Path) -> None:
    processor = PROCESSORS[name]
    if not processor.is_possible():
        pytest.skip(f"this processor has no {processor.needs}")
    done = run_tests(processor, [*NUMERICAL, *(COMPILED if processor.compiles else [])], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


PLANTED = """
from processors import sums

EXPECTED = {expected}

def test_up_to_rounding():
    assert all(abs(one - other) < 1e-5 * other for one, other in zip(sums(), EXPECTED, strict=True))

def test_rounding():
    assert sums() == EXPECTED
"""


@pytest.mark.skipif("ATEN_CPU_CAPABILITY" in os.environ, reason="this process is told to be another one")
def test_a_test_of_one_processors_rounding_is_found(tmp_path: Path) -> None:
    """The planted test asserts sums as this process rounds them, with one thread."""
    torch.set_num_threads(1)
    (tmp_path / "test_planted.py").write_text(PLANTED.format(expected=sums()))
    done = run_tests(PROCESSORS["the least"], [tmp_path], tmp_path)
    assert done.returncode == 1, done.stdout
    assert "test_planted.py::test_rounding" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
