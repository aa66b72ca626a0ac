"""``attnlab check``: do the answers to a lesson of the course pass?"""

from typing import Annotated

import tyro

from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional
from attnlab.course.lessons import check_answers, require_lesson
from attnlab.display import Meter

LessonName = Annotated[Positional[str], tyro.conf.arg(help="A lesson, from lesson1 to lesson6.")]
AnswersFile = Annotated[
    Positional[str], tyro.conf.arg(help="The file with the answers, which is executed.")
]

EXIT_UNFINISHED = 1


def command(lesson: LessonName, file: AnswersFile, *, json: Json = False) -> int:
    """Check the answers to a lesson of the course, and say what is wrong with those that do not pass.

    FILE is a Python program, which is executed as you. The exit code is 1 if an exercise does not pass yet.
    docs/course has the lessons, each with a template to fill in.

    Example: attnlab check lesson2 docs/course/lesson2/answers.py
    """
    require_lesson(lesson)
    with Meter(f"checking {lesson}", 1) as meter:
        found = check_answers(lesson, file, progress=meter.update)
    print_result(found, json=json)
    return 0 if found.complete else EXIT_UNFINISHED
