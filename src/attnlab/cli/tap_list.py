"""The names that ``--tap`` takes."""

from collections.abc import Sequence

from attnlab.analysis.project.points import module_names, short_names, tap_path
from attnlab.cli.output import print_json, print_table
from attnlab.runs import Run, load_model


def check_taps(runs: Sequence[Run], taps: Sequence[str]) -> None:
    """Refuse a name that a run's model does not have, before any work on another run."""
    for run, tap in zip(runs, taps, strict=True):
        if tap:
            tap_path(load_model(run), tap)


def list_taps(runs: Sequence[Run], *, json: bool) -> int:
    """Print short names and paths of the models of ``runs``, and end well."""
    names = [
        (run.name, short_names(model), module_names(model)) for run in runs for model in [load_model(run)]
    ]
    if json:
        print_json({"runs": [{"run": run, "short": short, "paths": paths} for run, short, paths in names]})
        return 0
    for run, short, paths in names:
        print_table(f"{run}: short names", ("--tap", "path"), [*short.items()])
        print("\n".join(paths))
    return 0
