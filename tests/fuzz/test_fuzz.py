"""Some inputs for each reader, the same in every run, and all that were found wrong before;
``scripts/fuzz`` gives as many as there is time for.
"""

from pathlib import Path
from random import Random

import pytest
from targets import faultless, targets

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("name", targets())
def test_a_reader_returns_or_refuses(name: str) -> None:
    target, chance = targets()[name], Random(name)
    for _ in range(target.cheap):
        faultless(target, target.inputs(chance))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_before(path: Path) -> None:
    faultless(targets()[path.name.partition(".")[0]], path.read_bytes())
