"""Pages of runs of all four tasks, read as text and opened in a real browser."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from attnlab.analysis import mistakes
from attnlab.analysis.ablate.ablation import Ablation, ablate_run
from attnlab.analysis.image_classifier import image_classifier
from attnlab.cli.train import read_options
from attnlab.errors import InputError, RunError, StorageError
from attnlab.figures.maps import MapsFigure
from attnlab.problems.addition.evaluate import Chain, Count, Verification, Wrong
from attnlab.problems.sorting import Sorting
from attnlab.report import images
from attnlab.report.common import course_of, heads_section
from attnlab.report.digits import groups_compared
from attnlab.report.images import map_signs, maps_section
from attnlab.report.page import train_command
from attnlab.report.reasons import reasons_section
from attnlab.report.run_report import write_report
from attnlab.report.study_report import write_study_report
from attnlab.runs import RunFolder, create_run
from attnlab.specs import AdamW, PatchSeq2SeqModel, Rotary, Seq2SeqModel, Spec, TokensModel
from attnlab.studies.outcome import read_results
from attnlab.training import train_run
from browser import Tab
from commands import attnlab, complaint
from specs import PRESETS
from tiny_runs import TRAINING, train_four

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TASKS = ("adder", "sorter", "digit", "grid")
FIGURES = {
    "adder": "curves chains heads missed encoder-self decoder-self decoder-cross reasons",
    "sorter": "curves lengths heads missed patterns reasons",
    "digit": (
        "curves probes classes confusion heads missed maps-received maps-rollout reasons projections "
        "reliability coverage mistakes"
    ),
    "grid": (
        "curves cells classes confusion heads missed maps-digits maps-rollout reasons projections "
        "reliability coverage mistakes"
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with four runs and the page of each."""
    home = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mistakes, "SHOWN", 3)
        for name, run in train_four(home).items():
            write_report(run, home / f"{name}.html", samples=40)
        yield home


@pytest.fixture(scope="module")
def pages(home: Path) -> dict[str, str]:
    return {name: (home / f"{name}.html").read_text() for name in TASKS}


