"""The page of a run of any task whose inputs are tokens: its examples, patterns and mistakes."""

from collections.abc import Mapping, Sequence
from functools import partial

from attnlab.analysis.ablate.baselines import head_names
from attnlab.analysis.evaluate import Evaluation, Mistakes, find_mistakes, kept_evaluation
from attnlab.analysis.explain.runs import LONGEST
from attnlab.analysis.patterns import look_at
from attnlab.analysis.predict import answer_all
from attnlab.analysis.record import AttentionPatterns
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.figures.patterns import LayerData, draw_patterns, patterns_data
from attnlab.model import Model, attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.page import Figure, Part, Section, Story, figure
from attnlab.report.reasons import reasons_section
from attnlab.results import Table
from attnlab.runs import RunFolder
from attnlab.sets import Examples, one_example
from attnlab.specs import Task

SHOWN = 20
LONG = 60  # characters of an input that a table shows


def pattern_figure(
    name: str,
    title: str,
    about: str,
    patterns: Sequence[AttentionPatterns],
    *,
    skip: int = 0,
    note: str = "",
) -> Figure:
    """Maps of every head; ``skip`` rows, which have no choice, are not counted."""
    data = patterns_data(patterns, note=note)
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
        f"each row sums to one.{_axes_words(data.layers)} The strongest single weight is {weight:.2f}, in "
        f"{head}."
    )
    signs = (
        "Good: rows with one bright cell, at the place that the query needs. Bad: rows of one even colour"
        f"{even_weight(data.layers)}, which choose nothing. Here "
        f"{sharp:,} of {len(rows):,} rows put more than half of their weight on one key. Where a head "
        "looks is not yet what it does."
    )
    return figure(name, title, data, draw_patterns, reading, signs)


def _axes_words(layers: list[LayerData]) -> str:
    """What else must be said to read the maps."""
    words = ""
    if any(layer.says for layer in layers):
        words += " A row shows →, and the token that is said there."
    if any(any(map(any, layer.masked)) for layer in layers):
        words += " Hatched keys are masked: the query cannot see them."
    return words


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


TRIED = 50
"""Test examples among which one that goes wrong is looked for."""
CELLS = 8_000
"""Weights, over all heads, that the maps of one example may have; each takes about 260 bytes."""


def task_story(run: RunFolder, samples: int) -> Story:
    """What is told of a run, by what its task says of itself."""
    task, model = run.spec().task, run.model
    test, found = task.splits(run.spec().seed).test, kept_evaluation(run)
    one = partial(_one_example, run, task, model)
    parts: dict[str, Part] = {
        "trained": lambda: training_section(run),
        "good": lambda: _good(found, task.noun),
    }
    if attentions(model):
        parts["heads"] = lambda: heads_section(run, samples)
        parts |= one(_example(task, model, test))
    parts["mistakes"] = lambda: mistakes_section(find_mistakes(task, model, test), f"test {task.noun}s")
    about = (type(task).__doc__ or "").strip().partition("\n")[0]  # the first line of its own description
    return Story(
        f"A transformer for the task {task.kind}. {about}",
        f"{percent(found.exact_match)} of {found.examples:,} test {task.noun}s correct.",
        found.exact_match == 1,
        [f"95% interval {percent_ends(found.exact_match_interval)}."],
        [(f"{found.teacher_forced.loss:.3g}", "test loss")],
        parts,
        found,
        one,
    )


def _good(found: Evaluation, noun: str) -> Section:
    strata = tuple(
        (
            row.stratum,
            f"{row.examples:,}",
            f"{percent(row.exact_match)} ({percent_ends(row.exact_match_interval)})",
        )
        for row in found.by_stratum
    )
    places = tuple((row.place, percent(row.accuracy)) for row in found.by_place)
    tables = [
        Table(f"By group of test {noun}s", ("group", f"{noun}s", "correct (95% interval)"), strata),
        Table("By place of the answer", ("place", "correct"), places if len(places) > 1 else ()),
    ]
    return Section("good", "How good it is", tables=[table for table in tables if table.rows])


def _example(task: Task, model: Model, test: Examples) -> Examples:
    """Of a few test examples the shortest that goes wrong, or else the shortest of all."""
    few = test[slice(0, TRIED)]
    said = answer_all(task, model, few)
    wrong = (said != few.targets.reshape(said.shape)).any(dim=1).nonzero()[:, 0].tolist()
    chosen = [one_example(few, number, task.padding) for number in wrong or range(len(few))]
    return min(chosen, key=lambda each: each.inputs[0].shape[1])


def _one_example(run: RunFolder, task: Task, model: Model, example: Examples) -> Mapping[str, Part]:
    """Maps of one example and why it is answered so, where there is attention and it is not too long."""
    shown, parts = task.show(example), dict[str, Part]()
    if attentions(model) and len(shown.labels) ** 2 * len(head_names(model)) <= CELLS:
        parts["maps"] = lambda: _maps(task, model, example)
    if attentions(model) and len(shown.labels) <= LONGEST:
        parts["reasons"] = lambda: reasons_section(run, shown.name)
    return parts


def _maps(task: Task, model: Model, example: Examples) -> Section:
    looked, figures = look_at(task, model, example), []
    about = " ".join(f"{looked.example}, answered with {looked.answer}. {looked.note}".split())
    patterns = {each.attention: each for each in looked.patterns}
    kinds = dict.fromkeys((site.stack, site.kind) for site in model.sites())
    for stack, kind in kinds:
        sites = [site for site in model.sites() if (site.stack, site.kind) == (stack, kind)]
        skip = int(sites[0].queries == sites[0].keys == "answer")  # the first token sees itself alone
        name, title = f"{stack}-{kind}", f"{stack.capitalize()} {kind} attention"
        if len(kinds) == 1:
            name, title = "patterns", "Every head"
        chosen = [patterns[site.path] for site in sites]
        figures.append(pattern_figure(name, title, about, chosen, skip=skip, note=looked.note))
    return Section("maps", f"Where its heads look in one {task.noun}", figures=figures)
