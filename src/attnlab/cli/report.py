"""``attnlab report``: one self-contained page about a run."""

from pathlib import Path

import tyro

from attnlab.cli.output import print_json, say
from attnlab.cli.parsing import parse
from attnlab.report.run_report import write_report
from attnlab.runs import open_run


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="report")


def command(run: tyro.conf.Positional[str], *, out: str = "", json: bool = False) -> int:
    """Write a page about a run: how it trained, how good it is, where its heads look.

    Example: attnlab report zoo:adder --out adder.html

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        out: File to write; by default report.html in the run folder, or here for a shipped run.
        json: Print where the page is as JSON.
    """
    opened = open_run(run)
    default = Path("report.html") if opened.shipped else opened.file("report.html")
    path = write_report(opened, Path(out) if out else default)
    if json:
        print_json({"run": opened.name, "report": str(path), "bytes": path.stat().st_size})
    else:
        print(path)
        say("open it in a browser; it needs no network")
    return 0
