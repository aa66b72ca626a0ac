"""Findings beside the model, in a real browser: served, and in a hand-out."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from attnlab.doctor.fault import Fault
from attnlab.doctor.faults import FAULTS
from attnlab.doctor.findings import Check
from attnlab.doctor.kept import keep_diagnosis
from attnlab.explorer.handout import prepare
from attnlab.explorer.library import run_library
from browser import Tab
from explorer_page import AXE, Explorer, Place, served
from sick_runs import learning, run_with_log
from test_explorer_findings import DIAGNOSIS, FOUND

pytestmark = pytest.mark.slow

SECOND = replace(FOUND, kind="rate-too-low", severity="serious", text="the loss still falls", curve=None)


def clear(fault: type[Fault]) -> Check:
    return Check(fault.kind, fault.family, fault.source, "clear")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A run that keeps a diagnosis, one that nobody has diagnosed, and a hand-out of the first."""
    folder = tmp_path_factory.mktemp("runs")
    sick, new = (run_with_log(folder / name, loss=learning(0.5, low=0.0)) for name in ("sick", "new"))
    kept = replace(DIAGNOSIS, findings=[FOUND, SECOND], checks=[clear(each) for each in FAULTS])
    keep_diagnosis(sick, kept)
    (folder / "handout.html").write_text(prepare(sick, answers=2).page(), encoding="utf-8")
    with served(run_library([str(sick.path), str(new.path)], folder)) as address:
        yield Place(address, {each.name: str(each.path) for each in (sick, new)} | {"file": str(folder)})


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_what_is_kept_is_shown_beside_the_model(width: int, dark: bool, tab: Tab, place: Place) -> None:
    page = Explorer.of(tab, place)
    page.open("sick&view=findings", width=width, dark=dark)
    findings = page.named("findings")
    findings.locator(".finding h3").nth(1).wait_for()
    titles = [each.split("\n")[0] for each in findings.locator(".finding h3").all_inner_texts()]
    assert titles == ["1. heads-uniform", "2. rate-too-low"]
    picture = findings.get_by_role("img", name="loss by step: training goes from 0.5 to 0.5")
    assert picture.bounding_box() is not None
    assert findings.locator(".bars dt").all_inner_texts() == ["entropy", "loss"]
    assert findings.locator("pre").first.inner_text() == "attnlab train"
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert not AXE.is_file() or page.judge() == []
    assert tab.complaints == []
    findings.get_by_role("button", name="encoder.0.self", exact=True).first.click()
    page.settle()
    assert page.state()["head"] == "encoder.0.self.0"
    marked = page.named("overview").locator(".thumb.found .thumb-choose")
    assert [each.get_attribute("aria-label") for each in marked.all()] == [
        f"encoder.0.self.{index}, heads-uniform" for index in range(3)
    ]


def test_a_run_is_diagnosed_on_request(tab: Tab, place: Place) -> None:
    page = Explorer.of(tab, place).open("new&view=findings")
    findings = page.named("findings")
    findings.get_by_text("Nobody has looked yet.").wait_for()
    findings.get_by_role("button", name="Look for faults").click()
    findings.locator('[data-kind="rate-too-low"]').wait_for()
    assert "kinds of fault were looked for" in findings.locator(".hint").inner_text()
    assert findings.get_by_role("button", name="Look again").is_visible()


def test_a_handout_shows_what_it_carries(tab: Tab, place: Place) -> None:
    path = Path(place.names["file"]) / "handout.html"
    tab.visit(f"{path.as_uri()}#run={quote(place.names['sick'], safe='')}&view=findings")
    tab.page.locator('[data-kind="heads-uniform"] svg').wait_for()
    assert tab.page.locator('[data-name="diagnose"]').is_hidden()
    assert tab.complaints == []
    assert {each.partition("#")[0] for each in tab.requests} <= {path.as_uri()}
