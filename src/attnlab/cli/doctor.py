"""``attnlab doctor``: why does a run not learn?"""

from attnlab.cli.drawing import say_written
from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import Json, RunName, Seconds
from attnlab.front.diagnosing import diagnose
from attnlab.storage import check_out

EXIT_SERIOUS = 1


def command(run: RunName, *, out: str = "", budget: Seconds = 0.0, json: Json = False) -> int:
    """Look for what is wrong with a run: its log, probes of its model, and experiments within a budget.

    Prints findings, the most likely first, with evidence and remedy, then what was checked and what could
    not be. The exit code is 1 if something serious was found. docs/howto/doctor.md lists the kinds. RUN may
    also be the folder of what a study or sweep found: does a seed decide, or the edge of a range?

    Example: attnlab doctor zoo:adder

    Example: attnlab doctor runs/addition-default-s0 --budget 60s --out doctor.html

    Args:
        out: A file that ends in .html for a page with pictures and explanations, or a folder for the
            pictures of the evidence and all numbers (SVG, PNG, JSON); by default none are written.
        budget: What short trainings may take, such as 60s or 2m; by default there are none.
    """
    check_out(out, ".html", folder=True)
    found = diagnose(run, budget=budget)
    if json:
        print_json(found)
    else:
        from attnlab.tables.doctor import lines

        print_text(*lines(found))
    if out:
        say_written(found.save(out))
    return EXIT_SERIOUS if found.serious else 0
