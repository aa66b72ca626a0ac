"""Writes the explorer's hand-outs of the course: ``python docs/course_handouts.py --out build/course``.

One HTML file for each model, and one page for each lesson with a link for every step. All work from disk
and without a network. Nothing of it is committed: a model's file has some megabytes.
"""

import html
from dataclasses import dataclass
from pathlib import Path

import tyro
from course_steps import STEPS, Step

from attnlab.course.lessons import LESSONS
from attnlab.front.loading import load_run
from attnlab.storage import make_folder, write_text

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }}
li {{ margin-bottom: 1rem }}
</style>
<h1>{title}</h1>
<ol>
{steps}
</ol>
</html>
"""


@dataclass(frozen=True)
class Options:
    """What to do."""

    out: Path = Path("build/course")
    """The folder to write into."""
    pages_only: bool = False
    """Leave the models' files as they are, which take half a minute each."""


def main(options: Options) -> None:
    make_folder(options.out)
    for run in (
        () if options.pages_only else sorted({step.run for steps in STEPS.values() for step in steps})
    ):
        print(load_run(run).handout(options.out / file_of(run)).file)
    for lesson, steps in STEPS.items():
        path = options.out / f"{lesson}.html"
        write_text(path, lesson_page(lesson, steps))
        print(path)


def file_of(run: str) -> str:
    """The hand-out of a shipped run."""
    return f"{run.removeprefix('zoo:')}.html"


def lesson_page(lesson: str, steps: tuple[Step, ...]) -> str:
    """A list of links, a step each."""
    rows = "\n".join(
        f'<li><a href="{html.escape(file_of(step.run) + step.fragment)}" target="_blank">'
        f"{html.escape(step.do)}</a><br>{html.escape(step.look.replace('*', ''))}</li>"
        for step in steps
    )
    return PAGE.format(title=html.escape(f"{lesson.capitalize()}: {LESSONS[lesson]}"), steps=rows)


if __name__ == "__main__":
    main(tyro.cli(Options))
