"""``attnlab evaluate``: how good a run is on data it was not trained on."""

from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from attnlab.analysis import percent
from attnlab.analysis.choices import check_views
from attnlab.cli.drawing import figures_folder
from attnlab.cli.output import Meter, print_json, print_table, say
from attnlab.cli.parsing import parse
from attnlab.errors import InputError
from attnlab.results import Interval
from attnlab.runs import find_ensemble, open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from attnlab.analysis.evaluate import Evaluation
    from attnlab.analysis.image_classifier import ImageClassifier
    from attnlab.analysis.image_evaluation import DigitEvaluation, GridEvaluation, ViewsScores


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="evaluate")


def command(
    run: tyro.conf.Positional[str],
    *,
    split: Split = "test",
    views: int = 1,
    out: str = "",
    json: bool = False,
) -> int:
    """Measure a run: sums by greedy decoding, carry chain and column, lists by length, digits by class with
    calibration and mistakes, grids of digits by cell too.

    Example: attnlab evaluate zoo:adder

    Args:
        run: A run folder, a shipped run such as zoo:adder, or the folder of an ensemble.
        split: Which examples; choose by valid, report test.
        views: Read each image also 4 or 8 times moved by a pixel, and tell the average apart: 5 or 9.
        out: Folder for the figures of digits (SVG, PNG, JSON); by default figures in the run folder, none
            for a shipped run.
        json: Print JSON instead of tables.
    """
    check_views(views)
    ensemble = find_ensemble(run)
    if ensemble is not None:
        from attnlab.analysis.image_classifier import open_classifier
        from attnlab.analysis.image_evaluation import evaluate_reader

        reader = open_classifier(ensemble)
        with Meter("reading", 1) as meter:
            found = evaluate_reader(reader, split, progress=meter.update)
        found = replace(found, run=ensemble.name, views=_views(reader, split, views))
        return _end(found, reader, Path(out) if out else ensemble.path / "figures", json=json)
    opened = open_run(run)
    if opened.spec().task.images:
        from attnlab.analysis.image_classifier import image_classifier
        from attnlab.analysis.image_evaluation import evaluate_images

        with Meter("reading", 1) as meter:
            found = evaluate_images(opened, split, progress=meter.update)
        reader = image_classifier(opened)
        found = replace(found, views=_views(reader, split, views))
        return _end(found, reader, figures_folder(opened, out), json=json)
    if views > 1:
        raise InputError(f"--views is {views}, but only images can be moved; {opened.name} reads none")
    from attnlab.analysis.evaluate import evaluate_run

    evaluation = evaluate_run(opened, split)
    if json:
        print_json(evaluation.to_json())
    else:
        show(evaluation, opened.spec().task.noun)
    return 0


def _views(reader: "ImageClassifier", split: Split, views: int) -> "ViewsScores | None":
    """What the average over views adds, if it is asked for."""
    if views == 1:
        return None
    from attnlab.analysis.image_evaluation import measure_views

    with Meter("reading views", views) as meter:
        return measure_views(reader, split, views, progress=meter.update)


def _end(
    found: "DigitEvaluation | GridEvaluation",
    reader: "ImageClassifier",
    folder: Path | None,
    *,
    json: bool,
) -> int:
    """Print and draw what was found of digits."""
    from attnlab.analysis.image_evaluation import GridEvaluation
    from attnlab.cli.evaluate_images import show_calibration, show_confusions, show_mistakes, write_figures

    if json:
        print_json(found.to_json())
    else:
        if isinstance(found, GridEvaluation):
            show_grids(found)
        else:
            show_digits(found)
        show_confusions(found)
        show_calibration(found)
        show_mistakes(found)
        show_views(found.views)
    if folder is not None:
        write_figures(found, reader, folder)
    if found.sample:
        say(f"WARNING: measured on {found.data}")
    return 0


