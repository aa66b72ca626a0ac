"""``attnlab project``: what a model makes of many examples, as points in a plane."""

from functools import partial
from typing import TYPE_CHECKING

from attnlab.analysis.choices import ProjectionMethod
from attnlab.cli.drawing import check_out, file_name, write_out
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Positional, Seed
from attnlab.display import Meter, say
from attnlab.errors import InputError
from attnlab.runs import RunFolder, open_run
from attnlab.specs import Split

if TYPE_CHECKING:
    from attnlab.analysis.project.projection import Projection

NUMBERS = {
    "points": "points",
    "dimensions": "dimensions",
    "explained_variance": "variance explained by two components",
    "trustworthiness": "trustworthiness of the picture",
    "silhouette": "silhouette of the {}",
    "silhouette_picture": "silhouette in the picture",
    "clusters": "clusters",
    "noise": "points without a cluster",
    "ari": "ARI of clusters and {}",
    "nmi": "NMI",
    "purity": "purity of clusters",
}
SAMPLES = 1000
LIST = "list"
"""What to say for a tap in order to see all of them."""
_SECONDS_A_POINT = 0.004  # of t-SNE, on two cores


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
        samples: Points.
        split: Where the examples come from.
        seed: Which examples, and where the methods start.
        out: A file that ends in .html or .svg, or a folder for both, with PNG and JSON; by default figures
            in the first run folder, or here for a shipped run.
        json: Print the numbers and the files as JSON.
    """
    opened = [open_run(name) for name in runs]
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
    from attnlab.analysis.project.projection import project_run
    from attnlab.figures.projections import draw_projections, projections_data
    from attnlab.report.live import projection_page

    for run, where in zip(opened, taps, strict=True):
        if where:
            tap_path(run.model, where)  # refuses a name, before any work on another run
    if method == "tsne" and samples > 1000:
        say(f"t-SNE takes about {samples * len(opened) * _SECONDS_A_POINT:.0f} s on two cores")
    project = partial(project_run, token=token, method=method, samples=samples, split=split, seed=seed)
    found = []
    for run, where in zip(opened, taps, strict=True):
        with Meter(f"reading {run.name}", 1) as meter:
            found.append(project(run, tap=where, progress=meter.update))
    for numbers, *_ in found:
        if numbers.points < samples:
            why = f"the {split} split has no more"
            say(f"{numbers.run}: {numbers.points:,} points instead of {samples:,}, since {why}")
    differing = _differing(token, split, samples, seed)
    for run, where, (numbers, *_) in zip(opened, taps, found, strict=True):
        run.keep(file_name("projection", method, *filter(None, [where]), *differing), numbers)
    beside = [f"beside-{run.name}" for run in opened[1:]]
    name = file_name("projection", method, *tap, *differing, *beside)
    data = projections_data(found)
    page = partial(projection_page, data, [points for _, points, _ in found])
    files = write_out(opened[0], out, name, data, draw_projections, page)
    _tell([numbers for numbers, _, _ in found], [*map(str, files)], json=json)


def _list_taps(runs: list[RunFolder], *, json: bool) -> None:
    """Print the names that ``--tap`` takes: short names and paths of the models of ``runs``."""
    from attnlab.analysis.project.points import module_names, short_names

    models = [(run.name, run.model) for run in runs]
    names = [(name, short_names(model), module_names(model)) for name, model in models]
    if json:
        print_json({"runs": [{"run": run, "short": short, "paths": paths} for run, short, paths in names]})
        return
    for name, short, paths in names:
        print_table(f"{name}: short names", ("--tap", "path"), [*short.items()])
        print("\n".join(paths))


def _differing(token: str, split: Split, samples: int, seed: int) -> list[str]:
    """Words for what is not as by default, so that no result takes the place of another."""
    words = [] if token == "digit" else ["".join(token.split())]
    words += [] if split == "test" else [split]
    words += [] if samples == SAMPLES else [f"{samples}-points"]
    return words + ([] if seed == 0 else [f"seed{seed}"])


def _tell(found: "list[Projection]", files: list[str], *, json: bool) -> None:
    from attnlab.figures.projections import label_words, token_words

    if json:
        print_json({"runs": found, "files": files})
        return
    of = label_words(found[0])
    rows = [
        (words.format(of), *(_told(key, run.to_json()[key]) for run in found))
        for key, words in NUMBERS.items()
    ]
    title = f"{found[0].method}, {found[0].split} {of}, seed {found[0].seed}"
    # the token in a second line, since columns are not broken
    headings = ("\n".join(filter(None, (f"{run.run}, {run.tap}", token_words(run)))) for run in found)
    print_table(title, ("", *headings), rows)
    if any(run.noise > 0 for run in found):
        print("ARI, NMI and purity are of the points in clusters")
    print("\n".join(files))


def _told(key: str, value: float | int | None) -> str:
    if value is None:
        return "none"
    if key in ("explained_variance", "noise"):
        return f"{100 * value:.1f}%"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
