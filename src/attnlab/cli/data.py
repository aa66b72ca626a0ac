"""``attnlab data``: the digits of MNIST, where they are and how to get them."""

import time
from pathlib import Path
from typing import Annotated, Any

import tyro

from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, parse_part
from attnlab.data.mnist_files import SAMPLE, SHA256, Tell, cache_folder, describe_cache
from attnlab.data.mnist_sources import describe_sources
from attnlab.display import say
from attnlab.errors import InputError

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
    kept, sources = describe_cache(), describe_sources()
    if json:
        print_json({"folder": str(cache_folder()), "files": kept, "sources": sources})
        return
    columns = ("file", "digits", "bytes", "SHA-256")
    print_table(f"MNIST in {cache_folder()}", columns, [_cells(file) for file in kept])
    rows = [(source["source"], source["state"]) for source in sources]
    print_table("sources, in the order in which they are asked", ("source", "state"), rows)


def command_fetch(
    *, folder: Annotated[str | None, tyro.conf.arg(name="from")] = None, json: bool = False
) -> None:
    """Get MNIST into the cache, from the first source that answers.

    Example: attnlab data fetch

    Args:
        folder: A directory with the files of MNIST, raw, with .gz or as Parquet; then only it is asked.
        json: Print JSON instead of a sentence.
    """
    sources, refusals = _fetch(folder, _now_and_then())
    if json:
        result = {"folder": str(cache_folder()), "sources": sources, "refusals": refusals, "sha256": SHA256}
        print_json(result)
        return
    for refusal in refusals:
        say(refusal)
    print(f"MNIST is in {cache_folder()}, from {' and '.join(sources)}")


def _fetch(folder: str | None, tell: Tell) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who gave the files, and why others did not."""
    from attnlab.data.mnist import fetch_digits_data, keep_directory

    if folder is not None:
        keep_directory(Path(folder), tell=tell)
        return (f"the directory {folder}",), ()
    fetched = fetch_digits_data(tell=tell)
    if not fetched.complete:
        reasons = "; ".join(fetched.refusals)
        raise InputError(f"no source of MNIST answered ({reasons}); {SAMPLE} serves meanwhile")
    if fetched.unkept is not None:
        raise fetched.unkept
    return fetched.sources, fetched.refusals


def _now_and_then() -> Tell:
    """Says how far it is every two seconds, so nothing about what takes less."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(text)

    return tell


def _cells(file: dict[str, Any]) -> list[str]:
    if file["bytes"] is None:
        return [file["file"], "-", "-", "not there"]
    digits = "-" if file["digits"] is None else f"{file['digits']:,}"
    return [file["file"], digits, f"{file['bytes']:,}", "right" if file["right"] else "wrong: fetched anew"]
