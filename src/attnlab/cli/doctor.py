"""``attnlab doctor``: why does a run not learn?"""

from attnlab.cli.drawing import say_written
from attnlab.cli.output import print_json, print_result, print_text
from attnlab.cli.parsing import Json, RunName, Seconds
from attnlab.errors import LabError
from attnlab.front.diagnosing import diagnose
from attnlab.storage import check_out

EXIT_SERIOUS = 1


def command(
    run: RunName = "", *, machine: bool = False, out: str = "", budget: Seconds = 0.0, json: Json = False
) -> int:
    """Look for what is wrong with a run: its log, probes of its model, and experiments within a budget.

    Prints findings, the most likely first, with evidence and remedy, then what was checked and what could
    not be. The exit code is 1 if something serious was found. docs/howto/doctor.md lists the kinds. RUN may
    also be the folder of what a study or sweep found: does a seed decide, or the edge of a range?

    Example: attnlab doctor zoo:adder

    Example: attnlab doctor runs/addition-default-s0 --budget 60s --out doctor.html

    Example: attnlab doctor --machine

    Args:
        machine: Describe this machine instead of a run: versions, processor, cores and threads, for a bug
            report.
        out: A file that ends in .html for a page with pictures and explanations, or a folder for the
            pictures of the evidence and all numbers (SVG, PNG, JSON); by default none are written.
        budget: What short trainings may take, such as 60s or 2m; by default nothing is trained.
    """
    if machine:
        if run:
            raise LabError("--machine describes this machine, not a run; leave out the run, or --machine")
        from attnlab.runs.machine import describe_machine

        print_result(describe_machine(), json=json)
        return 0
    if not run:
        raise LabError("no run to diagnose; name a run folder or a shipped run, such as zoo:adder")
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
