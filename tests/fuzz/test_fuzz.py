"""A minute of inputs for the readers, the same in every run, and all that were found wrong before;
``scripts/fuzz`` gives as many as there is time for. ``--quick`` gives each reader a few.
"""

import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest
from run_fuzz import LARGE, WRONG, Count, Fuzzer, give_up, peak
from targets import faultless, targets

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
MINUTE = 60.0


@pytest.mark.parametrize("name", targets())
def test_a_reader_returns_or_refuses(name: str) -> None:
    target, chance = targets()[name], Random(name)
    for _ in range(target.cheap):
        faultless(target, target.inputs(chance))


@pytest.fixture
def _giving_up() -> Iterator[None]:
    """An input that takes too long is given up."""
    before = signal.signal(signal.SIGPROF, give_up)
    yield
    signal.signal(signal.SIGPROF, before)


@pytest.mark.slow
@pytest.mark.usefixtures("_giving_up")
@pytest.mark.parametrize("name", targets())
def test_a_minute_of_inputs(name: str) -> None:
    """Of all readers together; what goes wrong is put into the corpus."""
    fuzzer = Fuzzer({name: Count()}, peak() + LARGE)
    fuzzer.play(targets()[name], Random(f"a minute of {name}"), sys.maxsize, MINUTE / len(targets()))
    found = asdict(fuzzer.counts[name])
    assert found["inputs"] > 0
    assert {key: found[key] for key in WRONG} == dict.fromkeys(WRONG, 0), fuzzer.seen


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_before(path: Path) -> None:
    faultless(targets()[path.name.partition(".")[0]], path.read_bytes())
