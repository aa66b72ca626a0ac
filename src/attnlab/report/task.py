"""The page of a run of any task whose inputs are tokens."""

from collections.abc import Mapping
from functools import partial

from attnlab.analysis.ablate.baselines import head_names
from attnlab.analysis.evaluate import Evaluation, find_mistakes, kept_evaluation
from attnlab.analysis.explain.runs import LONGEST
from attnlab.analysis.patterns import look_at
from attnlab.analysis.predict import answer_all
from attnlab.analysis.statistics import percent, percent_ends
from attnlab.examples import Examples, one_example
from attnlab.model import Model, attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.page import Part, Section, Story
from attnlab.report.reasons import reasons_section
from attnlab.report.text import mistakes_section, pattern_figure
from attnlab.runs import Run, load_model
from attnlab.spec import Task
from attnlab.studies.tables import Table

TRIED = 50
"""Test examples among which one that goes wrong is looked for."""
CELLS = 8_000
"""Weights, over all heads, that the maps of one example may have; each takes about 260 bytes."""


def task_story(run: Run, samples: int) -> Story:
    """What is told of a run, by what its task says of itself."""
    task, model = run.spec().task, load_model(run)
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
    return Story(
        f"A transformer for the task {task.kind}. {_about(task)}",
        f"{percent(found.exact_match)} of {found.examples:,} test {task.noun}s correct.",
        found.exact_match == 1,
        [f"95% interval {percent_ends(found.exact_match_interval)}."],
        [(f"{found.teacher_forced.loss:.3g}", "test loss")],
        parts,
        found,
        one,
    )


def _about(task: Task) -> str:
    """The first line of the task's own description."""
    return (type(task).__doc__ or "").strip().partition("\n")[0]


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


def _one_example(run: Run, task: Task, model: Model, example: Examples) -> Mapping[str, Part]:
    """Maps of one example and why it is answered so, where there is attention and it is not too long."""
    shown, parts = task.show(example), dict[str, Part]()
    if attentions(model) and len(shown.labels) ** 2 * len(head_names(model)) <= CELLS:
        parts["maps"] = lambda: _maps(task, model, example)
    if attentions(model) and len(shown.labels) <= LONGEST:
        parts["reasons"] = lambda: reasons_section(run, shown.name)
    return parts


def _maps(task: Task, model: Model, example: Examples) -> Section:
    looked, figures = look_at(task, model, example), []
    about = f"{looked.example}, answered with {looked.answer}."
    patterns = {each.attention: each for each in looked.patterns}
    kinds = dict.fromkeys((site.stack, site.kind) for site in model.sites())
    for stack, kind in kinds:
        sites = [site for site in model.sites() if (site.stack, site.kind) == (stack, kind)]
        skip = int(sites[0].queries == sites[0].keys == "answer")  # the first token sees itself alone
        name, title = f"{stack}-{kind}", f"{stack.capitalize()} {kind} attention"
        if len(kinds) == 1:
            name, title = "patterns", "Every head"
        chosen = [patterns[site.path] for site in sites]
        figures.append(pattern_figure(name, title, about, chosen, skip=skip))
    return Section("maps", f"Where its heads look in one {task.noun}", figures=figures)
