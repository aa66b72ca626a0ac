"""``attnlab runs``: what has been trained."""

from pathlib import Path
from typing import Any

from attnlab.analysis import percent
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, Positional
from attnlab.display import say
from attnlab.errors import RunError
from attnlab.runs import RunFolder, list_runs
from attnlab.specs import spec_hash


def command(folder: Positional[str] = "runs", *, json: Json = False) -> None:
    """List the runs in a folder, with what is known of them.

    Example: attnlab runs

    Args:
        folder: The folder that holds run folders.
    """
    rows = [_describe(run) for run in list_runs(Path(folder))]
    if json:
        print_json(rows)
    elif rows:
        columns = ("run", "task", "seed", "epochs", "validation exact", "verified", "status")
        print_table(folder, columns, [_cells(row) for row in rows])
    else:
        say(f"there are no runs in {folder!r} yet; start with: attnlab train addition")


def _describe(run: RunFolder) -> dict[str, Any]:
    try:
        spec, summary = run.spec(), run.summary()
        epochs = run.metrics().epochs
        verified = run.analysis("verify")
    except RunError as error:
        return {"run": run.name, "status": str(error)}
    return {
        "run": run.name,
        "task": spec.task.kind,
        "seed": spec.seed,
        "spec": spec_hash(spec),
        "epochs": len(epochs),
        "planned_epochs": spec.training.epochs,
        "valid_exact_match": epochs[-1].valid_exact_match if epochs else None,
        "correct": verified["correct"] if verified else None,
        "total": verified["total"] if verified else None,
        "status": "finished" if summary else "unfinished",
    }


def _cells(row: dict[str, Any]) -> list[str]:
    if "task" not in row:
        return [row["run"], "-", "-", "-", "-", "-", row["status"]]
    exact, correct = row["valid_exact_match"], row["correct"]
    return [
        row["run"],
        row["task"],
        str(row["seed"]),
        f"{row['epochs']} of {row['planned_epochs']}",
        "-" if exact is None else percent(exact),
        "-" if correct is None else f"{correct:,} of {row['total']:,}",
        row["status"],
    ]
