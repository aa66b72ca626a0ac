"""What is freed stays with the process."""

import resource
import sys

import pytest
import torch

from attnlab.training.threads import keep_blocks


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another allocator")
def test_freed_blocks_are_kept() -> None:
    """Writing to a block again and again asks the system for its pages only once."""
    if not keep_blocks():
        pytest.skip("another C library")

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            torch.ones(2**22)  # 16 MiB, 4,096 pages
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults()
    assert faults() < 4096
