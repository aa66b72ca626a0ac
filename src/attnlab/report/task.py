"""The page of a run of any task whose inputs are tokens."""

from collections.abc import Callable, Sequence
from typing import Any

from attnlab.analysis import percent
from attnlab.analysis.ablate import head_names
from attnlab.analysis.answers import answer_all
from attnlab.analysis.evaluation import evaluate_task
from attnlab.analysis.explain.asking import LONGEST
from attnlab.analysis.patterns import look_at
from attnlab.analysis.slips import slips_of
from attnlab.examples import Examples, one_example
from attnlab.model import Model
from attnlab.models import attentions
from attnlab.report.common import heads_section, training_section
from attnlab.report.page import Section
from attnlab.report.reasons import reasons_section
from attnlab.report.sorting import CELLS
from attnlab.report.story import Story
from attnlab.report.text import mistakes_section, pattern_figure
from attnlab.runs import Run, load_model
from attnlab.spec import Task
from attnlab.studies.tables import Table

TRIED = 50
"""Test examples among which one that goes wrong is looked for."""


def task_story(run: Run, task: Task, samples: int) -> Story:
    """What is told of a run, by what its task says of itself."""
    model, test = load_model(run), task.splits(run.spec().seed).test
    found = run.analysis("evaluate-test") or evaluate_task(task, model, test)
    parts: dict[str, Callable[[], Section | None]] = {
        "trained": lambda: training_section(run),
        "good": lambda: _good(found),
    }
    if attentions(model):
        example = _example(task, model, test)
        shown = task.show(example)
        parts["heads"] = lambda: heads_section(run, samples)
        if len(shown.labels) ** 2 * len(head_names(model)) <= CELLS:
            parts["maps"] = lambda: _maps(task, model, example)
        if len(shown.labels) <= LONGEST:
            parts["reasons"] = lambda: reasons_section(run, shown.name)
    parts["mistakes"] = lambda: mistakes_section(slips_of(task, model, test), "test examples")
    low, high = found["exact_match_interval"]
    return Story(
        f"A transformer for the task {task.kind}. {_about(task)}",
        f"{percent(found['exact_match'])} of {found['examples']:,} test examples correct.",
        found["exact_match"] == 1,
        [f"95% interval {percent(low)} to {percent(high)}."],
        [(f"{found['teacher_forced']['loss']:.3g}", "test loss")],
        parts,
    )


def _about(task: Task) -> str:
    """The first line of the task's own description."""
    return (type(task).__doc__ or "").strip().partition("\n")[0]


def _good(found: dict[str, Any]) -> Section:
    strata = [(row["stratum"], f"{row['examples']:,}", _share(row)) for row in found["by_stratum"]]
    places = [(row["place"], percent(row["accuracy"])) for row in found["by_place"]]
    tables = [
        _table("By group of test examples", ("group", "examples", "correct (95% interval)"), strata),
        _table("By place of the answer", ("place", "correct"), places if len(places) > 1 else []),
    ]
    return Section("good", "How good it is", tables=[table for table in tables if table.rows])


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, columns, tuple(rows))


def _share(row: dict[str, Any]) -> str:
    low, high = row["exact_match_interval"]
    return f"{percent(row['exact_match'])} ({percent(low)} to {percent(high)})"


def _example(task: Task, model: Model, test: Examples) -> Examples:
    """The first of a few test examples that goes wrong, or the first of all."""
    few = test[slice(0, TRIED)]
    said = answer_all(task, model, few)
    wrong = (said != few.targets.reshape(said.shape)).any(dim=1).nonzero()[:, 0].tolist()
    return one_example(few, wrong[0] if wrong else 0, task.padding)


def _maps(task: Task, model: Model, example: Examples) -> Section:
    looked = look_at(task, model, example)
    about = f"{looked.example}, answered with {looked.answer}."
    stacks = dict.fromkeys(
        (path.attention.partition(".")[0], path.attention.rpartition(".")[2]) for path in looked.patterns
    )
    figures = []
    for stack, kind in stacks:
        chosen = [
            each
            for each in looked.patterns
            if each.attention.partition(".")[0] == stack and each.attention.rpartition(".")[2] == kind
        ]
        skip = int((stack, kind) == ("decoder", "self"))
        title = f"{stack.capitalize()} {kind} attention"
        figures.append(pattern_figure(f"{stack}-{kind}", title, about, chosen, skip=skip))
    return Section("maps", "Where its heads look in one example", figures=figures)
