"""``attnlab demo``: the whole path, from nothing to a proven adder and a page about it."""

import time
from shlex import quote

from attnlab.cli.output import print_json, print_result, print_text
from attnlab.cli.train import new_run, read_options, stopped
from attnlab.display import duration, say
from attnlab.front.specs import check_options
from attnlab.problems.addition.task import verifiable

ABOUT = """Train a new adder, decode every sum it can be asked, and write a page about it.

--quick trains a small adder of two digits for a few seconds, which shows that the installation works.

Example: attnlab demo --seed 1

Example: attnlab demo --quick
"""
QUICK = (
    *("--task.digits=2", "--model.width=32", "--model.encoder-layers=1", "--model.decoder-layers=1"),
    *("--training.epochs=8", "--training.batch=64", "--training.lr=0.003"),
)
"""What ``--quick`` stands for; other flags come after it and win."""


def main(arguments: list[str]) -> int:
    """Run the command. Flags are ``--quick`` and those of ``attnlab train addition``."""
    began = time.monotonic()
    if "--quick" in arguments:
        arguments = [*QUICK, *(word for word in arguments if word != "--quick")]
    name, options = read_options(["addition", *arguments], command="demo", about=ABOUT)
    task = verifiable(options.spec.task)
    check_options(task, checkpoint=options.checkpoint, track=options.track, show=options.show)
    run = new_run(name, options)
    say(f"1 of 3: training a new adder in {run.path}")
    trained = run.resume(checkpoint=options.checkpoint, track=options.track, doctor=options.doctor)
    summary = trained.summary()
    if summary is None:
        return stopped(run)
    say("2 of 3: decoding every sum it can be asked")
    found = run.verify()
    say("3 of 3: writing the page")
    run.evaluate()
    page = str(run.report())
    if options.json:
        print_json({**found.to_json(), "report": page, "training": summary})
        return 0
    print_result(found, json=False)
    print_text(
        f"trained in {duration(summary['seconds'])}, everything in {duration(time.monotonic() - began)}"
    )
    print_text(f"the page:  {page}")
    folder = quote(str(run.path))
    print_text("try next:")
    print_text(f"  attnlab predict {folder} {' '.join(task.suggestions())}")
    print_text(f"  attnlab evaluate {folder}")
    print_text("  attnlab train addition --model.positions rotary --seed 1")
    return 0
