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

    def faults(times: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(times):
            torch.ones(2**22)  # 16 MiB, 4,096 pages
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults(1)
    # Ten times the pages if they were given back; a block may move once, and the system may take
    # pages away.
    assert faults(10) < 5 * 4096
