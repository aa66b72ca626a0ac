"""The explorer's page as people use it: typing, switching, painting, swapping, asking, sharing."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from browser import PATIENCE, Tab
from commands import command, environment

pytestmark = pytest.mark.slow
AXE = Path(__file__).parent.parent / "node_modules" / "axe-core" / "axe.min.js"
DRAWN = """() => {
  const {state, drawn} = document.getElementById("explorer").dataset;
  return drawn !== undefined && drawn === state;
}"""
VIOLATIONS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .map(({id, nodes}) => [id, nodes[0].html])"""
VIEWS = ["heads", "guesses", "neurons", "ask", "about"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running ``attnlab explore``."""
    folder = tmp_path_factory.mktemp("explorer")
    words = command("explore", "--no-open", "--port", "0")
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as started:
        assert started.stdout is not None
        yield started.stdout.readline().strip().split("#")[0]
        started.kill()


@pytest.fixture
def explorer(tab: Tab, server: str) -> "Explorer":
    return Explorer(tab, server)


class Explorer:
    """The page, and what is read of it."""

    def __init__(self, tab: Tab, server: str) -> None:
        self.tab, self.server = tab, server
        tab.page.context.add_init_script("localStorage.setItem('attnlab-tour-seen', 'yes')")

    @property
    def page(self) -> Page:
        return self.tab.page

    def open(self, state: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.tab.visit(f"{self.server}#{state}", width=width, height=height, dark=dark)
        self.drawn()

    def drawn(self) -> None:
        self.page.wait_for_function(DRAWN, timeout=PATIENCE)

    def answers(self) -> list[str]:
        """The answer as it is, and with edits where there are any."""
        return [each for each in self.page.locator(".answer-text").all_inner_texts() if each]

    def edits(self) -> list[str]:
        return self.page.locator(".edits li > span").all_inner_texts()

    def press(self, selector: str) -> None:
        self.page.click(selector)
        self.drawn()

    def key(self, name: str) -> None:
        self.page.keyboard.press(name)
        self.drawn()


def test_what_is_typed_is_answered_and_what_is_wrong_is_said(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=374%2B814")
    assert explorer.answers() == ["1188"]
    explorer.page.fill(".input-text", "999+x")
    explorer.drawn()
    assert explorer.page.inner_text(".input-error").startswith("'999+x' is no sum")
    assert explorer.answers() == ["1188"]
    explorer.page.fill(".input-text", "999+1")
    explorer.drawn()
    assert explorer.answers() == ["1000"]
    assert explorer.page.inner_text(".input-error") == ""
    assert explorer.tab.complaints == []


def test_heads_are_switched_by_keys_and_layers_by_pointer(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=999%2B1")
    explorer.page.focus(".thumb.chosen .thumb-choose")
    explorer.key("ArrowRight")
    explorer.key("o")
    assert explorer.edits() == ["encoder.0.self.1 off: zero instead"]
    explorer.key("Control+z")
    assert explorer.edits() == []
    explorer.key("Control+y")
    explorer.press("[data-off='decoder.0']")
    assert explorer.edits() == ["encoder.0.self.1 off: zero instead", "decoder.0 off: zero instead"]
    assert explorer.page.locator(".thumb.off").count() == 9
    first, second = explorer.answers()
    assert first == "1000"
    assert second != first
    assert explorer.page.locator(".token.changed").count() > 0


def test_a_stroke_paints_a_row_and_is_undone_as_one(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=999%2B1&head=decoder.0.cross.1")
    explorer.page.click(".head >> text=Paint")
    explorer.page.locator(".head .map").scroll_into_view_if_needed()
    box = explorer.page.locator(".head .map").bounding_box()
    assert box is not None
    side = box["width"] / 7
    explorer.page.mouse.move(box["x"] + 1.5 * side, box["y"] + 0.5 * side)
    explorer.page.mouse.down()
    explorer.page.mouse.move(box["x"] + 2.5 * side, box["y"] + 0.5 * side, steps=3)
    explorer.page.mouse.up()
    explorer.drawn()
    assert explorer.edits() == ["decoder.0.cross.1: row 0 painted"]
    assert explorer.page.inner_text(".head .readout") == "⊢ looks at 9 with 0.500"
    explorer.key("Control+z")
    assert explorer.edits() == []


def test_a_head_is_dragged_from_the_second_input(explorer: Explorer) -> None:
    head = "encoder.0.self.1"
    explorer.open("run=zoo:adder&text=999%2B1&other-text=123%2B456")
    start, end = (explorer.page.locator(f"[data-{kind}='{head}']") for kind in ("lent", "head"))
    start.scroll_into_view_if_needed()
    start.hover()
    explorer.page.mouse.down()
    box = end.bounding_box()
    assert box is not None
    explorer.page.mouse.move(box["x"] + 20, box["y"] + 20, steps=5)
    explorer.page.mouse.up()
    explorer.drawn()
    assert explorer.edits() == [f"{head} comes from the second input"]
    python = explorer.page.text_content(".python code")
    assert python == (
        'import attnlab as al\n\nrun = al.load("zoo:adder")\n'
        f'with run.changed({{"op": "swap", "at": "{head}"}}, other="123+456"):\n'
        '    answer = run.predict("999+1")\n'
        "print(answer.text, answer.probability)"
    )


def test_the_lines_of_python_find_what_the_page_shows(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edits = "edits=off~encoder.1~mean!scale~encoder.2.self.1~3"
    explorer.open(f"run=zoo:digit&example=valid.3&{edits}")
    explorer.page.click("[data-name=input-by-paint]")
    explorer.page.focus(".paint-area")
    explorer.key(" ")  # pixels are no example any more
    explorer.page.click("summary:has-text('Share')")
    with explorer.page.expect_download() as download:
        explorer.page.click(".menu-list >> text=JSON")
    download.value.save_as(tmp_path / download.value.suggested_filename)
    monkeypatch.chdir(tmp_path)
    python = explorer.page.text_content(".python code")
    assert python is not None
    exec(python, {})
    text, probability = capsys.readouterr().out.split()
    assert text == explorer.answers()[-1]
    shown = re.search(r"([\d.]+)%", explorer.page.locator(".verdict").last.inner_text())
    assert shown is not None
    assert float(shown[1]) == pytest.approx(100 * float(probability), abs=0.11)  # both are rounded


def test_a_label_that_is_pointed_at_is_marked_in_every_head(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=999%2B1&head=decoder.0.cross.1")
    explorer.page.hover(".head .column-labels span >> nth=3")
    explorer.page.wait_for_selector(".thumb-column:visible")
    shown = explorer.page.locator(".layer >> nth=0").locator(".thumb-column:visible, .thumb-row:visible")
    assert shown.count() == 8  # the + is query and key of 4 heads
    assert explorer.page.inner_text(".head .column-labels .hovered") == "+"


def test_what_is_painted_lies_below_its_labels(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=999%2B1&head=decoder.0.cross.1")
    explorer.page.click(".head >> text=Paint")
    explorer.drawn()
    sizes = [explorer.page.locator(f".head .map{each}").bounding_box() for each in ("", " canvas")]
    assert sizes[0] == sizes[1]


def test_the_answer_forms_token_by_token(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=374%2B814")
    explorer.press("[aria-label='A token back']")
    explorer.press("[aria-label='A token back']")
    assert explorer.page.locator(".token.later").count() == 2
    explorer.page.click("[aria-label='Play the answer token by token']")
    explorer.page.wait_for_function("() => document.querySelectorAll('.token.later').length > 2")
    explorer.page.wait_for_function("() => document.querySelectorAll('.token.later').length === 0")
    explorer.page.hover(".token >> nth=2")
    explorer.page.wait_for_function("() => document.querySelectorAll('.hovered').length > 0")
    assert explorer.page.inner_text(".detail .caption") == "Most probable: 10^2"


def test_links_and_files_hold_what_is_shown(explorer: Explorer, server: str) -> None:
    state = (
        "run=zoo:adder&text=999%2B1&edits=scale~decoder.0.cross.1~2.5!off~encoder.0.feed~mean&view=guesses"
    )
    explorer.open(state)
    assert explorer.edits() == [
        "decoder.0.cross.1: scores times 2.5",
        "encoder.0.feed off: its mean over training examples instead",
    ]
    assert explorer.page.get_attribute("[role=tab][aria-selected=true] >> nth=1", "id") is not None
    for kind in ("SVG", "PNG", "JSON"):
        explorer.page.click("summary:has-text('Share')")
        with explorer.page.expect_download() as download:
            explorer.page.click(f".menu-list >> text={kind}")
        assert download.value.suggested_filename == f"zoo-adder-guesses.{kind.lower()}"
        content = download.value.path().read_bytes()
        assert content.startswith({"SVG": b"<svg", "PNG": b"\x89PNG", "JSON": b"{"}[kind])
        if kind == "JSON":
            assert json.loads(content)["state"] == f"#{state}"


def test_analyses_run_and_are_cancelled(explorer: Explorer) -> None:
    explorer.open("run=zoo:adder&text=999%2B1&view=ask")
    explorer.page.click("[data-ask=heads]")
    explorer.page.wait_for_selector(".results h3", timeout=PATIENCE)
    assert explorer.page.locator(".results table").count() > 0
    explorer.page.select_option("label:has-text('About') select", "many")
    explorer.page.click("[data-ask=ablate]")
    explorer.page.click(".running >> text=Cancel")
    assert explorer.page.inner_text("[aria-label=Ask] .problem") == "Cancelled."
    explorer.page.click("[data-ask=heads]")
    explorer.page.wait_for_selector(".results h3:has-text('500 valid examples')", timeout=PATIENCE)


def test_a_run_that_is_not_there_is_one_sentence(explorer: Explorer) -> None:
    explorer.tab.visit(f"{explorer.server}#run=nothing")
    explorer.page.wait_for_selector(".message:not(.waiting)")
    assert "nothing" in explorer.page.inner_text(".message")
    explorer.page.select_option("[aria-label=Run]", "zoo:sorter")
    explorer.page.wait_for_selector(".answer-text:has-text('sorted')", timeout=PATIENCE)


@pytest.mark.skipif(not AXE.is_file(), reason="scripts/check installs axe-core where npm is there")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_view_has_a_serious_violation(chromium: Browser, server: str, width: int, dark: bool) -> None:
    with chromium.new_context(bypass_csp=True) as context:
        explorer = Explorer(Tab(context.new_page()), server)
        for state in [
            *(f"run=zoo:adder&text=999%2B1&view={view}" for view in VIEWS),
            "run=zoo:adder&text=1%2B1&other-text=2%2B2&edits=off~encoder.0~zero",
            "run=zoo:digit",
            "run=zoo:grid",
            "run=zoo:sorter&view=guesses",
        ]:
            explorer.open(state, width=width, dark=dark)
            explorer.page.evaluate(AXE.read_text())
            assert explorer.page.evaluate(VIOLATIONS) == [], state
            assert explorer.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state
