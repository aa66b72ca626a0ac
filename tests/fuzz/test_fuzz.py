"""A few inputs for each reader, the same in every run, and all that were found wrong before;
``scripts/fuzz`` gives as many as there is time for.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from targets import Target, faultless, targets

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("name", targets())
def test_a_reader_returns_or_refuses(name: str) -> None:
    target: Target = targets()[name]
    chosen = settings(
        max_examples=target.cheap,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @chosen
    @given(st.data())
    def read(data: st.DataObject) -> None:
        faultless(target, data.draw(target.inputs))

    read()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_before(path: Path) -> None:
    faultless(targets()[path.name.partition(".")[0]], path.read_bytes())
