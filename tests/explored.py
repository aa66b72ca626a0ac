"""Something to explore that answers at once, in place of a model, in tests of server and widget."""

import threading
from dataclasses import dataclass, field

import numpy as np

from attnlab.errors import InputError
from attnlab.explorer.library import Library, Shelf
from attnlab.explorer.scene import (
    Abilities,
    Answer,
    Asked,
    DiagnosisForm,
    Item,
    Job,
    JobResult,
    Listed,
    ModelForm,
    Page,
    Question,
    Scene,
    ShownInput,
    SideLabels,
    SiteForm,
    Stratum,
    Subject,
    TaskForm,
    TextInput,
    Token,
    Values,
)
from attnlab.progress import Progress

SITE = SiteForm("encoder.0.self", "encoder", 0, "self", 2, "input", "input")


@dataclass
class Echo:
    """Answers a text with itself in capitals, once ``open`` is set, and lists examples once ``listed`` is;
    ``asked`` are the texts it answered.
    """

    name: str = "echo"
    open: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    warm: threading.Event = field(default_factory=threading.Event)
    listed: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open.set()
        self.listed.set()

    def describe(self) -> Subject:
        splits: dict[Asked, list[Stratum]] = {"valid": [Stratum("all", 7)], "test": []}
        task = TaskForm("echo", "text", "text", "a", ["a"], None, list("AB"), ["1"], "sequence", "", splits)
        model = ModelForm("echo", 11, [SITE], [], [], [], None)
        abilities = Abilities(True, False, True, False, False, False)
        return Subject(self.name, "An echo", [("size", "11")], task, model, [], ["zero"], abilities)

    def look(self, question: Question) -> Scene:
        if not isinstance(question.input, TextInput):
            raise InputError("an echo needs a text")
        text = question.input.text
        self.begun.set()
        assert self.open.wait(30)
        self.asked.append(text)
        if text == "break":
            raise ZeroDivisionError("a planted fault\nwith a second line")
        said = text.upper() if not question.edits else text.lower()
        tokens = [Token(each, "1", 0.75, [(each, 0.75)]) for each in said]
        pattern = np.full((2, len(text), len(text)), 1 / max(len(text), 1), dtype=np.float32)
        return Scene(
            ShownInput(text, list(text), None, None),
            Answer(said, 0.75, None, tokens),
            SideLabels(list(text), [], []),
            {SITE.path: Values(pattern)},
            [],
            None,
            0.0,
        )

    def examples(self, split: Asked, stratum: str, start: int, count: int) -> Page:
        assert self.listed.wait(30)
        return Page(7, [Item(each, str(each), None, None) for each in range(7)[start : start + count]])

    def read(self, picture: bytes) -> Values:
        return Values(np.frombuffer(picture, dtype=np.uint8).reshape(1, 1, -1))

    def findings(self) -> DiagnosisForm | None:
        return DiagnosisForm([], "no kind of fault was looked for", []) if self.open.is_set() else None

    def diagnose(self, progress: Progress) -> DiagnosisForm:
        progress(1, 1)
        return DiagnosisForm([], "nothing was looked for", [])

    def work(self, job: Job, progress: Progress) -> JobResult:
        """Done when ``open`` is set; without that it goes on until it is cancelled."""
        self.begun.set()
        for step in range(3_000):
            progress(step, 3_000)
            if self.open.wait(0.01):
                break
        return JobResult(job.analysis, ["all is well"], [], [])

    def warm_up(self) -> None:
        self.warm.set()


def library_of(*echoes: Echo) -> Library:
    return Library([shelf_of(each) for each in echoes])


def shelf_of(echo: Echo) -> Shelf:
    return Shelf(echo.name, lambda: Listed(echo.name, "An echo", "echo", None), lambda: echo)
