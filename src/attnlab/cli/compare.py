"""``attnlab compare``: two runs side by side."""

from attnlab.analysis.choices import SAMPLES
from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Positional, RunName
from attnlab.display import say
from attnlab.front.studying import compare


def command(
    first: RunName,
    second: Positional[str],
    *,
    out: str = "",
    samples: int = SAMPLES,
    json: Json = False,
) -> None:
    """Put two runs side by side: specs, training, the same test examples with a paired test, heads.

    Example: attnlab compare zoo:adder runs/addition-default-s0 --out both.html

    Args:
        second: The run to compare it with.
        out: File for a page with figures, which ends in .html; by default only tables are printed.
        samples: Examples on which heads are measured.
    """
    found = compare(first, second, out=out, samples=samples)
    print_result(found, json=json)
    if out:
        say(f"wrote {out}")
