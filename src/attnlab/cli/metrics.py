"""``attnlab metrics``: how a run trained, epoch by epoch."""

from attnlab.cli.output import print_json, print_parts, print_text
from attnlab.cli.parsing import Json, RunName
from attnlab.errors import RunError
from attnlab.results import Row
from attnlab.runs import open_run


def command(run: RunName, *, csv: bool = False, every: bool = False, json: Json = False) -> None:
    """Print the loss of each epoch, the seconds it took, and the accuracy after it.

    Example: attnlab metrics runs/digits-patch-attention-s0 --csv

    Args:
        csv: Print epoch,loss,time as CSV.
        every: With --csv, print every column instead of three.
    """
    metrics = open_run(run).metrics()
    rows = metrics.records()
    if not rows:
        raise RunError(f"run {metrics.run} has not finished an epoch yet")
    if json:
        print_json(rows)
    elif csv:
        print_text(as_csv(rows, list(rows[0]) if every else ["epoch", "loss", "time"]), end="")
    else:
        print_parts(metrics.tables())


def as_csv(rows: list[Row], names: list[str]) -> str:
    """The columns ``names`` with six digits behind the point."""
    cells = ((row[name] for name in names) for row in rows)
    numbers = ([str(each) if isinstance(each, int) else f"{each:.6f}" for each in row] for row in cells)
    return "".join(f"{','.join(line)}\n" for line in (names, *numbers))
