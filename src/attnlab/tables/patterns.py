"""Attention patterns: what was asked and answered, and the figure for it."""

from collections.abc import Iterator

from attnlab.analysis.patterns import Patterns
from attnlab.figures import patterns as of
from attnlab.results import Drawing, Part, Table


def tables(found: Patterns) -> Iterator[Part]:
    rows = tuple((each.example, each.answer) for each in found.looked)
    yield Table(f"{found.run}: patterns of {found.head or 'every head'}", ("example", "answer"), rows)


def figures(found: Patterns) -> dict[str, Drawing]:
    """Every head on one example, or one head on all; none of a result that was read from a file."""
    if not found.looked:
        return {}
    head, first = found.head, found.looked[0]
    if head and first.image is not None:
        drawing = Drawing(of.head_images_data(head, found.looked), of.draw_head_images)
    elif head:
        drawing = Drawing(of.head_examples_data(head, found.looked), of.draw_head_examples)
    elif first.image is not None:
        drawing = Drawing(of.patch_patterns_data(first), of.draw_patch_patterns)
    else:
        data = of.patterns_data(first.patterns, example=first.example, answer=first.answer, note=first.note)
        drawing = Drawing(data, of.draw_patterns)
    return {"patterns": drawing}
