"""What a student is told of each exercise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from attnlab.results import Result, Row

if TYPE_CHECKING:
    from attnlab.course.answers import Answers


@final
@dataclass(frozen=True)
class Wrong:
    """Why an answer does not pass: what was got, what was expected, and what to look at next."""

    got: str
    expected: str
    hint: str


class NotAnsweredError(Exception):
    """An answer cannot be judged: it is blank, of another kind, or the student's code raised."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(wrong.got)
        self.wrong = wrong


@final
@dataclass(frozen=True)
class Exercise:
    """One thing that an answers file has to define. ``step`` is where the lesson's page prepares it."""

    name: str
    title: str
    step: str
    check: "Callable[[Answers], Wrong | None]"


@final
@dataclass(frozen=True)
class Feedback:
    """What is said of one exercise; ``got``, ``expected`` and ``hint`` are empty if it passed."""

    exercise: str
    title: str
    passed: bool
    got: str = ""
    expected: str = ""
    hint: str = ""
    step: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class LessonResult(Result):
    """Feedback on all exercises of a lesson, in their order."""

    shown_by: ClassVar[str] = "attnlab.course.tables"

    lesson: str
    title: str
    file: str
    passed: int
    exercises: int
    feedback: list[Feedback]

    def records(self) -> list[Row]:
        """A row for each exercise."""
        return [vars(each) for each in self.feedback]

    @property
    def complete(self) -> bool:
        """Whether every exercise passed."""
        return self.passed == self.exercises
