"""``attnlab compare``: two runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.analysis.choices import SAMPLES
from attnlab.cli.drawing import check_out
from attnlab.cli.output import print_table, tell
from attnlab.cli.parsing import Json, Positional, RunName
from attnlab.display import Meter, say
from attnlab.runs import open_run

if TYPE_CHECKING:
    from attnlab.analysis.compare import Comparison


def command(
    first: RunName,
    second: Positional[str],
    *,
    out: str = "",
    samples: int = SAMPLES,
    json: Json = False,
) -> None:
    """Put two runs side by side: specs, training, the same test examples with a paired test, heads.

    Example: attnlab compare zoo:adder runs/addition-default-s0 --out both.html

    Args:
        second: Another one.
        out: File for a page with figures, which ends in .html; by default only tables are printed.
        samples: Examples on which heads are measured.
    """
    check_out(out, ".html")
    runs = (open_run(first), open_run(second))
    from attnlab.analysis.compare import compare_runs
    from attnlab.report import comparison

    with Meter("asking both runs", 1) as meter:
        found = compare_runs(*runs, samples=samples, progress=meter.update)
    tell(found, _show, json=json)
    if out:
        say(f"wrote {comparison.write_comparison(found, runs, Path(out), samples=samples)}")


def _show(found: "Comparison") -> None:
    from attnlab.report.comparison import comparison_tables, verdict

    for table in comparison_tables(found):
        print_table(table.title, table.columns, table.rows)
    print(verdict(found))
