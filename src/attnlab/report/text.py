"""What the pages of runs that read text share: patterns of one example, and a table of mistakes."""

from collections.abc import Sequence

from attnlab.analysis.evaluate import Mistakes
from attnlab.analysis.patterns import AttentionPatterns
from attnlab.figures.patterns import LayerData, draw_patterns, patterns_data
from attnlab.report.page import Figure, Section, figure
from attnlab.studies.tables import Table

SHOWN = 20
LONG = 60  # characters of an input that a table shows


def pattern_figure(
    name: str, title: str, about: str, patterns: Sequence[AttentionPatterns], *, skip: int = 0
) -> Figure:
    """Maps of every head; ``skip`` rows, which have no choice, are not counted."""
    data = patterns_data(patterns)
    rows = [
        (max(row), f"{layer.attention}.{index}")
        for layer in data.layers
        for index, head in enumerate(layer.heads)
        for row in head[skip:]
    ]
    weight, head = max(rows)
    sharp = sum(most > 0.5 for most, _ in rows)
    reading = (
        f"{about} A map is a head, a row a query, a column a key; colour is the weight from 0 to 1, and "
        f"each row sums to one. The strongest single weight is {weight:.2f}, in {head}."
    )
    signs = (
        "Good: rows with one bright cell, at the place that the query needs. Bad: rows of one even colour"
        f"{even_weight(data.layers)}, which choose nothing. Here "
        f"{sharp:,} of {len(rows):,} rows put more than half of their weight on one key. Where a head "
        "looks is not yet what it does."
    )
    return figure(name, title, data, draw_patterns, reading, signs)


def even_weight(layers: list[LayerData]) -> str:
    """What each key would get, where every query sees the same number of them.

    A key that is not seen, for a window or because it comes later, has a weight of exactly 0.
    """
    seen = {sum(weight > 0 for weight in row) for layer in layers for head in layer.heads for row in head}
    if len(seen) != 1:
        return ""
    (keys,) = seen
    return f" ({1 / keys:.2f} for each of {keys} keys)"


def mistakes_section(found: Mistakes, what: str) -> Section:
    """The most confident mistakes as a table; ``what`` are the inputs, such as test sums."""
    if not found.count:
        words = [f"None of {found.examples:,} {what} is answered wrongly."]
        return Section("mistakes", "What it gets wrong", words)
    rows = [
        (_short(row.input), row.truth or "-", row.answer, f"{100 * row.probability:.1f}%")
        for row in found.worst[:SHOWN]
    ]
    words = [
        f"{found.count:,} of {found.examples:,} {what} are answered wrongly. A good sign are "
        "mistakes of which the model is unsure; a bad one, mistakes that it is sure of: the surest here "
        f"has {100 * found.worst[0].probability:.1f}%."
    ]
    title = f"The most confident {len(rows)} of {found.count:,}"
    table = Table(title, ("input", "is", "model says", "sure"), tuple(rows))
    return Section("mistakes", "What it gets wrong", words, tables=[table])


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]} ..."
