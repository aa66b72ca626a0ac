"""``attnlab handout``: the explorer as one file, in which the model itself runs."""

from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import RunName
from attnlab.front.loading import load


def command(run: RunName, *, out: str = "", json: bool = False) -> None:
    """Write the explorer of a run as one HTML file in which the model itself runs; it needs a browser only.

    The file carries the weights, 200 validation and 200 test examples and all code; it connects to nothing.
    Before it is written, its own script answers 1,000 examples and must say what torch says.

    Example: attnlab handout zoo:adder --out adder.html

    Args:
        out: The file to write, which ends in .html; by default NAME.html here.
        json: Print what was compared as JSON.
    """
    opened = load(run)
    found = opened.handout(out or f"{opened.path.resolve().name}.html")
    if json:
        print_json(found)
        return
    print_text(f"{found.file}: {found.bytes:,} bytes, weights of {found.bits} bits")
    print_text(
        f"{found.examples:,} examples are answered as by torch, with logits at most {found.difference:.1g} "
        f"away; {found.tolerance:g} is allowed"
    )
