"""The pages of runs that read digits, or grids of them: which are right, how sure, and what goes wrong."""

from dataclasses import astuple

import numpy as np

from attnlab.analysis.evaluate import Stratum
from attnlab.analysis.image_classifier import ImageClassifier, image_classifier
from attnlab.analysis.image_evaluation import DigitEvaluation, GridEvaluation, evaluate_reader
from attnlab.analysis.mistakes import (
    AGREEING,
    LOOKED_AT,
    NEIGHBOURS,
    ImageMistakes,
    gallery,
    mistaken_digits,
)
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.figures import image_evaluation as of
from attnlab.figures.curves import draw_probes, probes_data
from attnlab.figures.strata import draw_strata, strata_data
from attnlab.models import attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.images import maps_section, projections_section
from attnlab.report.page import Figure, Part, Section, Story, figure
from attnlab.report.reasons import reasons_section
from attnlab.runs import Metrics, RunFolder

Found = DigitEvaluation | GridEvaluation

DEALS = 9999
"""How often mistakes are dealt out at random."""
SURPRISING = 0.05
"""p below which a difference between groups is told as more than chance."""


def strata_figure(name: str, title: str, rows: list[Stratum], *, group: str, whole: float) -> Figure:
    """Shares of right answers by a group of digits, such as class."""
    data = strata_data(rows, whole=whole, what=group)
    order = sorted(rows, key=lambda row: row.exact_match)
    worst, best = order[0], order[-1]
    reading = (
        f"A dot is the share right of one {group}, with its 95% interval; the dotted line is all together, "
        f"{percent(whole)}. Lowest is {worst.stratum} with {percent(worst.exact_match)}, highest "
        f"{best.stratum} with {percent(best.exact_match)}."
    )
    signs = (
        f"Good: dots near one line. Bad: one {group} far to the left, which is a blind spot that the mean "
        f"hides. {groups_compared(data.examples, [row.exact_match for row in rows])}"
    )
    return figure(name, title, data, draw_strata, reading, signs)


def groups_compared(examples: list[int], shares: list[float]) -> str:
    """Whether the groups' shares of right answers differ by more than chance."""
    wrong = [count - round(count * share) for count, share in zip(examples, shares, strict=True)]
    if len(wrong) == 1 or sum(wrong) in (0, sum(examples)):
        return "Here the groups do not differ."
    p = alike_p(examples, wrong)
    told = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    if p < SURPRISING:
        judged = f"is rarely so large by chance ({told}): at least one group differs from others"
    else:
        judged = f"is often as large by chance ({told}), which does not prove the groups alike"
    return f"Here the difference between the {len(wrong)} groups, taken together, {judged}."


def alike_p(examples: list[int], wrong: list[int]) -> float:
    """p of the chi-squared test that mistakes are as likely in every group, right for few mistakes too.

    With n, w examples and mistakes of a group and N, W of all, chi-squared grows with the sum over groups
    of (w - n W / N)^2 / n. Its p is the share of deals of W mistakes to N examples at random that have at
    least as much of it, the deal that was found among them.
    """
    sizes, found = np.array(examples), np.array(wrong)
    deals = np.random.default_rng(0).multivariate_hypergeometric(sizes, found.sum(), size=DEALS)
    expected = sizes * found.sum() / sizes.sum()
    apart = (np.square(np.vstack((found, deals)) - expected) / sizes).sum(axis=1)
    return float((apart >= apart[0] * (1 - 1e-9)).mean())


def confusion_figure(found: Found, what: str, shows: str = "digit") -> Figure:
    """Which digits are taken for which; ``what`` are those that are counted."""
    data = of.confusion_data(found.confusion, found.classes)
    counts, names = data.counts, data.classes
    count, shown, answer = max(
        (count, shown, answer)
        for shown, row in enumerate(counts)
        for answer, count in enumerate(row)
        if shown != answer
    )
    column = max(range(len(counts)), key=lambda place: sum(row[place] for row in counts))
    total = sum(map(sum, counts))
    often = sum(row[column] for row in counts) / max(1, total)
    most = (
        f"Most often a {names[shown]} is taken for a {names[answer]}, {count:,} times."
        if count
        else "None is mistaken."
    )
    reading = f"{total:,} test {what}: a row is the {shows} that is shown, a column the answer. {most}"
    signs = (
        f"Good: a bright diagonal, with mistakes only between {shows}s that look alike. Bad: a column that "
        "is bright all along, which is a model that often says the same. Here the answer given most is "
        f"{names[column]}, in {percent(often)} of the cases."
    )
    return figure(
        "confusion", f"Which {shows}s are taken for which", data, of.draw_confusion, reading, signs
    )


def reliability_figure(found: Found) -> Figure:
    data = of.reliability_data(found.calibration)
    sure, right = found.calibration.confidence, found.calibration.accuracy
    reading = (
        "Answers in groups by how sure the model was; a dot's height is how many of a group are right. "
        f"The mean probability of its answers is {percent(sure)}, and {percent(right)} of them are right; "
        "below, how often it was so sure."
    )
    lean = "less" if sure > right else "more"
    signs = (
        "Good: dots on the diagonal. Bad: dots below it, a model that is surer than right. Here the "
        f"expected calibration error is {data.ece:.2f}%, and on the whole it is {lean} often right than "
        "sure."
    )
    return figure("reliability", "Is it as sure as it is right?", data, of.draw_reliability, reading, signs)