class ImageClassifier(HTMLParser):
    """Collects what a page would fetch, its figures' descriptions, and whether tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.figures: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        for name in ("src", "href", "xlink:href"):
            address = found.get(name)
            if address and not address.startswith(("#", "data:")):
                self.fetched.append(address)
        if tag == "figure":
            assert len(found["aria-label"] or "") > 100
            self.figures.append(found["data-name"] or "")
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("meta", "link", "br"):
            return
        assert self.open.pop() == tag


def numbers(page: str) -> dict[str, Any]:
    """The numbers of each figure, by its name."""
    found = re.findall(r'<summary>The numbers</summary><pre id="numbers-([\w-]+)">(.*?)</pre>', page)
    return {name: json.loads(text.replace("&#34;", '"')) for name, text in found}


@pytest.mark.parametrize("name", TASKS)
def test_a_page_stands_alone_and_describes_every_figure(name: str, pages: dict[str, str]) -> None:
    page, reader = pages[name], ImageClassifier()
    reader.feed(page)
    assert reader.fetched == []
    assert "url(" not in re.sub(r"url\(#\w+\)|url\(\$\{data.sheets", "", page)
    assert "@import" not in page
    assert reader.open == []
    assert reader.figures == FIGURES[name].split()
    assert numbers(page).keys() == set(reader.figures)
    assert page.count("How to read it.") == page.count("Good and bad signs.") == len(reader.figures)
    assert len(page.encode()) < 4_000_000


@pytest.mark.parametrize("name", TASKS)
def test_signs_name_both_and_say_which_is_here(name: str, pages: dict[str, str]) -> None:
    for line in re.findall(r"<b>Good and bad signs.</b> (.*?)</p>", pages[name]):
        assert re.match(r"Good: .* Bad: .* Here ", line), line


def test_captions_are_made_from_the_numbers_of_their_figures(pages: dict[str, str]) -> None:
    for name in TASKS:
        page, found = html.unescape(pages[name]), numbers(pages[name])
        epochs = found["curves"]["epochs"]
        assert course_of(epochs["epoch"], epochs["judged"]) in page
        for group in {"classes", "cells"} & found.keys():
            shares = [share / 100 for share in found[group]["percent"]]
            assert groups_compared(found[group]["examples"], shares) in page
        for maps in [each for each in found if each.startswith("maps")]:
            assert map_signs(MapsFigure.from_json(found[maps]).images) in page


def test_numbers_are_those_of_the_run(home: Path, pages: dict[str, str]) -> None:
    run, found = RunFolder(home / "adder"), numbers(pages["adder"])
    losses = [record.valid_loss for record in run.metrics().epochs]
    assert found["curves"]["epochs"]["valid_loss"] == losses
    assert [layer["attention"] for layer in found["decoder-cross"]["layers"]] == ["decoder.0.cross"]
    kept = run.analysis("heads-valid")
    assert kept is not None
    cells = [row["metrics"]["entropy"]["value"] for row in kept["heads"]]
    assert [value[0] for kind in found["heads"]["kinds"] for value in kind["values"]] == cells


def test_every_head_is_shown_and_stands_in_the_table(pages: dict[str, str]) -> None:
    for head in ("encoder.0.self.0", "encoder.0.self.1", "decoder.0.self.1", "decoder.0.cross.1"):
        assert f">{head}</text>" in pages["adder"]
        assert f"<td>{head}</td>" in pages["adder"]


def test_a_kept_ablation_of_some_heads_is_not_told_as_one_of_all(home: Path) -> None:
    run = RunFolder(home / "sorter")
    ablate_run(run, Ablation(heads=("encoder.0.self.1",), baselines=("resample",)), count=7)
    section = heads_section(run, 10)
    data = json.loads(section.figures[1].data)
    assert (sorted(data["heads"]), data["towards"]) == (["encoder.0.self.0", "encoder.0.self.1"], "mean")
    ablate_run(run, Ablation(baselines=("zero",)), count=7)
    kept = json.loads(heads_section(run, 10).figures[1].data)
    run.file("analysis/ablate-valid.json").unlink()
    assert (kept["examples"], kept["towards"]) == (7, "zero")


def test_a_shipped_run_is_offered_nothing_that_it_cannot_keep(home: Path) -> None:
    run = RunFolder(home / "sorter")
    offered, plain = (reasons_section(each, "3 1 2") for each in (run, replace(run, shipped=True)))
    assert offered is not None
    assert plain is not None
    assert offered.words[:1] == plain.words
    assert offered.words[1].startswith(f"'attnlab explain {run.path} --many 200' judges")


def test_lists_that_are_too_long_to_explain_have_a_page(tmp_path: Path) -> None:
    task = Sorting(low=129, high=130, train=6, valid=10, test=12)
    model = TokensModel(layers=1, width=8, heads=2, hidden=11)
    run = create_run(tmp_path / "long", Spec(task=task, model=model, training=TRAINING))
    train_run(run)
    page = write_report(run, tmp_path / "page.html", samples=10).read_text()
    assert re.findall(r'<section id="(\w+)">', page) == [
        "trained",
        "doctor",
        "good",
        "heads",
        "mistakes",
        "made",
    ]


@pytest.mark.parametrize(
    ("counts", "figures"),
    [((2, 2, 0), ["maps-received"]), ((0, 2, 2), ["maps-digits", "maps-rollout"]), ((0, 2, 0), None)],
)
def test_pruned_attention_has_no_maps(
    counts: tuple[int, ...], figures: list[str] | None, home: Path, tmp_path: Path
) -> None:
    spec = RunFolder(home / "grid").spec()
    assert isinstance(spec.model, PatchSeq2SeqModel)
    run = create_run(tmp_path / "pruned", replace(spec, model=replace(spec.model, head_counts=counts)))
    train_run(run)
    section = maps_section(image_classifier(run), [])
    assert (None if section is None else [each.name for each in section.figures]) == figures


def test_many_maps_are_drawn_and_named_as_means(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MOST", 1)
    section = maps_section(image_classifier(RunFolder(home / "digit")), [])
    assert section is not None
    assert [each.title for each in section.figures] == ["Attention, the mean of heads", "Rollout"]
    assert "the sharpest map is encoder.0.self, mean, with" in section.figures[0].reading


def test_it_says_how_it_was_made(home: Path, pages: dict[str, str]) -> None:
    for name in TASKS:
        _, command = re.findall(r'<pre class="command">(.*?)</pre>', pages[name])
        words = shlex.split(command)
        assert words[:2] == ["attnlab", "report"]
        assert Path(words[2]) == home / name


@pytest.mark.parametrize(("task", "name"), [(task, name) for task in PRESETS for name in PRESETS[task]])
def test_the_command_of_a_run_trains_the_same_spec(task: str, name: str) -> None:
    spec = PRESETS[task][name]
    other = replace(spec, seed=7)
    if spec.engine == "torch":
        training = replace(spec.training, lr=0.0123, optimiser=AdamW(weight_decay=0.125))
        other = replace(other, training=training)
    for each in (spec, other):
        assert _read(train_command(each)) == each
    assert train_command(PRESETS["addition"]["default"]) == "attnlab train addition"


def test_commands_of_unusual_specs() -> None:
    adder, sorter = PRESETS["addition"]["default"], PRESETS["sorting"]["default"]
    model = Seq2SeqModel(positions=Rotary(base=500.0), head_counts=(1, 2, 3, 4, 0, 4))
    task = Sorting(fresh=False, negatives="swap=0.25,shuffle=0.75")
    for spec in (replace(adder, model=model), replace(sorter, task=task)):
        assert _read(train_command(spec)) == spec


def _read(command: str) -> Spec:
    return read_options(shlex.split(command)[2:], command="train")[1].spec


def test_names_are_escaped_and_verification_is_told(home: Path, tmp_path: Path) -> None:
    run = RunFolder(home / "adder")
    assert "Not verified yet" in (home / "adder.html").read_text()
    (tmp_path / "<i>run").symlink_to(run.path)
    run = RunFolder(tmp_path / "<i>run")
    found = Verification(
        correct=99,
        total=100,
        seen=Count(50, 50),
        unseen=Count(49, 50),
        by_chain=[Chain(0, 100, 0.99, (0.9, 1.0))],
        seconds=1.0,
        wrong=[Wrong(3, 4, "8")],
    )
    run.keep("verify", found)
    path = write_report(run, tmp_path / "page.html", sections=("good", "maps", "mistakes"))
    run.file("analysis/verify.json").unlink()
    page = path.read_text()
    assert "99 of 100 sums correct." in page
    assert "Of all 100 sums" in page
    assert "<tr><td>3+4</td><td>7</td><td>8</td></tr>" in page
    assert "3+4, answered with " in page


def test_only_some_sections(home: Path, tmp_path: Path) -> None:
    words = ("report", home / "digit", "--out", "new/deep/page.html", "--sections", "trained")
    attnlab(*words, cwd=tmp_path)
    page = (tmp_path / "new/deep/page.html").read_text()
    assert re.findall(r'<section id="(\w+)">', page) == ["trained", "made"]
    assert "--sections trained</pre>" in page
    assert complaint(*words, "goood", cwd=tmp_path) == (
        "sections names 'goood', which this page does not have; did you mean 'good'?"
    )


def test_a_page_that_is_too_large_says_what_makes_it_smaller(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.report.page.LARGEST", 1000)
    advice = "ask for fewer samples, or name only some sections"
    with pytest.raises(
        StorageError, match=rf"^the page would have [\d,]+ bytes, more than 1,000; {advice}$"
    ):
        write_report(RunFolder(home / "digit"), tmp_path / "page.html", sections=["trained"])
    assert not (tmp_path / "page.html").exists()


def test_of_many_points_some_are_drawn(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers stay those of all."""
    monkeypatch.setattr(images, "DRAWN", 13)
    (drawn,) = images.projections_section(RunFolder(home / "digit"), 31).figures
    assert "of 31 test digits, as points (13 of them drawn); above: the true digit" in drawn.reading
    data = json.loads(drawn.data)
    assert [(run["points"], len(run["x"]), len(run["names"])) for run in data["runs"]] == [(31, 13, 13)] * 2
    assert drawn.live is not None
    assert [len(run["x"]) for run in drawn.live["data"]["runs"]] == [13, 13]


