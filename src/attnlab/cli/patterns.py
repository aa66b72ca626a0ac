"""``attnlab patterns``: attention patterns as figures."""

import re

from attnlab.cli.drawing import drawing_folder
from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import RunName
from attnlab.front.loading import load
from attnlab.specs import Split


def command(
    run: RunName,
    *,
    example: str = "",
    head: str = "",
    examples: int = 12,
    split: Split = "valid",
    out: str = "",
    json: bool = False,
) -> None:
    """Draw where heads look: every head on one example, or one head on many.

    Example: attnlab patterns zoo:adder --example 374+814

    Example: attnlab patterns zoo:adder --head decoder.1.cross.2 --examples 12

    Args:
        example: One example in the task's notation, such as 374+814 or the image test:7; by default the
            first of the split.
        head: Draw this head only, on many examples, or on the one that is given.
        examples: How many examples to draw one head on.
        split: Where the examples come from.
        out: Folder for the figure (SVG, PNG, JSON); by default figures in the run folder, or here for a
            shipped run.
        json: Print where the files are as JSON.
    """
    opened = load(run)
    found = opened.patterns(example=example, head=head, examples=examples, split=split)
    words = [*([head] if head else []), *(found.examples if example or not head else [])]
    name = re.sub(r"[^\w.+-]", "-", "-".join(["patterns", *words]))
    files = [str(path) for path in found.save_figures(drawing_folder(opened, out), name=name)]
    if json:
        print_json({**found.to_json(), "files": files})
    else:
        print_text("\n".join(files))
