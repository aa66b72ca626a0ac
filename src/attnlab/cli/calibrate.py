"""``attnlab calibrate``: a temperature for a run of an older version."""

from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, RunName
from attnlab.front.loading import load


def command(run: RunName, *, json: Json = False) -> None:
    """Fit a temperature on validation data, so that probabilities mean something, and keep it in the run.

    Training does so at its end; this is for runs of older versions. Answers stay as they are.

    Example: attnlab calibrate runs/digits-vit-s0
    """
    print_result(load(run).calibrate(), json=json)
