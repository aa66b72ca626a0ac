"""``attnlab evaluate``: how good a run is on data it was not trained on."""

from attnlab.analysis.choices import check_views
from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional
from attnlab.front.loading import load
from attnlab.specs import Split


def command(
    run: Positional[str],
    *,
    split: Split = "test",
    views: int = 1,
    out: str = "",
    json: Json = False,
) -> None:
    """Measure a run: sums by greedy decoding, carry chain and column, lists by length, digits by class with
    calibration and mistakes, grids of digits by cell too.

    Example: attnlab evaluate zoo:adder

    Args:
        run: A run folder, a shipped run such as zoo:adder, or the folder of an ensemble.
        split: Which examples: valid for model selection, test for the final figure.
        views: Average each image also over 5 or 9 shifts by a pixel, reported separately.
        out: Folder for the figures of images (SVG, PNG, JSON); by default figures in the run folder, none
            for a shipped run.
    """
    check_views(views)
    opened = load(run)
    found = opened.evaluate(split=split, views=views)
    print_result(found, json=json)
    save_figures(found, opened, out, prefix=f"{split}-")