def show(found: "Evaluation", noun: str) -> None:
    """Print what ``evaluate`` found of a run whose inputs are tokens, and what its task adds."""
    forced = found.teacher_forced
    print_table(
        f"{found.run}: {found.examples:,} {found.split} {noun}s",
        ("", "greedy decoding", "teacher forcing"),
        (
            ("exact match", percent(found.exact_match), percent(forced.exact_match)),
            ("95% interval", _ends(found.exact_match_interval), ""),
            ("token accuracy", percent(found.token_accuracy), percent(forced.token_accuracy)),
            ("loss", "", f"{forced.loss:.5f}"),
        ),
    )
    groups = [
        (row.stratum, f"{row.examples:,}", percent(row.exact_match), _ends(row.exact_match_interval))
        for row in found.by_stratum
    ]
    if groups:
        print_table("by group", ("group", f"{noun}s", "exact match", "95% interval"), groups)
    places = [(row.place, percent(row.accuracy)) for row in found.by_place]
    if len(places) > 1:
        print_table("by place of the answer", ("place", "accuracy"), places)
    for remark in found.remarks():
        print(remark)


def _ends(interval: Interval) -> str:
    return " to ".join(map(percent, interval))


def show_digits(found: "DigitEvaluation") -> None:
    """Print what ``evaluate`` found of a run that reads digits."""
    print_table(
        f"{found.run}: {found.examples:,} {found.split} images",
        ("accuracy", "95% interval", "loss"),
        [(percent(found.exact_match), _ends(found.exact_match_interval), f"{found.loss:.4f}")],
    )
    print_table(
        "by class",
        ("digit", "images", "right", "95% interval", "most often taken for"),
        [_class_row(found, *astuple(row)) for row in found.by_class],
    )


def show_grids(found: "GridEvaluation") -> None:
    """Print what ``evaluate`` found of a run that reads grids of digits."""
    rows: list[tuple[str, ...]] = [
        ("grids wholly right", percent(found.exact_match)),
        ("95% interval", _ends(found.exact_match_interval)),
        ("digits right", percent(found.digit_accuracy)),
        ("grids, were digits independent", percent(found.if_independent)),
        ("loss", f"{found.loss:.5f}"),
    ]
    columns = ["", "greedy decoding"]
    forced = found.teacher_forced
    if forced is not None:  # not of an ensemble
        right = (percent(forced.exact_match), "", percent(forced.token_accuracy), "")
        columns.append("teacher forcing")
        rows = [(*row, more) for row, more in zip(rows, (*right, f"{forced.loss:.5f}"), strict=True)]
    print_table(
        f"{found.run}: {found.examples:,} {found.split} grids of {found.rows} x {found.columns} digits",
        columns,
        rows,
    )
    print_table(
        "by cell, in the order of reading",
        ("row,column", "right", "95% interval"),
        [(row.cell, percent(row.accuracy), _ends(row.accuracy_interval)) for row in found.by_cell],
    )
    print_table(
        "by digit",
        ("digit", "shown", "right", "95% interval", "most often taken for"),
        [_class_row(found, *astuple(row)) for row in found.by_class],
    )


def show_views(over: "ViewsScores | None") -> None:
    """Print what the average over moved images reaches, if it was asked for."""
    if over is not None:
        print(
            f"averaged over {over.views} views, which is told apart: {percent(over.exact_match)} "
            f"(95%: {_ends(over.exact_match_interval)}), expected calibration error {percent(over.ece)}"
        )


def _class_row(
    found: "DigitEvaluation | GridEvaluation",
    digit: int,
    examples: int,
    right: float,
    interval: Interval,
    name: str,
) -> tuple[str, ...]:
    said = found.confusion[digit]
    count, other = max((count, answer) for answer, count in enumerate(said) if answer != digit)
    taken = f"{found.classes[other]} ({count:,})" if count else ""
    return name, f"{examples:,}", percent(right), _ends(interval), taken
