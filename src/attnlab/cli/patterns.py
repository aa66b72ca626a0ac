"""``attnlab patterns``: attention patterns as figures."""

import re
from typing import TYPE_CHECKING, Any

import tyro

from attnlab.cli.drawing import drawing_folder
from attnlab.cli.output import print_json
from attnlab.cli.parsing import parse
from attnlab.runs import open_run
from attnlab.spec import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.analysis.patterns import Looked


def main(arguments: list[str]) -> int:
    """Run the command."""
    return parse(command, arguments, command="patterns")


def command(
    run: tyro.conf.Positional[str],
    *,
    example: str = "",
    head: str = "",
    examples: int = 12,
    split: Split = "valid",
    out: str = "",
    json: bool = False,
) -> int:
    """Draw where heads look: every head on one example, or one head on many.

    Example: attnlab patterns zoo:adder --example 374+814

    Example: attnlab patterns zoo:adder --head decoder.1.cross.2 --examples 12

    Args:
        run: A run folder, or a shipped run such as zoo:adder.
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
    from attnlab.figures.style import write_figure

    looked = run_patterns(
        opened, example=example, head=head, split=split, count=examples if head and not example else 1
    )
    data, drawn = _one_head(head, looked) if head else _every_head(looked[0])
    words = [*([head] if head else []), *([looked[0].example] if example or not head else [])]
    name = re.sub(r"[^\w.+-]", "-", "-".join(["patterns", *words]))
    folder = drawing_folder(opened, out)
    files = [str(path) for path in write_figure(folder, name, data, drawn)]
    if json:
        print_json({"run": opened.name, "examples": [each.example for each in looked], "files": files})
    else:
        print("\n".join(files))
    return 0


def _every_head(looked: "Looked") -> "tuple[Any, Figure]":
    from attnlab.figures.patterns import (
        draw_patch_patterns,
        draw_patterns,
        patch_patterns_data,
        patterns_data,
    )

    if looked.image is not None:
        data = patch_patterns_data(looked)
        return data, draw_patch_patterns(data)
    plain = patterns_data(looked.patterns, example=looked.example, answer=looked.answer)
    return plain, draw_patterns(plain)


def _one_head(head: str, looked: "list[Looked]") -> "tuple[Any, Figure]":
    from attnlab.figures.patterns import (
        draw_head_examples,
        draw_head_images,
        head_examples_data,
        head_images_data,
    )

    if looked[0].image is not None:
        data = head_images_data(head, looked)
        return data, draw_head_images(data)
    plain = head_examples_data(head, looked)
    return plain, draw_head_examples(plain)
