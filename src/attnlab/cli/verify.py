"""``attnlab verify``: every pair of operands, decoded and counted."""

from pathlib import Path
from typing import Any

import tyro

from attnlab.analysis import percent, verify
from attnlab.cli.output import Meter, print_json, print_table, say
from attnlab.cli.parsing import parse
from attnlab.runs import Run, load_task_and_model, open_run
from attnlab.storage import write_text

SHOWN = 20


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="verify")


def command(run: tyro.conf.Positional[str], *, json: bool = False) -> int:
    """Decode every ordered pair of operands greedily and count: 1,000,000 for three digits.

    Example: attnlab verify zoo:adder

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
        json: Print JSON instead of text.
    """
    opened = open_run(run)
    found, kept = verify_with_progress(opened)
    if json:
        print_json(found)
    else:
        show(found, kept)
    return 0


def verify_with_progress(run: Run) -> tuple[dict[str, Any], Path | None]:
    """Verify ``run``, keep what was found in its folder, and say where every wrong pair is."""
    task, model = load_task_and_model(run)
    with Meter("verifying", 10 ** (2 * task.digits)) as meter:
        counted, wrong = verify(task, model, seed=run.spec().seed, progress=meter.update)
    found = {"run": run.name, **counted}
    if run.keep_analysis("verify", found) is None:
        return found, None
    path = run.file("analysis/verify-wrong.csv")
    write_text(path, "a,b\n" + "".join(f"{a},{b}\n" for a, b in wrong.tolist()))
    return found, path


def show(found: dict[str, Any], kept: Path | None) -> None:
    """Print what ``verify`` found."""
    unseen = found["unseen"]
    print(f"{found['run']}: {found['correct']:,} of {found['total']:,} correct")
    print(
        f"of these never seen in training: {unseen['correct']:,} of {unseen['total']:,} "
        f"({percent(unseen['correct'] / max(1, unseen['total']))})"
    )
    wrong = found["wrong"]
    if wrong:
        rows = [(f"{w['a']}+{w['b']}", str(w["a"] + w["b"]), w["answer"]) for w in wrong[:SHOWN]]
        print_table("wrong", ("sum", "is", "model says"), rows)
        count = found["total"] - found["correct"]
        if count > SHOWN:
            where = f"all are in {kept}" if kept else "--json prints more"
            print(f"and {count - SHOWN:,} more; {where}")
    say(f"took {found['seconds']:.0f} s")
