"""``attnlab metrics``: how a run trained, epoch by epoch."""

from typing import Any

from attnlab.analysis import percent
from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, RunName
from attnlab.errors import RunError
from attnlab.runs import RunFolder, open_run


def command(run: RunName, *, csv: bool = False, every: bool = False, json: Json = False) -> None:
    """Print the loss of each epoch, the seconds it took, and the accuracy after it.

    Example: attnlab metrics runs/digits-patch-attention-s0 --csv

    Args:
        csv: Print epoch,loss,time as CSV.
        every: With --csv, print every column instead of three.
    """
    rows = epochs(open_run(run))
    if json:
        print_json(rows)
    elif csv:
        print(as_csv(rows, list(rows[0]) if every else ["epoch", "loss", "time"]), end="")
    else:
        names = list(rows[0])
        print_table(run, names, [[_word(name, row.get(name)) for name in names] for row in rows])


def epochs(run: RunFolder) -> list[dict[str, Any]]:
    """A row an epoch; ``time`` is what the epoch alone took, in seconds."""
    found = run.metrics().epochs
    probes = {probe.step: probe for probe in run.metrics().probes}
    if not found:
        raise RunError(f"run {run.path} has ended no epoch yet")
    rows: list[dict[str, Any]] = []
    for line, before in zip(found, (0.0, *(each.seconds for each in found)), strict=False):
        probe = probes.get(line.step)
        watched = {
            "test_accuracy": line.test_exact_match,
            "entropy": probe and probe.entropy,
            "moved": probe and probe.moved,
        }
        rows.append(
            {
                "epoch": line.epoch,
                "loss": line.loss,
                "time": line.seconds - before,
                "valid_loss": line.valid_loss,
                "valid_accuracy": line.valid_exact_match,
                **{name: value for name, value in watched.items() if value is not None},
            }
        )
    return rows


def as_csv(rows: list[dict[str, Any]], names: list[str]) -> str:
    """The columns ``names`` with six digits behind the point."""
    cells = ((row[name] for name in names) for row in rows)
    numbers = ([str(each) if isinstance(each, int) else f"{each:.6f}" for each in row] for row in cells)
    return "".join(f"{','.join(line)}\n" for line in (names, *numbers))


def _word(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("accuracy"):
        return percent(value)
    return str(value) if isinstance(value, int) else f"{value:.2f} s" if name == "time" else f"{value:.4f}"
