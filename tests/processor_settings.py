"""Tests of what torch and Numba were told, for processes that run as another processor."""

import os

import torch

from attnlab.explicit.products import VECTOR


def test_settings_reach_torch() -> None:
    assert torch.backends.cpu.get_cpu_capability() == os.environ["ATEN_CPU_CAPABILITY"].upper()
    assert torch.get_num_threads() == int(os.environ["ATTNLAB_TEST_THREADS"])


def test_settings_reach_numba() -> None:
    expected = 64 if os.environ["ATEN_CPU_CAPABILITY"] == "avx512" else 32
    assert expected == VECTOR
