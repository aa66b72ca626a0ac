"""``attnlab timelapse``: how a run came to be what it is, from the snapshots that it kept."""

from functools import partial
from typing import TYPE_CHECKING

from attnlab.cli.drawing import check_out, figure_name, write_out
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Positional
from attnlab.display import Meter
from attnlab.runs import open_run

if TYPE_CHECKING:
    from attnlab.analysis.timelapse.runs import Timelapse


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

    The run must have kept snapshots: train it with --training.snapshots 24.

    Example: attnlab train addition --training.snapshots 24 --out runs/watched

    Example: attnlab timelapse runs/watched

    Args:
        run: A run folder with snapshots.
        examples: Validation examples that heads are measured on; accuracy is that of all.
        samples: Points of the projection; 0 leaves it out.
        tap: What is projected, as in 'attnlab project'; by default what the readout sees.
        token: Where a tap has patches of an image, which: as in 'attnlab project'.
        out: A file that ends in .html, .svg or .png, or a folder for all of them; by default figures in the
            run folder, or here for a shipped run.
        json: Print everything, and the files, as JSON.
    """
    opened = open_run(run)
    check_out(out, ".html", ".svg", ".png", folder=True)
    from attnlab.analysis.timelapse.runs import SIZES, lapse_name, timelapse_run
    from attnlab.figures.timelapse import draw_timelapse, timelapse_data
    from attnlab.report.live import timelapse_page
    from attnlab.runs import snapshot_steps

    with Meter("looking at snapshots", max(1, len(snapshot_steps(opened)))) as meter:
        found = timelapse_run(
            opened, examples=examples, samples=samples, tap=tap, token=token, progress=meter.update
        )
    name = lapse_name(tap, token, samples)
    if not out:
        name = figure_name(name, opened, name, found, *SIZES)
    page = partial(timelapse_page, found)
    files = write_out(opened, out, name, timelapse_data(found), draw_timelapse, page)
    if json:
        print_json({**found.to_json(), "files": [*map(str, files)]})
    else:
        _tell(found)
        print(*files, sep="\n")


def _tell(found: "Timelapse") -> None:
    from attnlab.report.live import frames_told

    columns = {"step": "step", "right": "right", "loss": "loss", "entropy": "mean entropy"}
    columns |= {"moved": "positions moved"} if found.positions else {}
    columns |= {"silhouette": f"silhouette, {found.projection.tap}"} if found.projection else {}
    rows = [
        tuple(f"{row[key]:,}" if key == "step" else str(row[key]) for key in columns)
        for row in frames_told(found)
    ]
    title = f"{found.run}: {len(rows)} snapshots, {found.valid:,} validation examples"
    print_table(title, tuple(columns.values()), rows)
    if found.changed:
        first = found.changed[0]
        print_table(
            f"changed most from step {first.from_step:,} to {first.to_step:,}",
            ("head", "what", "before", "after"),
            [
                (row.head, found.metrics[row.metric], f"{row.before:.3f}", f"{row.after:.3f}")
                for row in found.changed
            ],
        )
    print(found.moment.sentence)
