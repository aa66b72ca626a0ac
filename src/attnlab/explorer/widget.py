"""The explorer in a notebook: the page's own modules as a widget, whose state Python reads and sets.

    widget = attnlab.load("zoo:adder").explore("374+814")
    widget                                   # the page, in the output of the cell
    widget.off = ["encoder.0.self.0"]        # the page follows
    widget.input, widget.off, widget.answer  # and Python knows what was done there

The output holds a copy of the present scene as plain HTML. The page hides it as soon as Python has
answered, so it is what is seen where there is no kernel, as in ``nbconvert --to html``.
"""

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, cast, final
from uuid import uuid4

import anywidget
import traitlets

from attnlab.errors import InputError, LabError
from attnlab.explorer.bundle import bundle
from attnlab.explorer.desk import answer, unexpected, work
from attnlab.explorer.jobs import StoppedError
from attnlab.explorer.library import Library
from attnlab.explorer.messages import (
    Request,
    check_bounds,
    pack,
    progressed,
    read_request,
    refusal,
    reply,
    request_id,
)
from attnlab.explorer.page_state import PageState
from attnlab.explorer.pages import MODULES
from attnlab.explorer.scene import Job, Question, Scene, Subject
from attnlab.explorer.snapshot import snapshot_html

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRESS = 0.2
"""Seconds between two words about the progress of a job, at least."""


@final
class Explorer(anywidget.AnyWidget):
    """The explorer of one run or wrapped model.

    ``input`` is the text of the input, or ``"valid.3"`` for an example of a split; ``off`` are the names of
    heads, sites, feed-forward parts and layers that are switched off; ``answer`` is what the model says
    then. ``state`` is all of the page's state, as its URL has it.
    """

    input = traitlets.Unicode("").tag(sync=True)
    off = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.Unicode("").tag(sync=True)
    state = traitlets.Unicode("").tag(sync=True)
    _mark = traitlets.Unicode().tag(sync=True)
    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, library: Library, name: str, text: str = "") -> None:
        self._library, self._name = library, name
        self._subject: Subject = replace(library.open(name).describe(), source="widget")
        self._seen: tuple[Question, Scene] | None = None
        self._jobs: dict[int, threading.Event] = {}
        self._following = False
        self._copy: Any = None
        state = PageState({"run": name}).with_input(text or _first_input(self._subject))
        super().__init__()
        self.on_msg(self._receive)
        self.state = state.write()

    @traitlets.default("_mark")
    def _new_mark(self) -> str:
        return uuid4().hex

    @traitlets.default("_esm")
    def _modules(self) -> str:
        return f"{bundle(MODULES / 'notebook.js')}export default {{ render: attnlab.render }};\n"

    @traitlets.default("_css")
    def _styles(self) -> str:
        return (MODULES / "style.css").read_text(encoding="utf-8")

    # state

    @traitlets.validate("input")
    def _check_input(self, proposal: dict[str, Any]) -> str:
        given = cast(str, proposal["value"])
        if not self._following:
            self._look(PageState.read(self.state).with_input(given))
        return given

    @traitlets.validate("off")
    def _check_off(self, proposal: dict[str, Any]) -> list[str]:
        names = list(proposal["value"])
        if not self._following:
            self._look(PageState.read(self.state).with_off(names))
        return names

    @traitlets.observe("input", "off")
    def _lead(self, change: dict[str, Any]) -> None:
        """Python has changed something, and the page follows."""
        if not self._following:
            state = PageState.read(self.state)
            changed = state.with_input if change["name"] == "input" else state.with_off
            self.state = changed(change["new"]).write()

    @traitlets.observe("state")
    def _follow(self, _: dict[str, Any]) -> None:
        """The page has changed something, which may be half an input."""
        state = PageState.read(self.state)
        try:
            scene = self._look(state)
        except LabError:
            scene = None
        with self._quietly():
            self.input = state.input
            self.off = state.off
            self.answer = "" if scene is None else scene.answer.text
        if self._copy is not None and scene is not None:
            self._copy.update({"text/html": self._copy_html()}, raw=True)

    @contextmanager
    def _quietly(self) -> "Iterator[None]":
        self._following = True
        try:
            yield
        finally:
            self._following = False

    def _look(self, state: PageState) -> Scene | None:
        """The scene in a state; an InputError if there is none."""
        question = state.question()
        if question is None:
            return None
        if self._seen is None or self._seen[0] != question:
            self._seen = (question, self._library.open(self._name).look(question))
        return self._seen[1]

    # messages of the page

    def _receive(self, _: Any, content: Any, buffers: Sequence[memoryview]) -> None:
        number = -1
        try:
            if not isinstance(content, dict):
                raise InputError("the message is not a JSON object")
            check_bounds(content)
            found = request_id(content)
            number = -1 if found is None else found
            request = read_request(content, bytes(buffers[0]) if buffers else b"")
            value = self._answer(request)
            if request.kind != "start":  # a job answers itself
                self._say(reply(number, value))
        except LabError as error:
            self._say(refusal(number, str(error)))
        except Exception as error:
            self._say(refusal(number, unexpected(error, "answering the widget")))

    def _answer(self, request: Request) -> Any:
        """What is asked for; None of a job that begins."""
        if request.kind == "start":
            return self._start(request)
        if request.kind == "cancel":
            event = self._jobs.get(cast(int, request.body))
            if event is not None:
                event.set()
            return event is not None
        if request.kind == "open" and request.run == self._name:
            return self._subject
        return answer(self._library, request)

    def _say(self, message: Any) -> None:
        plain, numbers = pack(message)
        self.send(plain, [numbers])

    def _start(self, request: Request) -> None:
        # a copy of the list: analyses that end in their threads leave it meanwhile
        if not all(cancelled.is_set() for cancelled in list(self._jobs.values())):
            raise InputError("an analysis is still running; wait for it or cancel it")
        self._jobs[request.id] = threading.Event()
        threading.Thread(target=self._work, args=(request, self._jobs[request.id]), daemon=True).start()

    def _work(self, request: Request, cancelled: threading.Event) -> None:
        last = monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal last
            if cancelled.is_set():
                raise StoppedError("this analysis was cancelled")
            if monotonic() - last >= PROGRESS:
                last = monotonic()
                self._say(progressed(request.id, done, total))

        try:
            message = reply(request.id, work(self._library, request.run, cast(Job, request.body), progress))
        except StoppedError:
            message = refusal(request.id, "", dropped=True)
        except LabError as error:
            message = refusal(request.id, str(error))
        except Exception as error:
            message = refusal(request.id, unexpected(error, f"an analysis of {request.run}"))
        self._jobs.pop(request.id)
        self._say(message)

    # output

    def _copy_html(self) -> str:
        if self._seen is None:
            return ""
        return snapshot_html(self._subject, *self._seen, mark=self._mark)

    def _ipython_display_(self) -> None:
        shown: Any = import_module("IPython.display")
        forms: Any = self._repr_mimebundle_()
        shown.display(forms[0] if isinstance(forms, tuple) else forms, raw=True)
        self._copy = shown.display(shown.HTML(self._copy_html()), display_id=True)


def _first_input(subject: Subject) -> str:
    """As ``firstInput`` of ``app.js``."""
    task = subject.task
    if task.input == "text" and task.suggestions:
        return task.suggestions[0]
    return f"{next(iter(task.splits), 'valid')}.0"
