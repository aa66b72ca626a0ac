"""``attnlab explore``: a page on which one gives a model inputs, sees its attention, and changes it."""

from attnlab.cli.parsing import Positional
from attnlab.explorer.library import run_library
from attnlab.explorer.opening import serve_library


def command(
    runs: Positional[tuple[str, ...]] = (),
    *,
    port: int = 0,
    no_open: bool = False,
    host: str = "127.0.0.1",
) -> None:
    """Give a model inputs in the browser, see every head while the answer forms, and change what you like.

    The page lists the runs that are named, those in the folder runs, and the shipped ones. It needs no
    network; anyone on this computer who knows its address can use it. Ctrl-C ends it.

    Example: attnlab explore

    Example: attnlab explore zoo:digit runs/mine --port 8000 --no-open

    Args:
        runs: Run folders or shipped runs such as zoo:adder; the first is opened.
        port: Where to serve; 0 is any port that is free.
        no_open: Print the address only; the browser is not opened.
        host: Address to listen on; 0.0.0.0 lets other computers in that know the page's address.
    """
    library = run_library(runs)
    start = next(iter(library.shelves())) if runs else ""
    serve_library(library, start=start, host=host, port=port, browser=not no_open)
