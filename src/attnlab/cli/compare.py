"""``attnlab compare``: two runs side by side."""

from pathlib import Path

import tyro

from attnlab.cli.output import Meter, print_json, print_table, say
from attnlab.cli.parsing import parse
from attnlab.cli.places import check_out
from attnlab.report.choices import SAMPLES
from attnlab.runs import open_run
from attnlab.studies.tables import Table


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="compare")


def command(
    first: tyro.conf.Positional[str],
    second: tyro.conf.Positional[str],
    *,
    out: str = "",
    samples: int = SAMPLES,
    json: bool = False,
) -> int:
    """Put two runs side by side: specs, training, the same test examples with a paired test, heads.

    Example: attnlab compare zoo:adder runs/addition-default-s0 --out both.html

    Args:
        first: A run folder, or a shipped run such as zoo:adder.
        second: Another one.
        out: File for a page with figures, which ends in .html; by default only tables are printed.
        samples: Examples on which heads are measured.
        json: Print JSON instead of tables.
    """
    if out:
        check_out(out, ".html")
    runs = (open_run(first), open_run(second))
    from attnlab.analysis.compare import compare_runs
    from attnlab.report import comparison

    with Meter("asking both runs", 1) as meter:
        found = compare_runs(*runs, samples=samples, progress=meter.update)
    if json:
        print_json(found.to_json())
    else:
        _show(comparison.training_table(found))
        _show(comparison.spec_table(found) if found.spec else None)
        _show(comparison.answers_table(found) if found.answers.whole else None)
        _show(comparison.heads_table(found))
        print(comparison.verdict(found))
    if out:
        say(f"wrote {comparison.write_comparison(found, runs, Path(out), samples=samples)}")
    return 0


def _show(table: Table | None) -> None:
    if table is not None:
        print_table(table.title, table.columns, table.rows)
