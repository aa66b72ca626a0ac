"""Hand-outs of the shipped runs in a browser: the files are small, ask nobody, and answer as torch does.

``benchmarks/handouts.py`` compares 1,000 answers of each. Here fewer examples are looked through for wrong
ones and for means, which takes most of the time and changes neither answers nor size.
"""

from pathlib import Path

import pytest

from attnlab.explorer import strata, tasks
from attnlab.explorer.handout import Prepared, prepare
from attnlab.explorer.reference import TOLERANCE, Reference
from attnlab.explorer.scene import ExampleInput
from attnlab.explorer.stored import EXAMPLES, store
from attnlab.front.loading import load
from browser import Tab

LARGEST = 4_000_000
ANSWERS = 100
ANSWERED = "([stored, shape]) => attnlab.answered(page, stored, shape)"


def open_page(tab: Tab, made: Prepared, folder: Path) -> int:
    """The size of the file."""
    file = folder / "page.html"
    file.write_text(made.page(), encoding="utf-8")
    tab.visit(file)
    tab.page.wait_for_function("typeof page !== 'undefined' && page !== null")
    return file.stat().st_size


def answers(tab: Tab, reference: Reference, shape: list[int]) -> list[dict[str, list[float]]]:
    """What the page says, and its logits."""
    indices = list(range(len(reference)))
    given = [reference.inputs.read(ExampleInput(reference.split, index)) for index in indices]
    stored = store(given, indices, len(reference)).to_json()
    found: list[dict[str, list[float]]] = tab.page.evaluate(ANSWERED, [stored, shape])
    return found


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strata, "ANSWERED", 2 * EXAMPLES)
    monkeypatch.setattr(tasks, "TRAINING", 64)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adder", "long-adder", "sorter", "digit", "grid"])
def test_answers_of_a_shipped_run_are_those_of_torch(name: str, tab: Tab, tmp_path: Path) -> None:
    made = prepare(load(f"zoo:{name}"), answers=ANSWERS)
    assert open_page(tab, made, tmp_path) < LARGEST
    image, reference = made.data["subject"]["task"]["image"], made.reference
    shape = [image["channels"], image["height"], image["width"]] if image else []
    found = answers(tab, reference, shape)
    assert [each["said"] for each in found] == [
        row[:length].tolist() for row, length in zip(reference.said, reference.lengths, strict=True)
    ]
    wrong, away = reference.judge(found)
    assert (len(found), wrong) == (ANSWERS, 0)
    assert 0 < away <= TOLERANCE
    assert (tab.requests, tab.complaints) == ([], [])
    assert tab.ask("document.querySelector('#handout')") is None
    assert tab.page.locator("#explorer *").count() > 0
