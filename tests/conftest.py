"""One thread and no deadlines: the machine may be busy, and results must not depend on it."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("lab", deadline=None, derandomize=True, database=None, max_examples=50)
settings.load_profile("lab")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
