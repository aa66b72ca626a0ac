"""The explorer as a person uses it, in a real browser: every view and every way to touch the model."""

import re
from base64 import b64encode
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import torch
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Route, expect
from torch import nn

import attnlab
from attnlab.explorer import strata
from attnlab.explorer.bench import Bench
from attnlab.explorer.library import Library, Shelf, run_library
from attnlab.explorer.page_state import read_pixels
from attnlab.explorer.scene import Listed
from browser import Tab
from explorer_page import AXE, NO_AXE, PICTURES, Explorer, Place, numbers_of, served

pytestmark = pytest.mark.slow

ZOO = ("zoo:adder", "zoo:long-adder", "zoo:sorter", "zoo:digit", "zoo:grid")
VIEWS = ("Heads", "Guesses", "Neurons", "Ask", "Findings", "About")
SEVEN = [(0.28, 0.18), (0.72, 0.18), (0.45, 0.85)]
ONE = [(0.5, 0.15), (0.5, 0.85)]


class Attentive(nn.Module):
    """A small classifier whose attention is torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 12)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.out = nn.Linear(12, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        return self.out((x + self.attention(x, x, x)[0]).mean(dim=1))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """All kinds of subjects, served: shipped runs, a run of one's own with snapshots, a wrapped model."""
    folder = tmp_path_factory.mktemp("runs")
    example = Path(__file__).parent.parent / "examples/brackets.py"
    settings: dict[str, Any] = {"width": 8, "heads": 2, "hidden": 11, "layers": 2, "pairs": 3, "threads": 1}
    settings |= {"train": 160, "valid": 31, "test": 37, "epochs": 2, "batch": 32, "snapshots": (3,)}
    run = attnlab.train(str(example), out=folder / "brackets", **settings)
    torch.manual_seed(7)
    wrapped = attnlab.wrap(Attentive(), inputs=(torch.zeros(2, 7, dtype=torch.long),))
    data = attnlab.examples(torch.randint(11, (23, 7)), torch.arange(23) % 5)
    name = "a wrapped model"
    bench = Bench.of_model(wrapped, data, name=name)
    shelf = Shelf(name, lambda: Listed(name, name, "", None), lambda: bench)
    known = run_library([str(run.path)], folder)
    with (
        pytest.MonkeyPatch.context() as patch,
        served(Library([*known.shelves().values(), shelf])) as address,
    ):
        patch.setattr(strata, "ANSWERED", 500)  # among so many there are misread ones of all shipped runs
        yield Place(address, {"brackets": next(iter(known.shelves()))})


@pytest.fixture(scope="module")
def explorer(chromium: Browser, place: Place) -> Iterator[Explorer]:
    with chromium.new_context() as context:
        yield Explorer.of(Tab(context.new_page()), place)


# every view


EDITED = "zoo:adder&text=1%2B1&other-text=2%2B2&edits=off~encoder.0~zero"
LIGHT, DARK = (1280, False), (390, True)


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("zoo:adder", *LIGHT),
        ("zoo:long-adder", *LIGHT),
        ("zoo:sorter", *DARK),
        ("zoo:digit", *LIGHT),
        ("zoo:grid", *DARK),
        ("brackets", *DARK),
        ("a wrapped model", *LIGHT),
    ],
)
def test_every_view_opens_fits_and_has_no_serious_fault(
    name: str, width: int, dark: bool, explorer: Explorer
) -> None:
    page = explorer.open(name, width=width, dark=dark)
    tab = page.tab
    tabs = page.named("views").get_by_role("tab").all_inner_texts()
    assert tabs == [each for each in VIEWS if each in tabs]
    assert {"Heads", "About"} <= set(tabs)
    for view in tabs:
        page.view(view)
        assert tab.ask("document.documentElement.scrollWidth") <= width
        if PICTURES:
            where = f"{name.replace(':', '-')}-{view}-{width}.png".lower().replace(" ", "-")
            tab.page.screenshot(path=f"{PICTURES}/{where}", full_page=True)
        if AXE.is_file():
            assert page.judge() == []
    assert tab.complaints == []
    hosts = {urlsplit(request).hostname for request in tab.requests}
    assert hosts <= {"127.0.0.1"}
    if not AXE.is_file():
        pytest.skip(NO_AXE)


@pytest.mark.skipif(not AXE.is_file(), reason=NO_AXE)
@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_edits_and_a_second_input_have_no_serious_fault(width: int, dark: bool, explorer: Explorer) -> None:
    page = explorer.open(EDITED, width=width, dark=dark)
    assert page.judge() == []
    assert page.tab.ask("document.documentElement.scrollWidth") <= width


