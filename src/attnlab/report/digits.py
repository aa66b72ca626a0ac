"""The pages of runs that read a digit, or a grid of digits."""

from dataclasses import astuple

from attnlab.analysis.evaluate import Stratum
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.image_evaluation import (
    DigitEvaluation,
    GridEvaluation,
    evaluate_reader,
)
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.models import attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.images import maps_section, projections_section
from attnlab.report.page import Part, Section, Story
from attnlab.report.reading import confusion_figure, mistakes_section, probes_figure, strata_figure
from attnlab.report.reasons import reasons_section
from attnlab.runs import Run

SAMPLE = "Only the bundled sample was there: these figures do not compare with those of the whole set."


def image_story(run: Run, samples: int) -> Story:
    """What is told of a run that reads images, or grids of them."""
    reader = image_classifier(run)
    kind: type[DigitEvaluation | GridEvaluation]
    kind = DigitEvaluation if reader.task.start is None else GridEvaluation
    found = run.kept("evaluate-test", kind) or evaluate_reader(reader)
    what, asked = f"A model that reads {reader.task.shows}s.", "images right"
    card = (f"{found.loss:.3g}", "test loss")
    if isinstance(found, GridEvaluation):
        shape = f"{found.rows} x {found.columns}"
        what = f"A transformer that reads grids of digits, {shape}."
        asked = f"grids of {shape} digits wholly right by greedy decoding"
        card = (percent(found.digit_accuracy), "of the digits right")
    notes = [f"95% interval {percent_ends(found.exact_match_interval)}. Images from {found.data}."]
    return Story(
        what,
        f"{percent(found.exact_match)} of {found.examples:,} test {asked}.",
        found.exact_match == 1,
        [*notes, SAMPLE] if found.sample else notes,
        [card],
        _parts(run, reader, found, samples),
    )


def _good(found: DigitEvaluation | GridEvaluation, shows: str) -> Section:
    """Right answers by cell, if there are several, and by class; and which classes are taken for which."""
    classes = [Stratum(row.name, *astuple(row)[1:4]) for row in found.by_class]
    if isinstance(found, DigitEvaluation):
        figures = [
            strata_figure("classes", f"By {shows}", classes, group="class", whole=found.exact_match),
            confusion_figure(found, "images", shows),
        ]
        return Section("good", "How good it is", figures=figures)
    whole, alone = found.digit_accuracy, found.if_independent
    cells = [Stratum(*astuple(row)) for row in found.by_cell]
    figures = [
        strata_figure("cells", "By cell", cells, group="cell", whole=whole),
        strata_figure("classes", "By digit", classes, group="class", whole=whole),
        confusion_figure(found, "digits"),
    ]
    words = [
        f"{percent(whole)} of the digits are right; if mistakes fell on grids by chance, {percent(alone)} "
        f"of the grids would be wholly right, and {percent(found.exact_match)} are."
    ]
    return Section("good", "How good it is", words, figures)


def _parts(
    run: Run, reader: ImageClassifier, found: DigitEvaluation | GridEvaluation, samples: int
) -> dict[str, Part]:
    parts: dict[str, Part] = {
        "trained": lambda: training_section(run, probes_figure(run.metrics())),
        "good": lambda: _good(found, reader.task.shows),
    }
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
