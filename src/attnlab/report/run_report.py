"""The page about one run: what it is, how it trained, how good it is, its heads, maps and mistakes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.analysis.choices import SAMPLES
from attnlab.doctor.kept import diagnosis_of
from attnlab.errors import InputError, brief, nearest
from attnlab.progress import Progress, silent
from attnlab.report.digits import image_story
from attnlab.report.doctor import diagnosis_section
from attnlab.report.page import Page, Part, Section, Story, made, write_page
from attnlab.report.task import task_story
from attnlab.runs import RunFolder
from attnlab.specs import spec_hash

FEWEST = 10
SMALLER = "; ask for fewer samples, or name only some sections"


def write_report(
    run: RunFolder,
    path: Path,
    *,
    samples: int = SAMPLES,
    sections: Sequence[str] = (),
    progress: Progress = silent,
) -> Path:
    """Write the page about ``run`` to ``path``; only with these ``sections`` if any are named."""
    if samples < FEWEST:
        raise InputError(f"samples is {samples}; it must be at least {FEWEST}")
    story, version = run_story(run, samples), run.environment().attnlab
    words = ["report", run.called, "--out", str(path)]
    words += [] if samples == SAMPLES else ["--samples", str(samples)]
    words += ["--sections", *sections] if sections else []
    page = Page(
        title=run.name,
        what=f"{story.what} Spec {spec_hash(run.spec())}, made with attnlab {version}.",
        proof=story.proof,
        good=story.good,
        notes=story.notes,
        cards=[*_cards(run), *story.cards],
        sections=_built(story.parts, sections, progress),
        made=made(run, words),
    )
    return write_page(page, path, advice=SMALLER)


def run_story(run: RunFolder, samples: int = SAMPLES) -> Story:
    """What is told of ``run``, and what its task adds to that."""
    task = run.spec().task
    story: Story = task.sections(run, (image_story if task.images else task_story)(run, samples))
    first, *others = story.parts.items()  # how it trained
    doctor = {} if run.edited else {"doctor": lambda: diagnosis_section(diagnosis_of(run))}
    return replace(story, parts={**dict([first]), **doctor, **dict(others)})


def _built(parts: Mapping[str, Part], names: Sequence[str], progress: Progress) -> list[Section]:
    """The sections of these names, or all; a part may have nothing to say."""
    for name in names:
        if name not in parts:
            raise InputError(
                f"sections names {brief(name)}, which this page does not have{nearest(name, parts)}"
            )
    chosen, found = [part for name, part in parts.items() if not names or name in names], []
    for done, part in enumerate(chosen):
        progress(done, len(chosen))
        found.append(part())
    progress(len(chosen), len(chosen))
    return [section for section in found if section is not None]


def _cards(run: RunFolder) -> list[tuple[str, str]]:
    summary = run.summary()
    if summary is None:
        return [("unfinished", "training")]
    return [
        (f"{summary['parameters']:,}", "parameters"),
        (f"{summary['steps']:,}", "training steps"),
        (f"{summary['seconds']:.0f} s", "to train"),
    ]
