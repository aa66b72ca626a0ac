"""What a page of a report may do: run its own scripts, and nothing that came in with names or data."""

import base64
import hashlib
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure as Drawing

from attnlab.report.page import Made, Page, Section, figure, policy, render
from browser import Tab

SCRIPT = "<script>document.title = 'taken over'</script>"
STYLE = "<style>body { display: none }</style>"
HANDLER = '<img src="data:," onerror="document.title = \'taken over\'">'


def curve(_: object) -> Drawing:
    drawn, axes = plt.subplots()
    axes.plot([1, 3, 2], label="a")
    plt.close(drawn)
    return drawn


def page() -> str:
    drawn = figure("curve", "Loss", {"loss": [1, 3, 2]}, curve, "Loss over steps.", "")
    made = Made(commands=[("This wrote the page:", "attnlab report x")])
    shown = Page("A run", "what it is", "proof", made, [Section("loss", "Loss", figures=[drawn])])
    return render("page.html", page=shown, live=[])


def directives(text: str) -> dict[str, str]:
    (found,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    return {name: rule for name, _, rule in (each.strip().partition(" ") for each in found.split(";"))}


def test_scripts_and_styles_of_a_page_are_those_that_its_policy_names() -> None:
    text = page()
    rules = directives(text)
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"] + rules["style-src-elem"]
    for kind, rule in (("script", "script-src"), ("style", "style-src-elem")):
        blocks = re.findall(rf"<{kind}\b(?![^>]*json)[^>]*>(.*?)</{kind}>", text, re.DOTALL)
        assert blocks
        for block in blocks:
            digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in rules[rule]


@pytest.mark.parametrize("name", ["page.html", "projection.html", "timelapse.html"])
def test_every_kind_of_page_has_the_policy_and_scripts_that_never_differ(name: str) -> None:
    folder = Path(render.__globals__["__file__"]).parent
    text = (folder / name).read_text(encoding="utf-8")
    assert 'content="{{ policy|safe }}"' in text
    for each in folder.glob("*.html"):
        content = each.read_text(encoding="utf-8")
        assert not re.search(r"<(script|style)>((?!</\1>).)*\{[{%]", content, re.DOTALL), each.name
        assert not re.search(r"\son\w+=", content), each.name
    assert policy().count("sha256-") >= 7


@pytest.mark.slow
def test_a_browser_runs_the_scripts_of_a_page_and_none_that_came_in(tab: Tab, tmp_path: Path) -> None:
    tab.show(page(), tmp_path)
    assert tab.complaints == []
    assert tab.ask("[...document.querySelectorAll('[data-save]')].some((button) => !button.hidden)")
    assert tab.ask("getComputedStyle(document.body).maxWidth") != "none"
    tab.show(page().replace("what it is", SCRIPT + STYLE + HANDLER), tmp_path)
    tab.page.wait_for_timeout(100)
    assert tab.ask("document.title") == "A run - attnlab"
    assert tab.ask("getComputedStyle(document.body).display") == "block"
    assert len(tab.complaints) == 3
    assert all("Content Security Policy" in each for each in tab.complaints)
