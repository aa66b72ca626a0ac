"""The documentation site builds without a warning and without a network; its search works from disk."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnlab
from attnlab.cli import main
from browser import Tab

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow

PAGES = ["index", "results", "explanation/studies/addition-heads", "reference/commands/ablate"]
"""What is opened at a phone's width: a picture, wide tables, a help text."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as a command of one line builds it; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going"]
    folders = ["-d", folder / "doctrees", ROOT / "docs", folder / "html"]
    done = subprocess.run([*command, *map(str, folders)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_every_document_is_a_page(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        assert (site / document.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    for notebook in (ROOT / "docs/tutorials").glob("*.ipynb"):
        assert (site / "tutorials" / f"{notebook.stem}.html").exists()


def test_every_command_and_every_public_name_has_a_page(site: Path) -> None:
    for name in main.COMMANDS:
        page = (site / f"reference/commands/{name}.html").read_text(encoding="utf-8")
        assert f"$ attnlab {name} --help" in page
        assert re.search(rf"usage: attnlab {name}\b", page)
    for name in attnlab.__all__:
        page = (site / f"reference/names/{name}.html").read_text(encoding="utf-8")
        assert f'id="attnlab.{name}"' in page
        assert "&gt;&gt;&gt;" in page  # the example, which test_front_door.py runs


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*")
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page


def test_search_works_from_disk(site: Path, tab: Tab) -> None:
    tab.visit((site / "search.html").resolve().as_uri() + "?q=Shapley")
    tab.page.wait_for_selector("#search-results li a")
    found = tab.page.locator("#search-results li a").all_inner_texts()
    assert "Ablation: removing heads" in found
    assert all(each.startswith("file:") for each in tab.requests)
    assert tab.complaints == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name: str, site: Path, tab: Tab) -> None:
    tab.visit(site / f"{name}.html", width=390, dark=True)
    assert tab.ask("document.documentElement.scrollWidth") <= 390
    assert tab.complaints == []
