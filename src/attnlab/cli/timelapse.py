"""``attnlab timelapse``: how a run came to be what it is, from the snapshots that it kept."""

from functools import partial

from attnlab.cli.drawing import figure_name, write_main
from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Positional
from attnlab.front.loading import load
from attnlab.storage import check_out


def command(
    run: Positional[str],
    *,
    examples: int = 500,
    samples: int = 300,
    tap: str = "",
    token: str = "digit",
    out: str = "",
    json: bool = False,
) -> None:
    """Show how accuracy, heads, positions and a projection moved in training, and when it learned suddenly.

    A run that kept no snapshots (--training.snapshots 24) is shown by its first and its best weights.

    Example: attnlab train addition --training.snapshots 24 --out runs/watched

    Example: attnlab timelapse runs/watched

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        examples: Validation examples that heads are measured on; accuracy is that of all.
        samples: Points of the projection; 0 leaves it out.
        tap: What is projected, as in 'attnlab project'; by default what the readout sees.
        token: Where a tap has patches of an image, which: as in 'attnlab project'.
        out: A file that ends in .html, .svg or .png, or a folder for all of them; by default figures in the
            run folder, or here for a shipped run.
        json: Print everything, and the files, as JSON.
    """
    opened = load(run)
    check_out(out, ".html", ".svg", ".png", folder=True)
    found = opened.timelapse(examples=examples, samples=samples, tap=tap, token=token)
    from attnlab.analysis.timelapse.runs import SIZES, lapse_name
    from attnlab.report.live import timelapse_page

    name = lapse_name(tap, token, samples)
    if not out:
        name = figure_name(name, opened, name, found, *SIZES)
    page = partial(timelapse_page, found)
    files = [*map(str, write_main(found, opened, out, name=name, page=page))]
    if json:
        print_json({**found.to_json(), "files": files})
    else:
        print_parts([*found.tables(), *files])