def test_refusals_come_before_any_work(home: Path, tmp_path: Path) -> None:
    run = RunFolder(home / "adder")
    with pytest.raises(InputError, match="samples is 9; it must be at least 10"):
        write_report(run, tmp_path / "page.html", samples=9)
    assert complaint("report", "addition-order", cwd=tmp_path) == (
        "study addition-order has no result in results/addition-order yet; "
        "use: attnlab study run addition-order"
    )


def test_the_page_of_a_study(tmp_path: Path) -> None:
    words = ("report", ROOT / "results/addition-positions", "--out", "page.html", "--json")
    told = json.loads(attnlab(*words, cwd=tmp_path).stdout)
    page, reader = (tmp_path / "page.html").read_text(), ImageClassifier()
    reader.feed(page)
    assert told == {"study": "addition-positions", "report": "page.html", "bytes": len(page.encode())}
    assert (reader.fetched, reader.open, reader.figures) == ([], [], ["seeds"])
    assert "Which positional encoding learns to add, and how fast?" in page
    assert "Best by exact match on test examples: 2 of 4 variants alike, 100.00%." in page
    assert "3 of 5 paired differences from learned have p below 0.05" in page


@pytest.mark.parametrize(
    ("study", "figures"),
    [("sorting-reference", ["seeds", "variants"]), ("heads-across-seeds", ["seeds", "matched"])],
)
def test_pages_of_studies_show_curves_and_heads(study: str, figures: list[str], tmp_path: Path) -> None:
    result = read_results(ROOT / "results" / study)
    assert result is not None
    reader = ImageClassifier()
    reader.feed(write_study_report(result, tmp_path / "page.html", command="none").read_text())
    assert reader.figures == figures