def coverage_figure(found: Found) -> Figure:
    data = of.coverage_data(found.coverage)
    half = max(found.coverage, key=lambda row: row.threshold if row.answered >= 0.5 else -1.0)
    reading = (
        f"A dot is a least probability, below which {found.shows}s are not answered: how many are "
        "answered, and how many of these are right."
    )
    signs = (
        "Good: a curve that rises steeply from the right, so that few answers are left out for many "
        "mistakes. Bad: a flat one, of probabilities without information. Here with a probability of at "
        f"least {percent(half.threshold)}, {percent(half.answered)} are answered, "
        f"{percent(half.accuracy or 0)} of them correctly."
    )
    return figure(
        "coverage", "What does leaving out doubtful answers give?", data, of.draw_coverage, reading, signs
    )


def mistakes_section(reader: ImageClassifier, found: Found) -> Section:
    """Calibration and a gallery."""
    figures = [reliability_figure(found)]
    if found.coverage:
        figures.append(coverage_figure(found))
    mistakes = found.mistakes
    if mistakes.count:
        figures.append(_gallery(reader, found))
    words = [] if mistakes.count else [f"No {reader.task.shows} is read wrongly."]
    return Section("mistakes", "What it gets wrong", words, figures)


def _gallery(reader: ImageClassifier, found: Found) -> Figure:
    mistakes, shows = found.mistakes, reader.task.shows
    worst = gallery(mistakes.worst)
    data = of.mistakes_data(mistaken_digits(reader, found.split, worst), worst)
    surest = 100 * mistakes.worst[0].probability
    once = ", each shown once" if mistakes.distinct < mistakes.count else ""
    reading = (
        f"{mistakes.count:,} {shows}s are read wrongly; here are {len(worst)} of them{once}, the likely "
        "mislabelled and the most confident of the others, with label, answer and probability. Framed are "
        f"those likely mislabelled: the answer is at least as sure as is usual for its {shows}, and of the "
        f"{NEIGHBOURS} training {shows}s with the nearest pixels at least {AGREEING} bear it and none the "
        "label."
    )
    signs = (
        f"Good: mistakes that a person might make, or labels that are wrong. Bad: plain {shows}s read "
        f"wrongly with near certainty. Here the surest mistake has {surest:.1f}%, "
        f"and {marked(mistakes)}."
    )
    return figure("mistakes", "The most confident mistakes", data, of.draw_mistakes, reading, signs)


def marked(mistakes: ImageMistakes) -> str:
    """How many are likely mislabelled, of those that were looked at."""
    looked = f"of the {LOOKED_AT} surest, " if mistakes.count > LOOKED_AT else ""
    one = mistakes.likely_mislabelled == 1
    return f"{looked}{mistakes.likely_mislabelled:,} {'is' if one else 'are'} likely mislabelled"


def probes_figure(metrics: Metrics) -> Figure | None:
    """How even attention was in training, where that was probed."""
    data = probes_data(metrics)
    if not data.step:
        return None
    first, last = data.entropy[0], data.entropy[-1]
    reading = f"The entropy of attention went from {first:.3f} to {last:.3f} of the most there can be."
    signs = (
        "Good: a blue line that leaves 1, since even attention with a mean over tokens sees a bag of "
        f"patches. Bad: one that stays there. Here it {'has left' if last < 0.95 else 'is still near'} it."
    )
    before, after = data.moved[0], data.moved[-1]
    if before is not None and after is not None:
        reading += (
            f" Shuffling the patches of an image moved the answer by {before:.3f} before training and by "
            f"{after:.3f} after (total variation, 0 to 1)."
        )
        signs += " The orange line at 0 would be a model to which places mean nothing."
    return figure("probes", "Does it know where a patch stands?", data, draw_probes, reading, signs)


SAMPLE = "Only the bundled sample was there: these figures do not compare with those of the whole set."


def image_story(run: RunFolder, samples: int) -> Story:
    """What is told of a run that reads images, or grids of them."""
    reader = image_classifier(run)
    kind: type[Found]
    kind = DigitEvaluation if reader.task.start is None else GridEvaluation
    found = run.kept("evaluate-test", kind) or evaluate_reader(reader)
    what, asked = f"A model that reads {reader.task.shows}s.", "images right"
    card = (f"{found.loss:.3g}", "test loss")
    if isinstance(found, GridEvaluation):
        shape = f"{found.rows} x {found.columns}"
        what = f"A transformer that reads grids of digits, {shape}."
        asked = f"grids of {shape} digits read correctly by greedy decoding"
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


def _good(found: Found, shows: str) -> Section:
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
        f"of the grids would be correct, and {percent(found.exact_match)} are."
    ]
    return Section("good", "How good it is", words, figures)


def _parts(run: RunFolder, reader: ImageClassifier, found: Found, samples: int) -> dict[str, Part]:
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
