"""``attnlab doctor``: why does a run not learn?"""

from attnlab.cli.drawing import save_figures
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, RunName
from attnlab.front.loading import load_run

EXIT_SERIOUS = 1


def command(run: RunName, *, out: str = "", json: Json = False) -> int:
    """Look for what is wrong with a run: its log, and probes of its model that take seconds.

    Prints findings, the most likely first, with evidence and remedy, then everything that was checked and
    what could not be. The exit code is 1 if something serious was found. docs/doctor.md lists the kinds.

    Example: attnlab doctor zoo:adder

    Args:
        out: Folder for the pictures of the evidence (SVG, PNG, JSON); by default none are written.
    """
    opened = load_run(run)
    found = opened.diagnose()
    print_result(found, json=json)
    if out:
        save_figures(found, opened, out)
    return EXIT_SERIOUS if found.serious else 0
