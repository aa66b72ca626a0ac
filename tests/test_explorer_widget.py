"""The explorer in a notebook: Python and the page share a state, and the output outlives its kernel."""

import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import attnlab
from attnlab.errors import InputError, LabError
from attnlab.explorer import opening
from attnlab.explorer.edits import Off, Paint, Scale, Swap
from attnlab.explorer.page_state import PageState
from attnlab.explorer.scene import ExampleInput, PixelsInput, Question, TextInput
from attnlab.explorer.snapshot import snapshot_html
from attnlab.explorer.widget import Explorer
from attnlab.front.run import Run
from attnlab.lazy import Later
from explored import SITE, Echo, library_of

SECONDS = 30
nbclient, nbconvert, nbformat = (Later(name) for name in ("nbclient", "nbconvert", "nbformat"))
HEAD = "encoder.0.self.0"


@pytest.fixture(scope="module")
def run() -> Run:
    return attnlab.load("zoo:adder")


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.open.set()


@pytest.fixture
def widget(echo: Echo) -> Explorer:
    return Explorer(library_of(echo), "echo", "abc")


class Page:
    """The other end of a widget's messages."""

    def __init__(self, widget: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widget = widget
        self.said: list[tuple[Any, bytes]] = []
        self.finished = threading.Event()
        monkeypatch.setattr(widget, "send", self._take)

    def _take(self, content: Any, buffers: list[bytes]) -> None:
        self.said.append((content, buffers[0]))
        if "ok" in content:
            self.finished.set()

    def send(self, message: Any, *buffers: bytes) -> Any:
        self.said.clear()
        self.finished.clear()
        self.widget._handle_custom_msg(message, [memoryview(each) for each in buffers])
        return self.said[-1][0] if self.said else None


@pytest.fixture
def page(widget: Explorer, monkeypatch: pytest.MonkeyPatch) -> Page:
    return Page(widget, monkeypatch)


# the state that both share


def test_it_begins_with_an_input_and_its_answer(widget: Explorer, echo: Echo) -> None:
    assert (widget.input, widget.off, widget.answer) == ("abc", [], "ABC")
    assert widget.state == "#run=echo&text=abc"
    assert Explorer(library_of(echo), "echo").input == "a"  # what the task suggests


def test_the_page_follows_python(widget: Explorer) -> None:
    widget.off = [HEAD, "encoder.0"]
    assert widget.state == f"#run=echo&text=abc&edits=off~{HEAD}~zero!off~encoder.0~zero"
    widget.input = "xYz"
    assert (widget.input, widget.answer) == ("xYz", "xyz")
    widget.off = []
    assert (widget.state, widget.answer) == ("#run=echo&text=xYz", "XYZ")


def test_python_follows_the_page(widget: Explorer) -> None:
    widget.state = f"#run=echo&text=a%2Bb&edits=scale~{SITE.path}~2!off~{HEAD}~mean&view=guesses"
    assert (widget.input, widget.off, widget.answer) == ("a+b", [HEAD], "a+b")
    assert "view=guesses" in widget.state


def test_half_an_input_of_the_page_is_no_error_but_python_is_told(widget: Explorer) -> None:
    widget.state = "#run=echo&example=valid.3"  # an echo needs a text
    assert (widget.input, widget.answer) == ("valid.3", "")
    with pytest.raises(InputError, match="an echo needs a text"):
        widget.input = "valid.4"
    assert widget.input == "valid.3"
    widget.input = "good"
    assert widget.answer == "GOOD"


def test_what_was_switched_off_stays_as_it_was() -> None:
    state = PageState.read(f"#run=r&edits=off~{HEAD}~mean!swap~encoder.1&to=resample")
    assert state.with_off([HEAD, "encoder.1"]).pairs["edits"] == (
        f"off~{HEAD}~mean!swap~encoder.1!off~encoder.1~resample"
    )
    assert state.with_off([]).pairs["edits"] == "swap~encoder.1"


def test_a_state_is_a_question() -> None:
    edits = f"off~encoder.0~zero!scale~{HEAD}~0.5!swap~encoder.1!pattern~{HEAD}~3_0.25_0.75~4_1_0"
    state = PageState.read(f"#run=r&example=test.7&other-text=1%2B1&edits={edits}&snapshot=40")
    assert state.question() == Question(
        ExampleInput("test", 7),
        TextInput("1+1"),
        (
            Off("encoder.0"),
            Scale(HEAD, 0.5),
            Swap("encoder.1"),
            Paint(HEAD, {"3": [0.25, 0.75], "4": [1, 0]}),
        ),
        40,
    )
    assert PageState.read("#run=r").question() is None
    assert PageState.read(state.write()) == state


def test_pixels_of_a_state() -> None:
    """Zeros are followed by their number, as ``pixelText`` of ``store.js`` writes them."""
    question = PageState.read("#pixels=1x2x3.BwADCQAB").question()
    assert question is not None
    assert isinstance(question.input, PixelsInput)
    assert question.input.pixels.array.tolist() == [[[7, 0, 0], [0, 9, 0]]]


@pytest.mark.parametrize("text", ["", "1x2x3", "1x2x3.AAAA", "1x1x1.!", "1x9999x9999.AA"])
def test_pixels_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="the pixels in the state cannot be read"):
        PageState.read(f"#pixels={text}").question()


