"""``attnlab patterns``: attention patterns as figures."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnlab.cli.drawing import drawing_folder
from attnlab.cli.output import print_json
from attnlab.cli.parsing import RunName
from attnlab.runs import open_run
from attnlab.specs import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    opened = open_run(run)
    from attnlab.analysis.patterns import run_patterns
    from attnlab.figures import patterns as of
    from attnlab.figures.style import write_figure

    looked = run_patterns(
        opened, example=example, head=head, split=split, count=examples if head and not example else 1
    )
    first = looked[0]
    data: Any
    draw: Callable[[Any], Figure]
    if head and first.image is not None:
        data, draw = of.head_images_data(head, looked), of.draw_head_images
    elif head:
        data, draw = of.head_examples_data(head, looked), of.draw_head_examples
    elif first.image is not None:
        data, draw = of.patch_patterns_data(first), of.draw_patch_patterns
    else:
        data = of.patterns_data(first.patterns, example=first.example, answer=first.answer)
        draw = of.draw_patterns
    words = [*([head] if head else []), *([first.example] if example or not head else [])]
    name = re.sub(r"[^\w.+-]", "-", "-".join(["patterns", *words]))
    files = [str(path) for path in write_figure(drawing_folder(opened, out), name, data, draw(data))]
    if json:
        print_json({"run": opened.name, "examples": [each.example for each in looked], "files": files})
    else:
        print("\n".join(files))