def test_a_result_without_its_command_is_damaged(tmp_path: Path) -> None:
    result = read_results(ROOT / "results/addition-positions")
    assert result is not None
    known = {key: value for key, value in result.to_json().items() if key not in ("command", "environment")}
    (tmp_path / "study.json").write_text(json.dumps(known))
    with pytest.raises(RunError, match=r"study.json is damaged: it has no 'command', which it needs$"):
        read_results(tmp_path)


@pytest.mark.parametrize("name", TASKS)
def test_a_page_opens_without_a_complaint_and_fits_a_phone(name: str, home: Path, tab: Tab) -> None:
    for width, dark in ((1200, False), (390, True)):
        tab.visit(home / f"{name}.html", width=width, dark=dark)
        assert (tab.complaints, tab.requests) == ([], [])
        assert tab.ask("document.documentElement.scrollWidth") <= width
        with Image.open(BytesIO(tab.page.screenshot())) as picture:
            assert (picture.format, picture.size) == ("PNG", (width, 900))
            assert sum(count > 0 for count in picture.convert("L").histogram()) > 10  # words on paper
        paper = tab.ask("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(24, 26, 27)" if dark else "rgb(253, 253, 252)")
        assert tab.ask(CUT) == []
        sheets = tab.ask(SHEETS)
        assert len(sheets) > 2
        assert set(sheets) == {"rgb(29, 32, 33)" if dark else "rgb(255, 255, 255)"}


