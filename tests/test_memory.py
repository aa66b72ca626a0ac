"""What is freed stays with the process."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, torch
from attnlab.training.threads import keep_blocks

def faults(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(2**22)  # 16 MiB, 4,096 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults(10)
print(keep_blocks(), before, faults(1), faults(10))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another allocator")
def test_freed_blocks_are_kept() -> None:
    """Writing to a block again and again asks the system for its pages only once, in a process of its own:
    small objects of other tests may lie where the block would fit.
    """
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    kept, before, _, after = done.stdout.split()
    if kept == "False":
        pytest.skip("another C library")
    # Ten times the pages if they were given back; a block may move once, and the system may take
    # pages away.
    assert int(after) < int(before) / 2