def test_no_request_leaves_the_machine(tab: Tab, place: Place) -> None:
    asked: list[str] = []

    def pass_on(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    tab.page.context.route("**/*", pass_on)
    page = Explorer.of(tab, place).open("zoo:adder")
    for view in VIEWS:
        page.view(view)
    page.open("zoo:digit").draw(SEVEN)
    assert len(asked) > 10
    assert {urlsplit(each).hostname for each in asked} == {"127.0.0.1"}
    assert tab.complaints == []


# giving inputs


def test_a_sum_is_typed_and_errors_are_said_while_it_is(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder")
    page.type("999+1")
    assert page.answers() == ["1000"]
    field = page.named("input-text")
    field.press("End")
    field.press_sequentially("x")
    page.settle()
    said = page.tab.page.get_by_role("alert").filter(visible=True).all_inner_texts()
    assert said == ["'999+1x' is not a sum of two numbers; write it as 374+814"]
    assert field.get_attribute("aria-invalid") == "true"
    assert page.answers() == ["1000"]
    field.press("Backspace")
    page.settle()
    assert page.tab.page.get_by_role("alert").filter(visible=True).count() == 0
    assert page.answers() == ["1000"]
    assert page.state()["text"] == "999%2B1"
    assert field.get_attribute("inputmode") == "tel"
    page.press("999+999", "input")
    assert page.answers() == ["1998"]
    assert field.input_value() == "999+999"


def test_a_list_is_typed(explorer: Explorer) -> None:
    page = explorer.open("zoo:sorter")
    page.type("3 8 15 23 42 67 80 91")
    assert page.answers() == ["sorted"]
    page.type("3 8 15 42 23 67 80 91")
    assert page.answers() == ["unsorted"]


def test_text_of_a_task_of_ones_own_is_typed(explorer: Explorer) -> None:
    page = explorer.open("brackets")
    page.type("(()())")
    assert page.answers()[0] in ("yes", "no")
    page.type("(x)")
    assert page.named("input-text").get_attribute("aria-invalid") == "true"


def test_a_digit_is_drawn_undone_and_cleared(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit")
    before = page.answers()
    page.draw(SEVEN)
    assert page.answers() == ["7"]
    page.draw([(0.3, 0.5), (0.7, 0.5)])
    assert page.answers() == ["7"]
    page.press("Undo stroke")
    page.press("Undo stroke")
    assert page.answers() == before
    page.press("Clear", "input")
    page.draw(ONE)
    assert page.answers() == ["1"]
    assert page.state()["pixels"].startswith("1x28x28.")


def test_a_digit_is_drawn_with_a_finger(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit", width=390)
    tab = page.tab
    page.named("input-draw").scroll_into_view_if_needed()
    box = page.named("input-draw").bounding_box()
    assert box is not None
    touch = tab.page.context.new_cdp_session(tab.page)
    points = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in SEVEN]
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for from_, to in pairwise(points):
        for share in (0.25, 0.5, 0.75, 1.0):
            between = {key: from_[key] + share * (to[key] - from_[key]) for key in ("x", "y")}
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [between]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.settle()
    assert page.answers() == ["7"]


def test_a_pen_draws_the_thicker_the_harder_it_is_pressed(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit")
    pen = page.tab.page.context.new_cdp_session(page.tab.page)
    box = page.named("input-draw").bounding_box()
    assert box is not None
    drawn = []
    for force in (0.2, 0.9):
        page.press("Clear", "input")
        kinds = ("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased")
        for kind, (x, y) in zip(kinds, (*SEVEN, SEVEN[-1]), strict=True):
            where = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "force": force}
            how = {"type": kind, "button": "left", "buttons": 1, "pointerType": "pen"}
            pen.send("Input.dispatchMouseEvent", {**how, **where})
        page.settle()
        assert page.answers() == ["7"]
        drawn.append(read_pixels(page.state()["pixels"]).array.sum())
    assert drawn[1] > 1.3 * drawn[0]


def test_nothing_moves_by_itself_where_that_is_not_wanted(explorer: Explorer) -> None:
    page = explorer.open("zoo:sorter")
    moving = """[...document.querySelectorAll("*")].map(getComputedStyle).filter((each) =>
      Number.parseFloat(each.transitionDuration) > 0 || each.animationName !== "none"
      || each.scrollBehavior !== "auto").length"""
    assert page.tab.ask(moving) > 0
    page.tab.page.emulate_media(reduced_motion="reduce")
    assert page.tab.ask(moving) == 0
    page.tab.page.emulate_media(reduced_motion="no-preference")


def test_digits_are_drawn_into_the_cells_of_a_grid(explorer: Explorer) -> None:
    page = explorer.open("zoo:grid")
    page.press("Clear", "input")
    cells = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)]
    for (left, top), stroke in zip(cells, (ONE, SEVEN, SEVEN, ONE), strict=True):
        page.draw([(left + x / 2, top + y / 2) for x, y in stroke])
    assert page.answers() == ["1771"]


def test_pixels_are_painted_with_the_keyboard_alone(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit")
    page.way("paint")
    page.press("Clear", "input")
    area = page.named("input-paint")
    area.focus()
    for key in ("ArrowUp",) * 9 + ("Space", "ArrowDown") * 18:
        area.press(key)
    page.settle()
    assert page.answers() == ["1"]
    area.press("ArrowUp")
    said = page.tab.ask(
        "[...document.querySelectorAll('[role=status]')].map(each => each.textContent).join()"
    )
    assert "row 23, column 15, value 255" in said
    area.press("Delete")
    page.settle()
    assert page.tab.complaints == []


def test_a_picture_is_chosen_and_what_is_none_is_refused(explorer: Explorer, tmp_path: Path) -> None:
    page = explorer.open("zoo:digit")
    page.way("picture")
    image = Image.new("L", (301, 211), 236)
    ImageDraw.Draw(image).line([(90, 40), (190, 40), (130, 180)], fill=24, width=17, joint="curve")
    image.save(tmp_path / "seven.png")
    page.named("input-file").set_input_files(tmp_path / "seven.png")
    page.tab.page.get_by_label("What the model sees").wait_for()
    page.tab.page.wait_for_function("() => location.hash.includes('pixels')")
    page.settle()
    assert page.answers() == ["7"]
    (tmp_path / "no.png").write_bytes(b"no picture at all")
    page.named("input-file").set_input_files(tmp_path / "no.png")
    error = page.named("input").get_by_role("alert").filter(has_text="picture")
    error.wait_for()
    assert "is not a picture" in error.inner_text()
    assert page.answers() == ["7"]


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_picture_is_taken_wherever_it_is_brought(how: str, explorer: Explorer) -> None:
    """The page opens at "Draw": nobody need look for "Picture" first."""
    page = explorer.open("zoo:digit&other-example=valid.1")
    first, second = (picture_of(stroke) for stroke in (SEVEN, ONE))
    bring(page, how, first, "document.body")
    assert page.answers() == ["7"]
    assert page.named("input-by-picture").get_attribute("aria-selected") == "true"
    bring(page, how, second, "document.querySelector('[data-name=other]')")
    assert page.state()["other-pixels"].startswith("1x28x28.")
    assert page.answers() == ["7"]
    page.open("zoo:adder")
    page.tab.visit(page.place.at("zoo:adder"))
    page.settle()
    bring(page, how, first, "document.body", waits=False)  # sums have no pictures, and the page stays
    assert page.named("input-text").is_visible()
    assert page.tab.complaints == []


def picture_of(stroke: list[tuple[float, float]]) -> str:
    """A PNG with a dark line on light paper, as base64."""
    image, file = Image.new("L", (211, 211), 236), BytesIO()
    points = [(211 * x, 211 * y) for x, y in stroke]
    ImageDraw.Draw(image).line(points, fill=24, width=17, joint="curve")
    image.save(file, "PNG")
    return b64encode(file.getvalue()).decode()


def bring(page: Explorer, how: str, picture: str, where: str, *, waits: bool = True) -> None:
    before = page.tab.ask("location.href")
    held = page.tab.ask(
        f"""(() => {{
          const bytes = Uint8Array.from(atob("{picture}"), (each) => each.charCodeAt(0));
          const data = new DataTransfer();
          data.items.add(new File([bytes], "drawn.png", {{type: "image/png"}}));
          const how = {{bubbles: true, cancelable: true}};
          const over = new DragEvent("dragover", {{...how, dataTransfer: data}});
          const event = "{how}" === "paste" ? new ClipboardEvent("paste", {{...how, clipboardData: data}})
            : new DragEvent("drop", {{...how, dataTransfer: data}});
          const target = {where};
          if ("{how}" === "drop") target.dispatchEvent(over);
          target.dispatchEvent(event);
          return event.defaultPrevented && ("{how}" === "paste" || over.defaultPrevented);
        }})()"""
    )
    assert held  # else the browser would open the file in place of the page
    if waits:
        page.tab.page.wait_for_function("(before) => location.href !== before", arg=before)
    page.settle()


def test_what_was_listed_is_not_offered_while_another_group_is_looked_for(explorer: Explorer) -> None:
    page = explorer.open("zoo:grid")
    page.way("examples")
    cards = page.named("input").locator(".example-card")
    cards.first.wait_for()
    page.named("input-stratum").locator("option", has_text="wrong").wait_for(state="attached")
    page.named("input-stratum").select_option("wrong")
    status = page.named("input").get_by_role("status")
    status.filter(has_text="looking").wait_for()
    assert cards.count() == 0
    assert page.named("input-next").is_disabled()
    status.filter(has_text="example").wait_for()


@pytest.mark.parametrize(("name", "group"), [("zoo:adder", "carry chain 3"), ("zoo:digit", "digit 4")])
def test_examples_are_stepped_through_by_stratum(name: str, group: str, explorer: Explorer) -> None:
    page = explorer.open(name)
    page.way("examples")
    stratum = page.named("input-stratum")
    stratum.locator("option", has_text=group).wait_for(state="attached")
    stratum.select_option(group)
    seen = []
    for _ in range(2):
        before = page.tab.ask("location.href")
        page.named("input-next").click()
        page.tab.page.wait_for_function("(before) => location.href !== before", arg=before)
        page.settle()
        state = page.state()
        assert state["example"].startswith("valid.")
        seen.append(state["example"])
    assert len(set(seen)) == 2
    if name == "zoo:digit":
        expect(page.named("input").get_by_role("button", name="right answer 4")).to_have_count(12)
        assert page.answers() == ["4"]


def test_ways_to_give_an_input_are_walked_with_arrow_keys(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit")
    tabs = page.named("input").get_by_role("tab")
    assert tabs.all_inner_texts() == ["Draw", "Pixels", "Picture", "Examples"]
    tabs.first.focus()
    for expected in ("Pixels", "Picture", "Examples", "Draw"):
        page.tab.page.keyboard.press("ArrowRight")
        assert page.named("input").get_by_role("tab", selected=True).inner_text() == expected


# touching the model


@pytest.mark.parametrize("name", ["zoo:adder", "a wrapped model"])
def test_a_head_is_switched_off_and_back(name: str, explorer: Explorer) -> None:
    page = explorer.open(name)
    head = page.tab.page.locator("[data-head]").first
    where = head.get_attribute("data-head")
    head.locator(".thumb-choose").click()
    page.press("Switch off", "head")
    assert len(page.answers()) == 2
    assert page.state()["edits"] == f"off~{where}~zero"
    assert head.evaluate("element => element.classList.contains('off')")
    page.tab.page.keyboard.press("Control+z")
    page.settle()
    assert len(page.answers()) == 1
    page.tab.page.keyboard.press("Control+y")
    page.settle()
    assert len(page.answers()) == 2
    assert page.tab.complaints == []


def test_heads_are_chosen_and_switched_by_keys(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=999%2B1")
    page.tab.page.focus(".thumb.chosen .thumb-choose")
    for key in ("ArrowRight", "o"):
        page.tab.page.keyboard.press(key)
        page.settle()
    assert page.named("edits").locator("li > span").all_inner_texts() == [
        "encoder.0.self.1 off: zero instead"
    ]


def test_undo_needs_no_place_to_be_chosen_first(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814")
    page.tab.page.locator('[data-off="decoder.0"]').click()
    page.settle()
    page.tab.page.mouse.click(2, 300)  # nothing is there
    assert page.tab.ask("document.activeElement === document.body")
    page.tab.page.keyboard.press("Control+z")
    page.settle()
    assert page.answers() == ["1188"]


def test_a_whole_layer_is_switched_off_and_the_change_is_marked(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814")
    page.tab.page.locator('[data-off="decoder.0"]').click()
    page.settle()
    assert page.answers() == ["1188", "1288"]
    said = page.named("answer").locator(".said").nth(1)
    assert said.locator(".answer-text.changed").count() == 1
    assert said.locator(".token.changed .token-label").all_inner_texts() == ["2"]
    python = page.named("edits").locator("code").text_content() or ""
    assert "decoder.0" in python
    assert "374+814" in python
    page.press("Clear", "edits")
    assert page.answers() == ["1188"]


def test_what_takes_the_place_of_a_head_is_chosen(explorer: Explorer) -> None:
    page, to = explorer.open("zoo:sorter&text=1 2 3 4 5 6 8 7"), "mean"
    page.tab.page.get_by_label("Off means").select_option(to)
    page.tab.page.locator('[data-off="encoder.1.self"]').click()
    page.settle()
    assert page.state()["edits"] == f"off~encoder.1.self~{to}"
    assert len(page.answers()) == 2


def test_scores_are_scaled_with_the_slider(explorer: Explorer) -> None:
    page = explorer.open("zoo:sorter&text=1 2 3 4 5 6 8 7&head=encoder.1.self.0")
    slider = page.named("head").get_by_role("slider")
    slider.focus()
    slider.press("Home")
    page.settle()
    assert page.state()["edits"] == "scale~encoder.1.self.0~0"
    before, after = page.answers()
    assert before == "unsorted"
    assert after in ("sorted", "unsorted")


def test_a_pattern_is_painted_by_hand(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814&head=encoder.0.self.0")
    page.press("Paint", "head")
    box = page.named("head").locator(".map").bounding_box()
    assert box is not None
    canvas = page.named("head").locator(".map canvas").bounding_box()
    assert canvas == box  # what is painted lies below its labels
    mouse = page.tab.page.mouse
    mouse.move(box["x"] + box["width"] * 1.5 / 7, box["y"] + box["height"] * 2.5 / 7)
    mouse.down()
    mouse.move(box["x"] + box["width"] * 3.5 / 7, box["y"] + box["height"] * 2.5 / 7, steps=9)
    mouse.up()
    page.settle()
    edits = page.state()["edits"]
    name, weights = edits.removeprefix("pattern~").split("~")
    query, *row = map(float, weights.split("_"))
    assert (name, query) == ("encoder.0.self.0", 2)
    assert row == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0, 0, 0], abs=1e-3)
    assert page.named("head").get_by_label("Row 2 (3), key +:").input_value() == "0.333"
    page.tab.page.keyboard.press("Control+z")
    page.settle()
    assert "edits" not in page.state()  # one stroke is one step


def test_a_head_of_the_second_input_is_dragged_onto_the_first(explorer: Explorer) -> None:
    page = explorer.open("zoo:sorter&text=3 8 15 42 23 67 80 91&other-text=3 8 15 23 42 67 80 91")
    head = "encoder.1.self.0"
    source = page.tab.page.locator(f'[data-lent="{head}"]')
    source.scroll_into_view_if_needed()
    source.drag_to(page.tab.page.locator(f'[data-head="{head}"]'))
    page.settle()
    assert page.state()["edits"] == f"swap~{head}"
    assert page.answers() == ["unsorted", "sorted"]
    assert page.named("edits").locator("code").text_content() == (
        'import attnlab as al\n\nrun = al.load("zoo:sorter")\n'
        f'with run.changed({{"op": "swap", "at": "{head}"}}, other="3 8 15 23 42 67 80 91"):\n'
        '    answer = run.predict("3 8 15 42 23 67 80 91")\n'
        "print(answer.text, answer.probability)"
    )


def test_all_heads_of_a_site_are_taken_from_the_second_input(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=999%2B1&other-text=999%2B0")
    page.press("Take all heads of decoder.0.cross from the second input")
    assert page.state()["edits"] == "swap~decoder.0.cross"
    assert page.answers() == ["1000", "999"]


def test_a_second_input_is_added_changed_and_removed(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=999%2B1")
    page.press("Add a second input to swap from")
    page.type("999+0", "other")
    assert page.state()["other-text"] == "999%2B0"
    page.type("999+", "other")
    alerts = page.tab.page.get_by_role("alert").filter(visible=True).all_inner_texts()
    assert alerts == ["'999+' is not a sum of two numbers; write it as 374+814"]
    page.press("Remove")
    assert "other-text" not in page.state()


def test_an_answer_is_stepped_through_and_played(tab: Tab, place: Place) -> None:
    page = Explorer.of(tab, place).open("zoo:adder&text=374%2B814&head=decoder.0.cross.1")
    for step in ("4", "3", "2"):
        page.press("A token back", "answer")
        assert page.state()["step"] == step
    labels = page.named("head").locator(".row-labels span").all_inner_texts()
    assert labels == ["⊢", "8", "8", "·", "·"]  # what is not said yet is not told
    tab.page.clock.install()
    page.button("Play the answer token by token", "answer").click()
    page.button("Pause", "answer").wait_for()
    tab.page.clock.run_for(4000)
    page.button("Play the answer token by token", "answer").wait_for()
    assert page.answers() == ["1188"]


def test_a_token_that_is_pointed_at_is_marked_everywhere(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814&head=decoder.0.cross.1")
    page.named("answer").locator(".token").nth(2).hover()
    page.settle()
    expect(page.named("answer").locator(".token.hovered")).to_have_count(1)
    expect(page.named("head").locator(".row-labels .hovered")).to_have_count(1)
    expect(page.named("answer").locator(".detail .caption")).to_have_text("Most probable: 10^2")


def test_a_label_that_is_pointed_at_is_marked_in_every_head(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=999%2B1&head=decoder.0.cross.1")
    page.named("head").locator(".column-labels span").nth(3).hover()
    first = page.tab.page.locator(".layer").first
    expect(first.locator(".thumb-column:visible, .thumb-row:visible")).to_have_count(8)
    # the + is query and key of 4 heads
    assert page.named("head").locator(".column-labels .hovered").inner_text() == "+"


def test_numbers_behind_a_picture_are_shown(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814&head=encoder.0.self.0")
    page.named("head").locator(".map").focus()
    page.tab.page.keyboard.press("ArrowDown")
    readout = page.named("head").locator(".readout").first
    assert re.fullmatch(r"7 looks at 4 with 0\.\d{3}", readout.inner_text())
    page.press("Numbers", "head")
    assert page.named("head").locator("tbody td").count() == 49


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_an_answer_of_200_digits_fits(width: int, dark: bool, explorer: Explorer) -> None:
    long = f"{'9' * 200}+1"
    page = explorer.open(f"zoo:long-adder&text={quote(long)}", width=width, dark=dark)
    assert page.answers() == [f"1{'0' * 200}"]
    assert page.tab.ask("document.documentElement.scrollWidth") <= width
    assert page.named("answer").locator(".token").filter(visible=True).count() == 202
    box = page.named("answer").bounding_box()
    assert box is not None
    assert box["height"] < 900  # the screen
    page.press("Numbers", "head")
    rows = page.named("head").locator("tbody tr")
    assert (rows.count(), rows.first.locator("td").count()) == (401, 3)  # not 160,801 cells
    assert not AXE.is_file() or page.judge() == []
    assert page.tab.complaints == []


def test_guesses_and_neurons_are_shown(explorer: Explorer) -> None:
    page = explorer.open("zoo:sorter&text=1 2 3 4 5 6 8 7")
    page.view("Guesses")
    rows = page.tab.page.locator("table.guesses tbody tr").all()
    shown = [row.locator("td").all_inner_texts() for row in rows]
    assert shown == [["<0.1%", ">99.9%"], [">99.9%", "<0.1%"]]  # first it would say "sorted"
    page.view("Neurons")
    page.tab.page.get_by_label("Feed-forward part").select_option("encoder.1.feed")
    page.settle()
    assert page.state()["feed"] == "encoder.1.feed"
    assert page.tab.page.locator(".named li").count() > 0


def test_what_a_view_shows_of_an_edited_model_is_chosen_there(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814&edits=off~decoder.0~zero&view=guesses")
    last = page.tab.page.locator("table.guesses tbody tr").last.locator(".sign")
    show = page.tab.page.locator("label", has_text="Show").locator("select").filter(visible=True)
    assert "".join(last.all_inner_texts()) == "8821⊣"
    show.select_option("as it is")
    page.settle()
    assert "".join(last.all_inner_texts()) == "8811⊣"
    page.view("Neurons")
    assert show.locator("option:checked").inner_text() == "as it is"
    page.press("Clear", "edits")
    assert show.count() == 0


def test_letters_stay_upright_beside_longer_labels(explorer: Explorer) -> None:
    page = explorer.open("brackets&text=(())")
    labels = page.named("head").locator(".column-labels span")
    modes = labels.evaluate_all("all => all.map(each => getComputedStyle(each).writingMode)")
    assert modes == ["vertical-rl", *["horizontal-tb"] * 4]


@pytest.mark.parametrize("width", [640, 768, 1024])
def test_tokens_of_an_answer_stand_beside_each_other(width: int, explorer: Explorer) -> None:
    """640 pixels are a desktop at 200%."""
    page = explorer.open("zoo:adder&text=374%2B814&edits=off~decoder.0~zero", width=width)
    boxes = page.named("answer").locator(".said").nth(1).locator(".token").all()
    places = [box.bounding_box() for box in boxes]
    assert len({round(each["y"]) for each in places if each}) == 1
    detail = page.named("answer").locator(".detail").bounding_box()
    assert detail is not None
    for each in places:
        assert each is not None
        apart = each["x"] + each["width"] <= detail["x"] or each["y"] + each["height"] <= detail["y"]
        assert apart


def test_snapshots_of_the_training_are_slid_through(explorer: Explorer) -> None:
    page = explorer.open("brackets")
    slider = page.named("snapshots").get_by_role("slider")
    slider.focus()
    slider.press("Home")
    page.settle()
    assert page.state()["snapshot"] == "0"
    slider.press("End")
    page.settle()
    assert "snapshot" not in page.state()


@pytest.mark.parametrize("name", [*ZOO, "brackets", "a wrapped model"])
def test_every_edit_is_made_undone_and_shared(name: str, explorer: Explorer) -> None:
    """The same interactions with every kind of subject; what they do to answers, others test by value."""
    page = explorer.open(f"{name}&other-example=valid.1")
    whole, keyboard = page.answers(), page.tab.page.keyboard
    heads = page.tab.page.locator("[data-head]")
    head = heads.first.get_attribute("data-head") or ""
    site = head.rpartition(".")[0]
    above = [each for each in (site, site.rpartition(".")[0]) if each]  # a wrapped attention is in no layer
    off = page.tab.page.get_by_label("Off means")
    page.tab.page.locator(f'.thumb [data-off="{head}"]').click()
    for to in ("mean", "resample", "zero"):
        off.select_option(to)
        page.settle()
        assert page.state()["edits"] == f"off~{head}~{to}"
    for part in above:
        page.tab.page.locator(f'[data-off="{part}"]').first.click()
    heads.first.locator(".thumb-choose").click()
    slider = page.named("head").get_by_role("slider")
    slider.focus()
    slider.press("Home")
    if page.button("As a map", "head").is_visible():
        page.press("As a map", "head")
    page.press("Paint", "head")
    page.named("head").locator(".map").focus()
    keyboard.press("Space")  # the first query looks at the first key alone
    page.tab.page.locator(f'[data-swap="{site}"]').click()
    page.settle()
    *edits, painted, swapped = page.state()["edits"].split("!")
    assert edits == [f"off~{head}~zero", *(f"off~{part}~zero" for part in above), f"scale~{head}~0"]
    assert painted.startswith(f"pattern~{head}~0_1_0")
    assert swapped == f"swap~{site}"
    assert page.named("edits").locator("li").count() == len(edits) + 2
    assert page.named("edits").locator("li.idle").count() == 0
    changed, state = page.answers(), page.tab.ask("location.hash")
    assert (len(changed), changed[0]) == (2, whole[0])
    page.press("Numbers", "head")
    assert page.named("head").locator("tbody tr").first.locator("td").first.inner_text() == "1.000"
    _, raw = page.saved("Save the numbers as JSON")
    saved = [each["op"] for each in numbers_of(raw)["edits"]]
    assert saved == [*["off"] * (1 + len(above)), "scale", "pattern", "swap"]
    page.begin(state)
    assert page.answers() == changed
    page.press("Clear", "edits")
    assert page.answers() == whole
    page.press("Undo the last edit (Ctrl+Z)")
    assert page.answers() == changed
    page.press("Redo (Ctrl+Y)")
    assert page.answers() == whole
    assert page.tab.complaints == []


# asking further, sharing


@pytest.mark.parametrize("analysis", ["ablate", "explain", "heads"])
def test_an_analysis_of_this_input_shows_its_figures(analysis: str, explorer: Explorer) -> None:
    page = explorer.open("brackets&text=(())&view=ask")
    page.tab.page.locator(f'[data-ask="{analysis}"]').click()
    page.tab.page.locator(".results h3").wait_for()
    assert page.tab.page.locator(".results table, .results img").count() > 0
    assert page.tab.complaints == []


def test_edits_stay_active_in_an_analysis_unless_they_should_not(explorer: Explorer) -> None:
    page = explorer.open("brackets&text=(())&edits=off~encoder.1.self.0~mean&view=ask")
    titles = []
    for _ in range(2):
        page.tab.page.locator('[data-ask="ablate"]').click()  # what was there is gone at once
        titles.append(page.tab.page.locator(".results h3").inner_text())
        page.tab.page.get_by_label("with your edits").uncheck()
    about = f"ablate of (()), {page.place.names['brackets']}"
    assert titles == [f"{about}, with 1 edit", about]


def test_an_analysis_is_cancelled(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&view=ask")
    page.tab.page.get_by_label("About").select_option("many")
    page.tab.page.locator('[data-ask="ablate"]').click()
    page.button("Cancel").click()
    page.tab.page.get_by_text("Cancelled.").wait_for()
    assert page.tab.page.get_by_role("progressbar").filter(visible=True).count() == 0
    page.open("zoo:sorter&view=ask")  # the next one is not kept waiting
    page.tab.page.get_by_label("About").select_option("many")
    page.tab.page.locator('[data-ask="heads"]').click()
    page.tab.page.wait_for_selector(".results h3:has-text('500 validation examples')")


def test_the_address_holds_all_that_was_done(explorer: Explorer) -> None:
    page = explorer.open("zoo:digit")
    page.draw(SEVEN)
    page.tab.page.locator('[data-off="encoder.0"]').click()
    page.settle()
    page.state()
    answers, where = page.answers(), page.tab.ask("location.href")
    other = page.tab.page.context.new_page()
    other.goto(where)
    again = Explorer(Tab(other), page.place)
    again.settle()
    assert again.answers() == answers
    assert other.evaluate("location.href") == where
    assert len(answers) == 2
    other.close()


def test_pictures_and_numbers_are_saved(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=374%2B814")
    page.tab.page.locator('[data-off="decoder.0"]').click()
    page.settle()
    name, raw = page.saved("Save the picture as SVG")
    assert name.endswith(".svg")
    assert raw.startswith(b"<svg")
    name, raw = page.saved("Save the picture as PNG")
    with Image.open(BytesIO(raw)) as picture:
        assert (picture.format, picture.width > 300) == ("PNG", True)
    name, raw = page.saved("Save the numbers as JSON")
    numbers = numbers_of(raw)
    assert numbers["state"] == page.tab.ask("location.hash")
    assert numbers["clean"]["answer"]["text"] == "1188"
    assert numbers["edited"]["answer"]["text"] == "1288"
    assert numbers["clean"]["patterns"]["decoder.0.cross"]["shape"] == [4, 5, 7]


def test_the_lines_of_python_find_what_the_page_shows(
    explorer: Explorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = explorer.open("zoo:digit&example=valid.3&edits=off~encoder.1~mean!scale~encoder.2.self.1~3")
    page.way("paint")
    page.named("input-paint").press("Space")  # pixels are no example any more
    page.settle()
    name, raw = page.saved("Save the numbers as JSON")
    (tmp_path / name).write_bytes(raw)
    monkeypatch.chdir(tmp_path)
    python = page.named("edits").locator("code").text_content()
    assert python is not None
    exec(python, {})
    text, probability = capsys.readouterr().out.split()
    assert text == page.answers()[-1]
    shown = re.search(r"([\d.]+)%", page.tab.page.locator(".verdict").last.inner_text())
    assert shown is not None
    assert float(shown[1]) == pytest.approx(100 * float(probability), abs=0.11)  # both are rounded


def test_another_run_is_opened_from_the_sentence_that_says_there_is_none(explorer: Explorer) -> None:
    page = explorer
    page.tab.visit(page.place.at("nothing"))  # it is never drawn
    page.tab.page.wait_for_selector(".message:not(.waiting)")
    assert "nothing" in page.tab.page.inner_text(".message")
    page.tab.page.get_by_label("Run", exact=True).select_option("zoo:sorter")
    page.tab.page.wait_for_function("() => document.title.startsWith('zoo:sorter')")
    page.settle()
    assert page.answers()[0] in ("sorted", "unsorted")


# the tour and the glossary


@pytest.mark.parametrize("name", ZOO)
def test_a_first_visit_is_guided_through_seven_steps(name: str, explorer: Explorer) -> None:
    page = explorer.open(name, toured=True)
    tab, tour = page.tab, page.named("tour")
    for number in range(1, 8):
        assert tour.locator(".tour-count").inner_text() == f"Step {number} of 7"
        assert tab.page.locator(".toured").count() <= 1
        if PICTURES:
            tab.page.screenshot(path=f"{PICTURES}/tour-{name[4:]}-{number}.png")
        assert tour.locator(".tour-fact").is_hidden()
        page.named("tour-show").click()
        page.settle()
        if PICTURES:
            tab.page.screenshot(path=f"{PICTURES}/tour-{name[4:]}-{number}-done.png")
        tour.locator(".tour-fact").wait_for()
        page.named("tour-next").click()
    assert tour.is_hidden()
    assert tab.complaints == []
    page.begin(f"#run={name}")
    assert tour.is_hidden()


def test_a_step_is_done_by_doing_it(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder", toured=True)
    page.type("999+1")
    fact = page.named("tour").locator(".tour-fact")
    expect(fact).to_have_text("Done. It says 0, 0, 0, 1: the ones first. That is 1000, and right.")
    page.named("tour-next").click()
    assert page.named("tour").locator(".tour-count").inner_text() == "Step 2 of 7"
    page.press("A token back", "answer")
    expect(fact).to_have_text("Done.")  # there is time to look, and to press Next
    page.named("tour-next").click()
    assert page.named("tour").locator(".tour-count").inner_text() == "Step 3 of 7"
    page.named("tour-end").click()
    assert page.named("tour").is_hidden()
    page.tab.page.get_by_text("Help", exact=True).click()
    page.button("Tour in seven steps").click()
    assert page.named("tour").locator(".tour-count").inner_text() == "Step 1 of 7"
    page.tab.page.keyboard.press("Escape")
    assert page.named("tour").is_hidden()


@pytest.mark.parametrize("name", ["brackets", "a wrapped model"])
def test_any_other_model_has_a_tour_of_its_own(name: str, explorer: Explorer) -> None:
    page = explorer.open(name, toured=True)
    tour, done = page.named("tour"), []
    for number in range(1, 8):
        assert re.fullmatch(rf"Step {number} of [567]", tour.locator(".tour-count").inner_text())
        if page.named("tour-show").is_visible():
            page.named("tour-show").click()
            page.settle()
            expect(tour.locator(".tour-fact")).to_be_visible()
            done.append(tour.locator(".tour-fact").inner_text())
        page.named("tour-next").click()
        if tour.is_hidden():
            break
    assert tour.is_hidden()
    assert done == ["Done."] * len(done)
    assert len(done) >= 4


def test_a_step_that_was_done_before_is_shown_all_the_same(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder&text=999%2B1", toured=True)
    page.named("tour-show").click()
    page.settle()
    expect(page.named("tour").locator(".tour-fact")).to_contain_text("Done.")


def test_words_open_the_glossary_and_the_keyboard_closes_it(explorer: Explorer) -> None:
    page = explorer.open("zoo:adder", toured=True)
    tab = page.tab
    page.named("tour").locator(".term", has_text="carry").click()
    glossary = page.named("glossary")
    assert glossary.locator(".entry.chosen dt").inner_text() == "carry"
    assert tab.ask("document.activeElement.textContent") == "carry"
    tab.page.keyboard.press("Escape")
    assert glossary.is_hidden()
    assert tab.ask("document.activeElement.textContent") == "carry"
