"""``attnlab verify``: every pair of operands, decoded and counted."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.analysis import percent
from attnlab.cli.output import print_table, tell
from attnlab.cli.parsing import RunName
from attnlab.display import Meter, say
from attnlab.problems.addition.task import WRONG, verifiable
from attnlab.runs import RunFolder, open_run

if TYPE_CHECKING:
    from attnlab.problems.addition.evaluate import Verification

SHOWN = 20


def command(run: RunName, *, json: bool = False) -> None:
    """Decode every ordered pair of operands greedily and count: 1,000,000 for three digits.

    Example: attnlab verify zoo:adder

    Args:
        json: Print JSON instead of text.
    """
    opened = open_run(run)
    found, kept = verify_with_progress(opened)
    tell(found, partial(show, kept=kept), json=json)


def verify_with_progress(run: RunFolder) -> "tuple[Verification, Path | None]":
    """Verify ``run``, keep what was found in its folder, and say where every wrong pair is."""
    task = verifiable(run.spec().task)
    from attnlab.problems.addition.evaluate import verify_run

    with Meter("verifying", 1) as meter:
        found = verify_run(task, run, progress=meter.update)
    return found, None if run.shipped else run.file(WRONG)


def show(found: "Verification", kept: Path | None) -> None:
    unseen = found.unseen
    print(f"{found.run}: {found.correct:,} of {found.total:,} correct")
    print(
        f"of these never seen in training: {unseen.correct:,} of {unseen.total:,} "
        f"({percent(unseen.correct / max(1, unseen.total))})"
    )
    wrong = found.wrong
    if wrong:
        rows = [(f"{w.a}+{w.b}", str(w.a + w.b), w.answer) for w in wrong[:SHOWN]]
        print_table("wrong", ("sum", "is", "model says"), rows)
        count = found.total - found.correct
        if count > SHOWN:
            where = f"all are in {kept}" if kept else "--json prints more"
            print(f"and {count - SHOWN:,} more; {where}")
    say(f"took {found.seconds:.0f} s")
