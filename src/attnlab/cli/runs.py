"""``attnlab runs``: what has been trained."""

from attnlab.cli.output import print_json, print_parts
from attnlab.cli.parsing import Json, Positional
from attnlab.display import say
from attnlab.errors import brief
from attnlab.runs import list_runs, list_shipped


def command(folder: Positional[str] = "runs", *, json: Json = False) -> None:
    """List the runs in a folder, with what is known of them, and the shipped runs.

    Example: attnlab runs

    Args:
        folder: The folder that holds run folders.
        json: Print the runs in the folder as JSON, without the shipped ones.
    """
    found = list_runs(folder)
    if json:
        print_json(found.runs)
        return
    if found.runs:
        print_parts(found.tables())
    else:
        say(f"there are no runs in {brief(folder)} yet; start with: attnlab train addition")
    print_parts(list_shipped().tables())
