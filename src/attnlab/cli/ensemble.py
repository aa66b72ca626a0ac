"""``attnlab ensemble``: runs that answer together."""

from shlex import quote

from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Json, Positional
from attnlab.display import say
from attnlab.front.loading import load


def command(runs: Positional[list[str]], *, best: int = 0, out: str = "", json: Json = False) -> None:
    """Average the probabilities of runs that classify images, and keep them as one that answers like a run.

    Example: attnlab ensemble runs/digits-default-s0 runs/digits-default-s1 runs/digits-cnn-s0 --best 2

    Args:
        runs: Run folders.
        best: Take only this number of them, the best on validation images; 0 takes all.
        out: Folder to create; by default runs/ensemble, numbered if taken.
    """
    first, *others = (load(run) for run in runs)
    made = first.ensemble(*others, best=best, out=out)
    if json:
        print_json({"ensemble": str(made.path), **made.scores.to_json()})
    else:
        print_parts(made.scores.tables())
        say(f"next: attnlab predict {quote(str(made.path))} picture.png")
