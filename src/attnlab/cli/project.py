"""``attnlab project``: what a model makes of many examples, as points in a plane."""

from functools import partial

from attnlab.analysis.choices import SAMPLES, ProjectionMethod
from attnlab.cli.drawing import write_main
from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Positional, Seed
from attnlab.errors import InputError
from attnlab.front.loading import load
from attnlab.front.run import Run
from attnlab.specs import Split
from attnlab.storage import check_out, safe_name

LIST = "list"
"""What to say for a tap in order to see all of them."""


def command(
    runs: Positional[tuple[str, ...]],
    *,
    tap: tuple[str, ...] = (),
    token: str = "digit",
    method: ProjectionMethod = "tsne",
    samples: int = SAMPLES,
    split: Split = "test",
    seed: Seed = 0,
    out: str = "",
    json: bool = False,
) -> None:
    """Draw what one or two runs make of many examples as points in a plane, with the numbers that judge it.

    Example: attnlab project zoo:digit --method tsne

    Example: attnlab project zoo:digit --tap patches --token digit --method pca-hdbscan

    Example: attnlab project zoo:digit zoo:grid --out both.html

    Args:
        runs: One run folder, or two. Points are digits or other classes of images, or answers to tokens.
        tap: patches before any block, block:1 for tokens after block 1, read for what the readout sees, or
            the path of a tap or module, such as encoder.1.self.z; one for all runs or one for each. By
            default read; list prints all names.
        token: Where a tap has patches: digit for the mean over those of a digit, all for each patch, cls
            for the token in front, or a row and a column such as 3,2.
        method: How points get into the plane, and what finds clusters.
        samples: Number of points.
        split: Where the examples come from.
        seed: Which examples, and where the methods start.
        out: A file that ends in .html or .svg, or a folder for both, with PNG and JSON; by default figures
            in the first run folder, or here for a shipped run.
        json: Print the numbers and the files as JSON.
    """
    opened = [load(name) for name in runs]
    if not 1 <= len(opened) <= 2:
        raise InputError(f"there are {len(opened)} runs; give one or two")
    if tap == (LIST,):
        _list_taps(opened, json=json)
        return
    if len(tap) > 1 and len(tap) != len(opened):
        raise InputError(f"there are {len(tap)} taps for {len(opened)} runs; give one, or one for each run")
    check_out(out, ".html", ".svg", folder=True)
    taps = tap if len(tap) == len(opened) else (tap or ("",)) * len(opened)
    from attnlab.analysis.project.points import tap_path
    from attnlab.analysis.project.projection import kept_name
    from attnlab.report.live import projection_page

    for run, where in zip(opened, taps, strict=True):
        if where:
            tap_path(run.model, where)  # refuses a name, before any work on another run
    first, *others = (
        run.project(tap=where, token=token, method=method, samples=samples, split=split, seed=seed)
        for run, where in zip(opened, taps, strict=True)
    )
    found = first.beside(*others)
    name = kept_name(*tap, method=method, token=token, samples=samples, split=split, seed=seed)
    name = safe_name("-".join([name, *(f"beside-{run.name}" for run in opened[1:])]))
    page = partial(projection_page, found)
    files = [*map(str, write_main(found, opened[0], out, name=name, page=page))]
    if json:
        print_json({**found.to_json(), "files": files})
    else:
        print_parts([*found.tables(), *files])


def _list_taps(runs: list[Run], *, json: bool) -> None:
    """Print the names that ``--tap`` takes."""
    names = [run.taps() for run in runs]
    if json:
        print_json({"runs": names})
        return
    for each in names:
        print_parts(each.tables())
