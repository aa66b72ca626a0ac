"""``attnlab runs``: what has been trained."""

from pathlib import Path
from typing import Any

import tyro

from attnlab.cli.output import percent, print_json, print_table, say
from attnlab.cli.parsing import parse
from attnlab.errors import RunError
from attnlab.runs import Run, list_runs
from attnlab.spec import spec_hash


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="runs")


def command(folder: tyro.conf.Positional[str] = "runs", *, json: bool = False) -> int:
    """List the runs in a folder, with what is known of them.

    Example: attnlab runs

    Args:
        folder: The folder that holds run folders.
        json: Print JSON instead of a table.
    """
    rows = [_describe(run) for run in list_runs(Path(folder))]
    if json:
        print_json(rows)
        return 0
    if not rows:
        say(f"there are no runs in {folder!r} yet; start with: attnlab train addition")
        return 0
    columns = ("run", "task", "seed", "epochs", "validation exact", "verified", "status")
    print_table(folder, columns, [[_cell(row, column) for column in columns] for row in rows])
    return 0


def _describe(run: Run) -> dict[str, Any]:
    try:
        spec, summary = run.spec(), run.summary()
        epochs = [line for line in run.metrics() if line["event"] == "epoch"]
        verified = run.analysis("verify")
    except RunError as error:
        return {"run": run.name, "status": str(error)}
    return {
        "run": run.name,
        "task": spec.task.kind,
        "seed": spec.seed,
        "spec": spec_hash(spec),
        "epochs": f"{len(epochs)}/{spec.training.epochs}",
        "validation exact": epochs[-1]["valid_exact_match"] if epochs else None,
        "verified": f"{verified['correct']:,} of {verified['total']:,}" if verified else None,
        "status": "finished" if summary else "unfinished",
    }


def _cell(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    if value is None:
        return "-"
    return percent(value) if isinstance(value, float) else str(value)