def test_a_picture_can_be_seen_at_its_full_size(home: Path, tab: Tab) -> None:
    tab.visit(home / "adder.html", width=390)
    button = "document.querySelector('button[data-enlarge=curves]')"
    picture = "document.querySelector('figure[data-name=curves] svg').getBoundingClientRect().width"
    small = tab.ask(picture)
    assert tab.ask(f"{button}.hidden") is False
    tab.ask(f"{button}.click()")
    assert tab.ask(f"{button}.ariaPressed") == "true"
    assert tab.ask(picture) > 1.2 * small
    assert tab.ask("document.documentElement.scrollWidth") <= 390


CUT = """[...document.querySelectorAll("figure")]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.dataset.name)"""
SHEETS = """[...document.querySelectorAll("figure svg #patch_1 path")]
  .map(each => getComputedStyle(each).fill)"""

SAVED = """(() => {
  const saved = [], click = HTMLAnchorElement.prototype.click;
  const blobs = {}, make = URL.createObjectURL;
  URL.createObjectURL = blob => { const address = make(blob); blobs[address] = blob; return address; };
  HTMLAnchorElement.prototype.click = function () { saved.push([this.download, blobs[this.href].text()]); };
  const buttons = 'button[data-of="curves"], button[data-of="spec.json"]';
  document.querySelectorAll(buttons).forEach(button => button.click());
  HTMLAnchorElement.prototype.click = click;
  return Promise.all(saved.map(async ([name, text]) => [name, await text]));
})()"""


def test_figures_can_be_saved(home: Path, pages: dict[str, str], tab: Tab) -> None:
    tab.visit(home / "adder.html")
    saved = dict(tab.ask(SAVED))
    assert list(saved) == ["curves.svg", "curves.json", "spec.json"]
    assert saved["curves.svg"].startswith('<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns')
    assert "<title>Loss and right answers: " in saved["curves.svg"]
    assert "var(" not in saved["curves.svg"]
    assert json.loads(saved["curves.json"]) == numbers(pages["adder"])["curves"]
    assert json.loads(saved["spec.json"]) == json.loads((home / "adder/spec.json").read_text())
    assert tab.complaints == []


def test_tables_can_be_sorted(home: Path, tab: Tab) -> None:
    tab.visit(home / "adder.html")
    rows = "[...document.querySelectorAll('#heads tbody tr')]"
    entropies = f"{rows}.map(row => Number(row.cells[2].textContent))"
    click = "document.querySelectorAll('#heads th button')[2].click()"
    for way in (True, False):
        tab.ask(click)
        assert tab.ask(entropies) == sorted(tab.ask(entropies), reverse=way)
        said = tab.ask("document.querySelectorAll('#heads th')[2].ariaSort")
        assert said == ("descending" if way else "ascending")


def test_points_show_their_digit_and_print_as_a_picture(home: Path, tab: Tab) -> None:
    tab.visit(home / "digit.html")
    shown = "getComputedStyle(document.querySelector('figure[data-name=projections]')).display"
    assert tab.ask(shown) == "none"
    assert tab.ask("panels.length") == 4
    tab.ask("show(panels[0], 3)")
    assert re.fullmatch(r"test:\d+: digit \d, (no cluster|cluster \w+ .*)", tab.ask("words.textContent"))
    assert tab.ask("card.hidden") is False
    assert tab.ask("digit.style.backgroundImage").startswith('url("data:image/png')
    tab.ask("document.querySelector('.legend button').click()")
    assert tab.ask("only") == tab.ask("Number(document.querySelector('.legend button').textContent)")
    tab.page.emulate_media(media="print")
    tab.ask("dispatchEvent(new Event('resize'))")
    assert tab.ask(shown) == "block"
    assert (tab.complaints, tab.requests) == ([], [])
