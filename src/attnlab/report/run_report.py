"""The page about one run: what it is, how it trained, how good it is, where its heads look."""

import json
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined

from attnlab.analysis import attention_patterns, evaluate, evaluate_sorting, percent
from attnlab.analysis.image_evaluation import evaluate_reader
from attnlab.analysis.reading import Reader, run_reader
from attnlab.figures import (
    chains_data,
    curves_data,
    draw_chains,
    draw_curves,
    draw_patterns,
    patterns_data,
)
from attnlab.models import Seq2Seq
from attnlab.report.digits import confusion_figure, digit_figures, reader_figures
from attnlab.report.figure import Figure, figure
from attnlab.report.sorting import sorting_figures
from attnlab.runs import Run, load_addition, load_digits, load_sorting
from attnlab.spec import AdditionTask, DigitsTask, GridsTask, SortingTask, spec_hash, to_json
from attnlab.storage import write_text
from attnlab.tasks import Addition

KINDS = (
    ("encoder", "self", "Encoder self attention", "digits of both operands look at each other"),
    ("decoder", "self", "Decoder self attention", "the answer looks back at what it has said so far"),
    ("decoder", "cross", "Decoder cross attention", "the answer looks at the operands"),
)


def write_report(run: Run, path: Path) -> Path:
    """Write the page about ``run`` to ``path``."""
    spec = run.spec()
    pages = Environment(
        loader=PackageLoader("attnlab", "report"), autoescape=True, undefined=StrictUndefined
    )
    pages.filters["percent"] = percent
    match spec.task:
        case AdditionTask():
            template, about = "addition.html", _about_addition(run)
        case DigitsTask():
            template, about = "digits.html", _about_digits(run)
        case SortingTask():
            template, about = "sorting.html", _about_sorting(run)
        case GridsTask():
            template, about = "grids.html", _about_grids(run)
    page = pages.get_template(template).render(
        run=run.name,
        hash=spec_hash(spec),
        summary=run.summary(),
        spec=json.dumps(to_json(spec), indent=2),
        environment=run.environment(),
        **about,
    )
    write_text(path, page)
    return path


def _about_addition(run: Run) -> dict[str, Any]:
    task, model = load_addition(run)
    found = run.analysis("evaluate-test") or evaluate(task, model, seed=run.spec().seed)
    verified = run.analysis("verify")
    return {
        "found": found,
        "verified": verified,
        "figures": [
            curves_figure(run.metrics()),
            _chains(found, verified),
            *_patterns(task, model, _example(task, verified)),
        ],
    }


def _about_digits(run: Run) -> dict[str, Any]:
    task, model = load_digits(run)
    reader, found = _read(run)
    return {
        "found": found,
        "figures": [
            curves_figure(run.metrics()),
            *digit_figures(task, model, seed=run.spec().seed, found=found, metrics=run.metrics()),
            *reader_figures(reader, found),
        ],
    }


def _read(run: Run) -> tuple[Reader, dict[str, Any]]:
    """The reader of a run, and its evaluation: the kept one if it says all that is told here."""
    reader, kept = run_reader(run), run.analysis("evaluate-test")
    return reader, kept if kept is not None and "mistakes" in kept else evaluate_reader(reader)


def _about_sorting(run: Run) -> dict[str, Any]:
    task, model = load_sorting(run)
    seed = run.spec().seed
    found = run.analysis("evaluate-test") or evaluate_sorting(task, model, seed=seed)
    lengths = run.analysis("lengths")
    return {
        "found": found,
        "lengths": lengths,
        "figures": [
            curves_figure(run.metrics()),
            *sorting_figures(task, model, seed=seed, found=found, lengths=lengths),
        ],
    }


def _about_grids(run: Run) -> dict[str, Any]:
    reader, found = _read(run)
    return {
        "found": found,
        "figures": [
            curves_figure(run.metrics()),
            confusion_figure(found, "digits"),
            *reader_figures(reader, found),
        ],
    }


def curves_figure(metrics: list[dict[str, Any]]) -> Figure:
    data = curves_data(metrics)
    exact = data["epochs"]["valid_exact_match"]
    if not exact:
        return figure("How it trained", "No epoch has ended yet.", data, draw_curves(data))
    best = max(range(len(exact)), key=exact.__getitem__)
    reading = (
        f"Validation was best in epoch {data['epochs']['epoch'][best]}, with {percent(exact[best])} right, "
        f"and ended at {percent(exact[-1])}. A good sign: both curves fall together. A bad one: training "
        "goes on improving while validation stands still."
    )
    return figure("How it trained", reading, data, draw_curves(data))


def _chains(found: dict[str, Any], verified: dict[str, Any] | None) -> Figure:
    rows = found["by_chain"] if verified is None else verified["by_chain"]
    data = chains_data(rows)
    worst = min(range(len(rows)), key=lambda place: data["percent"][place])
    what = f"{found['examples']:,} test sums" if verified is None else f"all {verified['total']:,} sums"
    if data["percent"][worst] == 100:
        weakest = "Every group is wholly right."
    else:
        weakest = f"The weakest are sums with {data['chain'][worst]} carries in a row."
    reading = (
        f"Of {what}, by the longest run of columns that each pass on a carry. {weakest} "
        "A bar that falls to the right would mean that carries do not ripple through."
    )
    return figure("How good it is", reading, data, draw_chains(data))


def _patterns(task: Addition, model: Seq2Seq, pair: tuple[int, int]) -> list[Figure]:
    text = f"{pair[0]}+{pair[1]}"
    everything = attention_patterns(task, model, torch.tensor(pair))
    figures = []
    for stack, kind, title, what in KINDS:
        chosen = [p for p in everything if p.attention.startswith(stack) and p.attention.endswith(kind)]
        data = patterns_data(chosen)
        focus = max(
            (max(row), f"{layer['attention']}.{index}")
            for layer in data["layers"]
            for index, head in enumerate(layer["heads"])
            for row in (head[1:] if (stack, kind) == ("decoder", "self") else head)
        )
        reading = (
            f"{text}: {what}. A row is a query, a column a key, and each row sums to one. "
            f"The strongest single weight here is {focus[0]:.2f}, in {focus[1]}. "
            "Where a head looks is not yet what it does."
        )
        figures.append(figure(title, reading, data, draw_patterns(data)))
    return figures


def _example(task: Addition, verified: dict[str, Any] | None) -> tuple[int, int]:
    """A sum that goes wrong if there is one, else one whose carry ripples through all columns."""
    if verified and verified["wrong"]:
        return verified["wrong"][0]["a"], verified["wrong"][0]["b"]
    smaller = 10**task.digits * 3 // 8
    return smaller, 10**task.digits - smaller
