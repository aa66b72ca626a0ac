"""The pages of runs that read a digit, or a grid of digits."""

from collections.abc import Callable
from dataclasses import astuple

from attnlab.analysis import percent
from attnlab.analysis.evaluate import Stratum
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.image_evaluation import (
    DigitEvaluation,
    GridEvaluation,
    ImageEvaluation,
    evaluate_reader,
)
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
    reader = image_classifier(run)
    kind: type[DigitEvaluation | GridEvaluation]
    kind = DigitEvaluation if reader.task.start is None else GridEvaluation
    found = run.kept("evaluate-test", kind) or evaluate_reader(reader)
    if isinstance(found, GridEvaluation):
        return grid_story(run, reader, found, samples)
    return digit_story(run, reader, found, samples)


def digit_story(run: Run, reader: ImageClassifier, found: DigitEvaluation, samples: int) -> Story:
    """What is told of a run that reads one digit."""
    return Story(
        f"A model that reads {reader.task.shows}s.",
        f"{percent(found.exact_match)} of {found.examples:,} test images right.",
        found.exact_match == 1,
        _notes(found),
        [(f"{found.loss:.3g}", "test loss")],
        _parts(run, reader, found, lambda: _good_digits(found, reader.task.shows), samples),
    )


def grid_story(run: Run, reader: ImageClassifier, found: GridEvaluation, samples: int) -> Story:
    """What is told of a run that reads a grid of digits."""
    return Story(
        f"A transformer that reads grids of digits, {found.rows} x {found.columns}.",
        f"{percent(found.exact_match)} of {found.examples:,} test grids of {found.rows} x {found.columns} "
        "digits wholly right by greedy decoding.",
        found.exact_match == 1,
        _notes(found),
        [(percent(found.digit_accuracy), "of the digits right")],
        _parts(run, reader, found, lambda: _good_grids(found), samples),
    )


def _good_digits(found: DigitEvaluation, shows: str) -> Section:
    figures = [
        strata_figure("classes", f"By {shows}", _named(found), group="class", whole=found.exact_match),
        confusion_figure(found, "images", shows),
    ]
    return Section("good", "How good it is", figures=figures)


def _named(found: DigitEvaluation | GridEvaluation) -> list[Stratum]:
    """Rows of classes by their names."""
    return [Stratum(row.name, *astuple(row)[1:4]) for row in found.by_class]


def _good_grids(found: GridEvaluation) -> Section:
    whole, alone = found.digit_accuracy, found.if_independent
    figures = [
        strata_figure(
            "cells", "By cell", [Stratum(*astuple(row)) for row in found.by_cell], group="cell", whole=whole
        ),
        strata_figure("classes", "By digit", _named(found), group="class", whole=whole),
        confusion_figure(found, "digits"),
    ]
    words = [
        f"{percent(whole)} of the digits are right; if mistakes fell on grids by chance, {percent(alone)} "
        f"of the grids would be wholly right, and {percent(found.exact_match)} are."
    ]
    return Section("good", "How good it is", words, figures)


def _parts(
    run: Run, reader: ImageClassifier, found: ImageEvaluation, good: Callable[[], Section], samples: int
) -> dict[str, Callable[[], Section | None]]:
    parts: dict[str, Callable[[], Section | None]] = {"trained": lambda: _trained(run), "good": good}
    if attentions(reader.members[0].model):
        parts |= {
            "heads": lambda: heads_section(run, samples),
            "maps": lambda: maps_section(reader, found.mistakes.worst),
            "reasons": lambda: reasons_section(run, "test:0"),
        }
    return {
        **parts,
        "projections": lambda: projections_section(run, samples),
        "mistakes": lambda: mistakes_section(reader, found),
    }


def _trained(run: Run) -> Section:
    return training_section(run, probes_figure(run.metrics()))


def _notes(found: ImageEvaluation) -> list[str]:
    low, high = found.exact_match_interval
    notes = [f"95% interval {percent(low)} to {percent(high)}. Images from {found.data}."]
    return [*notes, SAMPLE] if found.sample else notes
