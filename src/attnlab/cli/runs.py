"""``attnlab runs``: what has been trained."""

from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Json, Positional
from attnlab.display import say
from attnlab.errors import brief
from attnlab.runs import list_runs


def command(folder: Positional[str] = "runs", *, json: Json = False) -> None:
    """List the runs in a folder, with what is known of them.

    Example: attnlab runs

    Args:
        folder: The folder that holds run folders.
    """
    found = list_runs(folder)
    if json:
        print_json(found.runs)
    elif found.runs:
        print_parts(found.tables())
    else:
        say(f"there are no runs in {brief(folder)} yet; start with: attnlab train addition")
