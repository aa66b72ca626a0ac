"""The pages of runs that read a digit, or a grid of digits."""

from collections.abc import Callable
from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.image_evaluation import evaluate_reader
from attnlab.models import attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.images import maps_section, projections_section
from attnlab.report.page import Section
from attnlab.report.reading import confusion_figure, mistakes_section, probes_figure, strata_figure
from attnlab.report.reasons import reasons_section
from attnlab.report.story import Story
from attnlab.runs import Run

SAMPLE = "Only the bundled sample was there: these figures do not compare with those of the whole set."


def image_story(run: Run, samples: int) -> Story:
    """What is told of a run that reads images."""
    return (digit_story if run.spec().task.start is None else grid_story)(run, samples)


def digit_story(run: Run, samples: int) -> Story:
    """What is told of a run that reads one digit."""
    reader, found = _read(run)
    return Story(
        f"A model that reads {reader.task.shows}s.",
        f"{percent(found['exact_match'])} of {found['examples']:,} test images right.",
        found["exact_match"] == 1,
        _notes(found),
        [(f"{found['loss']:.3g}", "test loss")],
        _parts(run, reader, found, lambda: _good_digits(found, reader.task.shows), samples),
    )


def grid_story(run: Run, samples: int) -> Story:
    """What is told of a run that reads a grid of digits."""
    reader, found = _read(run)
    return Story(
        f"A transformer that reads grids of digits, {found['rows']} x {found['columns']}.",
        f"{percent(found['exact_match'])} of {found['examples']:,} test grids of {found['rows']} x "
        f"{found['columns']} digits wholly right by greedy decoding.",
        found["exact_match"] == 1,
        _notes(found),
        [(percent(found["digit_accuracy"]), "of the digits right")],
        _parts(run, reader, found, lambda: _good_grids(found), samples),
    )


def _good_digits(found: dict[str, Any], shows: str) -> Section:
    whole = found["exact_match"]
    figures = [
        strata_figure(
            "classes", f"By {shows}", _named(found), group="class", share="exact_match", whole=whole
        ),
        confusion_figure(found, "images", shows),
    ]
    return Section("good", "How good it is", figures=figures)


def _named(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of classes by their names."""
    return [{**row, "class": row.get("name", row["class"])} for row in found["by_class"]]


def _good_grids(found: dict[str, Any]) -> Section:
    whole, alone = found["digit_accuracy"], found["if_independent"]
    figures = [
        strata_figure("cells", "By cell", found["by_cell"], group="cell", share="accuracy", whole=whole),
        strata_figure(
            "classes", "By digit", found["by_class"], group="class", share="accuracy", whole=whole
        ),
        confusion_figure(found, "digits"),
    ]
    words = [
        f"{percent(whole)} of the digits are right; if mistakes fell on grids by chance, {percent(alone)} "
        f"of the grids would be wholly right, and {percent(found['exact_match'])} are."
    ]
    return Section("good", "How good it is", words, figures)


def _parts(
    run: Run, reader: ImageClassifier, found: dict[str, Any], good: Callable[[], Section], samples: int
) -> dict[str, Callable[[], Section | None]]:
    parts: dict[str, Callable[[], Section | None]] = {"trained": lambda: _trained(run), "good": good}
    if attentions(reader.members[0].model):
        parts |= {
            "heads": lambda: heads_section(run, samples),
            "maps": lambda: maps_section(reader, found),
            "reasons": lambda: reasons_section(run, "test:0"),
        }
    return {
        **parts,
        "projections": lambda: projections_section(run, samples),
        "mistakes": lambda: mistakes_section(reader, found),
    }


def _trained(run: Run) -> Section:
    return training_section(run, probes_figure(run.metrics()))


def _read(run: Run) -> tuple[ImageClassifier, dict[str, Any]]:
    """The reader of a run, and its evaluation: the kept one if it says all that is told here."""
    reader, kept = image_classifier(run), run.analysis("evaluate-test")
    return reader, kept if kept is not None and "mistakes" in kept else evaluate_reader(reader)


def _notes(found: dict[str, Any]) -> list[str]:
    low, high = found["exact_match_interval"]
    notes = [f"95% interval {percent(low)} to {percent(high)}. Images from {found['data']}."]
    return [*notes, SAMPLE] if found["sample"] else notes
