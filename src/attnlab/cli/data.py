"""``attnlab data``: the digits of MNIST, where they are and how to get them."""

import time
from typing import Annotated

import tyro

from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, parse_part
from attnlab.data.mnist_files import Tell
from attnlab.data.mnist_sources import data_status
from attnlab.display import say

SECONDS_BETWEEN_LINES = 2.0

USAGE = """usage: attnlab data status                what is in the cache, and which sources there are
       attnlab data fetch                 get MNIST into the cache
       attnlab data fetch --from FOLDER   the same, from files that you have

example: attnlab data fetch
all options: attnlab data fetch --help"""


def main(arguments: list[str]) -> int | None:
    parts = {"status": command_status, "fetch": command_fetch}
    return parse_part(parts, arguments, command="data", usage=USAGE)


def command_status(*, json: Json = False) -> None:
    """Show what is in the cache and which sources there are; nothing is asked over the network.

    Example: attnlab data status
    """
    print_result(data_status(), json=json)


def command_fetch(
    *, folder: Annotated[str | None, tyro.conf.arg(name="from")] = None, json: bool = False
) -> None:
    """Get MNIST into the cache, from the first source that answers.

    Example: attnlab data fetch

    Args:
        folder: A directory with the files of MNIST, raw, with .gz or as Parquet; then only it is asked.
        json: Print JSON instead of a sentence.
    """
    from attnlab.data.mnist import cache_digits_data

    found = cache_digits_data(folder, tell=_now_and_then())
    for refusal in () if json else found.refusals:
        say(refusal)
    print_result(found, json=json)


def _now_and_then() -> Tell:
    """Says how far it is every two seconds, so nothing about what takes less."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(text)

    return tell