@pytest.mark.parametrize("edit", ["off~encoder.0", "scale~encoder.0~x", "pattern~encoder.0.self.1~3_x"])
def test_edits_that_cannot_be_read(edit: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        PageState.read(f"#text=a&edits={edit}").question()


# messages of the page


def test_requests_are_answered_as_by_the_server(page: Page) -> None:
    assert page.send({"id": 1, "kind": "list"})["value"][0]["name"] == "echo"
    assert page.send({"id": 2, "kind": "open", "run": "echo"})["value"]["source"] == "widget"
    asked = {"id": 3, "kind": "ask", "run": "echo", "question": {"input": {"text": "ab"}}}
    assert page.send(asked)["value"]["patterns"][SITE.path] == {"shape": [2, 2, 2], "at": 0, "type": "f32"}
    assert len(page.said[-1][1]) == 32
    picture = {"shape": [3], "at": 0, "type": "u8"}
    found = page.send({"id": 4, "kind": "read", "run": "echo", "picture": picture}, b"\1\2\3\0")
    assert found["value"]["shape"] == [1, 1, 3]


def test_findings_are_told_or_that_there_are_none(page: Page, echo: Echo) -> None:
    asked = {"id": 5, "kind": "findings", "run": "echo"}
    assert page.send(asked)["value"]["checked"] == "no kind of fault was looked for"
    echo.open.clear()
    assert page.send(asked) == {"id": 5, "ok": True, "value": None}
    page.send({"id": 6, "kind": "start", "run": "echo", "job": {"analysis": "doctor"}})
    assert page.finished.wait(SECONDS)
    assert page.said[-1][0]["value"]["checked"] == "nothing was looked for"


@pytest.mark.parametrize(
    "message", [None, [], {}, {"id": 1}, {"id": 1, "kind": "open", "run": "../x"}, {"id": "x"}]
)
def test_what_is_wrong_is_a_sentence(page: Page, message: Any) -> None:
    assert page.send(message)["ok"] is False


def test_a_fault_is_a_sentence(page: Page) -> None:
    asked = {"id": 3, "kind": "ask", "run": "echo", "question": {"input": {"text": "break"}}}
    assert page.send(asked)["error"].startswith("this failed inside attnlab (ZeroDivisionError)")


def test_a_job_runs_and_is_cancelled(page: Page, echo: Echo) -> None:
    job = {"analysis": "heads", "examples": 7}
    echo.open.clear()
    assert page.send({"id": 5, "kind": "start", "run": "echo", "job": job}) is None
    assert echo.begun.wait(SECONDS)
    again = page.send({"id": 6, "kind": "start", "run": "echo", "job": job})
    assert again["error"].startswith("an analysis is still running")
    page.send({"id": 7, "kind": "cancel", "run": "echo", "job": 5})
    _until(lambda: any(each.get("dropped") for each, _ in page.said))
    echo.open.set()
    page.send({"id": 8, "kind": "start", "run": "echo", "job": job})
    assert page.finished.wait(SECONDS)
    assert page.said[-1][0]["value"]["sentences"] == ["all is well"]


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(100 * SECONDS):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


# what is shown


def test_the_modules_are_one_script_without_imports(widget: Explorer) -> None:
    assert widget._esm.endswith("export default { render: attnlab.render };\n")
    assert re.findall(r"^(?:import|export)\b.*", widget._esm, re.MULTILINE) == [
        "export default { render: attnlab.render };"
    ]
    assert ".attnlab" in widget._css


def test_a_copy_of_the_scene_is_plain_and_escaped(echo: Echo) -> None:
    text = "<script>alert(1)</script>"
    question = Question(TextInput(text), edits=(Off("encoder.0"),))
    found = snapshot_html(echo.describe(), question, echo.look(question), mark='"><b>')
    assert "<script" not in found
    assert '"><b>' not in found
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found
    assert "edits: encoder.0 off: zero instead" in found
    assert re.findall(r'alt="([^"]*)"', found) == [f"{SITE.path}.0", f"{SITE.path}.1"]


def test_a_run_is_a_widget_where_that_is_asked_for(run: Run) -> None:
    widget = run.explore("374+814", serve=False)
    assert widget is not None
    assert widget.answer == "1188"
    with run.without(HEAD):
        edited = run.predict("374+814").output
    widget.off = [HEAD]
    assert widget.answer == edited


def test_a_wrapped_model_is_explored_on_examples() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    data = attnlab.examples(torch.randn(5, 7, 8), torch.tensor([0, 1, 2, 0, 1]))
    model = attnlab.wrap(layer, output=lambda found: found.mean(1))
    widget = model.explore(data, labels=list("abcdefgh"), serve=False)
    assert widget is not None
    assert widget.input == "valid.0"
    with torch.inference_mode():
        wanted = "abcdefgh"[int(model(data.inputs[0][:1]).argmax())]
    assert widget.answer == wanted


@pytest.mark.parametrize(
    ("shell", "marimo", "widgets"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_where_widgets_are_shown(
    shell: bool, marimo: bool, widgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "in_notebook", lambda: shell)
    monkeypatch.setitem(sys.modules, "marimo", types.SimpleNamespace(running_in_notebook=lambda: marimo))
    assert opening.shows_widgets() is widgets


def test_elsewhere_a_page_is_served(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr(opening, "shows_widgets", lambda: False)
    monkeypatch.setattr(opening, "serve_library", lambda library, **how: served.append(how))
    assert run.explore("1+1", port=8123, browser=False) is None
    assert served == [{"start": "zoo:adder", "text": "1+1", "port": 8123, "browser": False}]


def test_a_widget_without_its_package_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(LabError, match=r"the explorer needs the package anywidget; install it with: pip"):
        run.explore(serve=False)


@pytest.fixture(scope="module")
def executed() -> Any:
    """A notebook whose second cell changes the widget of the first."""
    cells = [
        'import attnlab\nwidget = attnlab.load("zoo:adder").explore("374+814")\nwidget',
        'widget.input = "999+1"',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("with_state", [True, False])
def test_the_answer_and_the_heads_outlive_the_kernel(executed: Any, with_state: bool) -> None:
    notebook = nbformat.from_dict(executed)
    if not with_state:
        notebook.metadata.pop("widgets")
    text, _ = nbconvert.HTMLExporter(embed_images=True).from_notebook_node(notebook)
    assert "999+1 → 1000 (" in text
    assert "374+814 →" not in text  # the copy is of the present scene
    assert len(re.findall(r'<img alt="(?:en|de)coder\.\d\.(?:self|cross)\.\d"', text)) == 24
