"""The lessons by their names; a lesson's module is imported when its exercises are asked for."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.errors import InputError, brief, nearest
from attnlab.lazy import Later
from attnlab.progress import Progress, silent
from attnlab.reading import MOST_SPEC, read_text

if TYPE_CHECKING:
    import torch

    from attnlab.course import answers as reading
    from attnlab.course import feedback as told
    from attnlab.course.answers import Answers
    from attnlab.course.feedback import Exercise, Feedback, LessonResult
else:
    torch = Later("torch")
    reading, told = Later.parts("attnlab.course", "answers", "feedback")

LESSONS = {
    "lesson1": "what attention computes",
    "lesson2": "heads and what they do",
    "lesson3": "does attention explain?",
    "lesson4": "positions and length",
    "lesson5": "training that fails, with the doctor",
    "lesson6": "your own task",
}
SEED = 0
"""Each exercise begins with it, so that what a student's code draws is the same each time."""


def exercises_of(lesson: str) -> "tuple[Exercise, ...]":
    """The exercises of a lesson, in their order."""
    require_lesson(lesson)
    found: tuple[Exercise, ...] = importlib.import_module(f"attnlab.course.{lesson}").EXERCISES
    return found


def require_lesson(lesson: str) -> None:
    """Refuse the name of a lesson that the course does not have."""
    if lesson not in LESSONS:
        raise InputError(f"{brief(lesson)} is not a lesson of the course{nearest(lesson, LESSONS)}")


def check_answers(lesson: str, path: str, *, progress: Progress = silent) -> "LessonResult":
    """Execute the answers in the file ``path`` and say of every exercise whether it passes, and why not."""
    require_lesson(lesson)
    answers, exercises = read_answers(path), exercises_of(lesson)
    feedback = []
    for done, each in enumerate(exercises):
        progress(done, len(exercises))
        torch.manual_seed(SEED)
        feedback.append(check_exercise(each, answers))
    return told.LessonResult(
        lesson=lesson,
        title=LESSONS[lesson],
        file=path,
        passed=sum(each.passed for each in feedback),
        exercises=len(exercises),
        feedback=feedback,
    )


def read_answers(path: str) -> "Answers":
    """The answers in a file, which is executed."""
    try:
        source = read_text(Path(path), MOST_SPEC).removeprefix("\ufeff")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {brief(path)}; copy the template of the lesson") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{brief(path)} cannot be read as Python ({error})") from error
    return reading.run_answers(path, source)


def check_exercise(exercise: "Exercise", answers: "Answers") -> "Feedback":
    """What is said of one exercise."""
    try:
        wrong = exercise.check(answers)
    except told.NotAnsweredError as error:
        wrong = error.wrong
    if wrong is None:
        return told.Feedback(exercise.name, exercise.title, True)
    return told.Feedback(
        exercise.name, exercise.title, False, wrong.got, wrong.expected, wrong.hint, exercise.step
    )
