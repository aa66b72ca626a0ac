"""Feedback as people read it."""

from attnlab.course.feedback import Feedback, LessonResult
from attnlab.results import Part


def tables(result: LessonResult) -> list[Part]:
    """A line for each exercise, the reasons below those that do not pass yet, and the count."""
    lines = [line for each in result.feedback for line in _lines(each)]
    return [f"{result.lesson}: {result.title}", *lines, _count(result)]


def _lines(each: Feedback) -> list[str]:
    if each.passed:
        return [f"✓ {each.exercise}: {each.title}"]
    told = {"got": each.got, "expected": each.expected, "hint": each.hint, "see": each.step}
    return [
        f"✗ {each.exercise}: {each.title}",
        *(f"    {name + ':':<9} {text}" for name, text in told.items() if text),
    ]


def _count(result: LessonResult) -> str:
    said = f"{result.passed} of {result.exercises} exercises pass"
    return f"{said}; this lesson is complete" if result.complete else said
